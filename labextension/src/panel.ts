import type { Kernel } from '@jupyterlab/services';
import type { Message } from '@lumino/messaging';
import { Widget } from '@lumino/widgets';

import { button, difference, element } from './dom.js';
import { ask } from './kernel.js';

/** A run of this home, as its journal tells it. */
interface RunRow {
  readonly run: string;
  readonly task: string;
  readonly device: string;
  readonly speedup: number | null;
  readonly source: string;
  readonly state: string;
  readonly evaluations: number;
}

interface SearchRow {
  readonly name: string;
  readonly state: string;
  readonly evaluations: number;
}

interface Runs {
  readonly runs: readonly RunRow[];
  readonly total: number;
  readonly searches: readonly SearchRow[];
}

interface Comparison {
  readonly names: readonly [string, string];
  readonly headline: string;
  readonly facts: readonly (readonly [string, string, string])[];
  readonly differing: readonly (readonly [string, string, string])[];
  readonly diff: string;
}

interface Best {
  readonly program: string;
  readonly words: readonly string[];
}

/** What the panel needs of the page around it. */
export interface Page {
  kernel(): Kernel.IKernelConnection | null;
  open(run: string, saved: unknown): void;
  insert(program: string, words: readonly string[]): void;
}

const counted = (evaluations: number): string =>
  `${evaluations} evaluation${evaluations === 1 ? '' : 's'}`;

const AGAIN = 3000; // milliseconds between looks while something runs
const GOING = 'running';

function gain({ speedup, source }: RunRow): string {
  if (speedup === null) {
    return '-';
  }
  return speedup === 1 ? 'no gain' : `${speedup.toPrecision(3)}x ${source}`;
}

function table(head: readonly string[], rows: readonly (readonly string[])[]): HTMLElement {
  const cells = (tag: 'td' | 'th', row: readonly string[]): HTMLElement =>
    element('tr', '', ...row.map(text => element(tag, '', text)));
  const body = rows.map(row => cells('td', row));
  const top = element('thead', '', cells('th', head));
  return element('table', 'optiml-table', top, element('tbody', '', ...body));
}

/** The runs of the home of the notebook's kernel: look at them, compare, insert, stop. */
export class RunsPanel extends Widget {
  /** How many runs are listed. */
  last = 20;

  private readonly status = element('p', 'optiml-status');
  private readonly searches = element('ul', 'optiml-list');
  private readonly runs = element('ul', 'optiml-list');
  private readonly comparison = element('div', 'optiml-comparison');
  private readonly compare: HTMLButtonElement;
  private readonly chosen = new Set<string>();
  private due = 0;

  constructor(private readonly page: Page) {
    super();
    this.id = 'optiml-runs';
    this.addClass('optiml-panel');
    this.node.setAttribute('role', 'region');
    this.node.setAttribute('aria-label', 'OptiML runs');
    this.status.setAttribute('role', 'status');
    this.compare = button('Compare', () => {
      void this.tell(() => this.comparing());
    });
    const refresh = button('Refresh', () => {
      void this.refresh();
    });
    this.searches.setAttribute('aria-label', 'Searches that run');
    this.runs.setAttribute('aria-label', 'Runs');
    this.comparison.setAttribute('aria-live', 'polite');
    const bar = element('div', 'optiml-bar', element('h2', '', 'OptiML runs'), refresh, this.compare);
    this.node.append(bar, this.status, this.searches, this.runs, this.comparison);
    this.choose();
  }

  /** Read the runs anew. */
  async refresh(): Promise<void> {
    window.clearTimeout(this.due);
    await this.tell(async kernel => {
      const found = await ask<Runs>(kernel, { ask: 'runs', last: this.last });
      this.status.textContent =
        found.total > found.runs.length ? `the newest ${found.runs.length} of ${found.total} runs` : '';
      if (found.total === 0) {
        this.status.textContent = 'no run yet: %%optiml optimize writes one';
      }
      const listed = new Set(found.runs.map(({ run }) => run));
      this.chosen.forEach(run => listed.has(run) || this.chosen.delete(run));
      this.choose();
      this.searches.replaceChildren(...found.searches.map(search => this.searchItem(search)));
      this.runs.replaceChildren(...found.runs.map(run => this.runItem(run)));
      if (found.searches.length > 0 || found.runs.some(({ state }) => state === GOING)) {
        this.later();
      }
    });
  }

