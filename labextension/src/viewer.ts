import { difference, element, program } from './dom.js';
import { ordered, readRun } from './saved.js';
import type { Finding, Node, Run } from './saved.js';

const gain = (node: Node): string =>
  node.speedup === null ? node.outcome.replaceAll('_', ' ') : `${node.speedup.toPrecision(3)}x`;

function found(finding: Finding): HTMLElement {
  const where = finding.line > 0 ? `line ${finding.line}: ` : '';
  const item = element('li', `optiml-finding optiml-finding-${finding.severity}`);
  item.append(element('strong', '', finding.severity), ` ${where}${finding.cause}`);
  if (finding.advice.length > 0) {
    item.append(element('ul', '', ...finding.advice.map(advice => element('li', '', advice))));
  }
  return item;
}

function details(node: Node): HTMLElement[] {
  const parts: HTMLElement[] = [element('h3', '', `#${node.number} ${node.title}`)];
  parts.push(element('p', '', `${node.outcome.replaceAll('_', ' ')}: ${node.said}`));
  if (node.findings.length > 0) {
    parts.push(element('h4', '', 'Findings'), element('ul', '', ...node.findings.map(found)));
  }
  if (node.diff) {
    parts.push(element('h4', '', `From #${node.parent ?? 0}`), difference(node.diff, 'Difference'));
  }
  parts.push(element('h4', '', 'Program'), program(node.program, 'Program'));
  return parts;
}

/** The tree of a run with its programs, diffs and findings: all of it text. */
function tree(run: Run): HTMLElement {
  const detail = element('div', 'optiml-detail');
  const list = element('div', 'optiml-tree');
  list.setAttribute('role', 'tree');
  list.setAttribute('aria-label', 'Candidates');
  const rows = ordered(run.nodes);
  const items = rows.map(({ node, depth }) => {
    const best = node.number === run.winner ? ' \u2605' : '';
    const item = element(
      'div',
      `optiml-candidate${node.onPath ? ' optiml-on-path' : ''}`,
      element('span', 'optiml-title', `#${node.number} ${node.title}${best}`),
      element('span', 'optiml-gain', gain(node))
    );
    item.setAttribute('role', 'treeitem');
    item.setAttribute('aria-level', String(depth));
    item.style.setProperty('--optiml-depth', String(Math.min(depth - 1, 12)));
    item.tabIndex = -1;
    return item;
  });
  const choose = (at: number): void => {
    items.forEach((item, number) => {
      item.setAttribute('aria-selected', String(number === at));
      item.tabIndex = number === at ? 0 : -1;
    });
    const row = rows[at];
    detail.replaceChildren(...(row ? details(row.node) : []));
  };
  const step = (at: number): void => {
    choose(at);
    items[at]?.focus();
  };
  items.forEach((item, at) => {
    item.addEventListener('click', () => {
      step(at);
    });
    item.addEventListener('keydown', event => {
      const keys: Record<string, number> = {
        ArrowDown: at + 1,
        ArrowUp: at - 1,
        Home: 0,
        End: items.length - 1
      };
      const to = keys[event.key];
      if (to !== undefined) {
        event.preventDefault();
        event.stopPropagation();
        step(Math.min(Math.max(to, 0), items.length - 1));
      }
    });
  });
  list.append(...items);
  choose(rows.findIndex(({ node }) => node.number === run.winner));
  return element('div', 'optiml-columns', list, detail);
}

/** A saved run as a page, or a sentence why it cannot be shown. */
export function view(given: unknown): HTMLElement {
  const page = element('div', 'optiml-run');
  try {
    const run = readRun(given);
    const facts = [run.run, run.device, run.source].filter(Boolean).join(', ');
    page.append(element('h2', '', run.headline), element('p', 'optiml-facts', facts), tree(run));
  } catch (error) {
    const why = element('p', 'optiml-problem', (error as Error).message);
    why.setAttribute('role', 'alert');
    page.append(why);
  }
  return page;
}