  protected override onAfterShow(message: Message): void {
    super.onAfterShow(message);
    void this.refresh();
  }

  override dispose(): void {
    window.clearTimeout(this.due);
    super.dispose();
  }

  private later(): void {
    this.due = window.setTimeout(() => {
      if (this.isVisible) {
        void this.refresh();
      }
    }, AGAIN);
  }

  /** Do something with the kernel; what is wrong is said in the panel. */
  private async tell(act: (kernel: Kernel.IKernelConnection) => Promise<void>): Promise<void> {
    const kernel = this.page.kernel();
    if (!kernel) {
      this.status.textContent = 'Open a notebook: its kernel reads the runs.';
      this.searches.replaceChildren();
      this.runs.replaceChildren();
      return;
    }
    try {
      await act(kernel);
    } catch (error) {
      this.status.textContent = error instanceof Error ? error.message : String(error);
    }
  }

  private searchItem({ name, state, evaluations }: SearchRow): HTMLElement {
    const stop = button('Stop', () => {
      void this.tell(async kernel => {
        const { said } = await ask<{ said: string }>(kernel, { ask: 'stop', name });
        await this.refresh();
        this.status.textContent = said;
      });
    });
    stop.setAttribute('aria-label', `Stop ${name}`);
    const told = `${state}, ${counted(evaluations)}`;
    return element('li', '', element('strong', '', name), element('span', '', told), stop);
  }

  private runItem(run: RunRow): HTMLElement {
    const name = run.run;
    const box = element('input');
    box.type = 'checkbox';
    box.checked = this.chosen.has(name);
    box.addEventListener('change', () => {
      if (box.checked) {
        this.chosen.add(name);
      } else {
        this.chosen.delete(name);
      }
      this.choose();
    });
    const label = element('label', '', box, element('strong', '', name));
    const open = button('Open', () => {
      void this.tell(async kernel => {
        const { saved } = await ask<{ saved: unknown }>(kernel, { ask: 'run', run: name });
        this.page.open(name, saved);
      });
    });
    const insert = button('Insert', () => {
      void this.tell(async kernel => {
        const best = await ask<Best>(kernel, { ask: 'best', run: name });
        this.page.insert(best.program, best.words);
      });
    });
    open.setAttribute('aria-label', `Open the report of ${name}`);
    insert.setAttribute('aria-label', `Insert the best kernel of ${name} below`);
    const told = `${run.task}, ${run.state}, ${counted(run.evaluations)} on ${run.device}`;
    const facts = element('span', 'optiml-facts', told);
    return element('li', '', label, element('span', 'optiml-gain', gain(run)), facts, open, insert);
  }

  private choose(): void {
    this.compare.disabled = this.chosen.size !== 2;
    this.compare.title = this.compare.disabled ? 'Choose two runs' : 'Compare the two runs';
  }

  private async comparing(): Promise<void> {
    const kernel = this.page.kernel();
    const [one, two] = [...this.chosen];
    if (!kernel || one === undefined || two === undefined) {
      return;
    }
    const found = await ask<Comparison>(kernel, { ask: 'compare', one, two });
    const head = ['', ...found.names];
    const parts: HTMLElement[] = [element('h3', '', found.headline), table(head, found.facts)];
    if (found.differing.length > 0) {
      parts.push(element('h4', '', 'Given differently'), table(head, found.differing));
    }
    if (found.diff) {
      parts.push(element('h4', '', 'From one winner to the other'));
      parts.push(difference(found.diff, 'Difference of the winners'));
    }
    this.comparison.replaceChildren(...parts);
  }
}
