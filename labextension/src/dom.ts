import { highlightCode, tagHighlighter, tags } from '@lezer/highlight';

import { cuda } from './cuda.js';

const colours = tagHighlighter([
  { tag: tags.keyword, class: 'optiml-keyword' },
  { tag: tags.comment, class: 'optiml-comment' },
  { tag: tags.string, class: 'optiml-string' },
  { tag: [tags.number, tags.atom], class: 'optiml-number' },
  { tag: tags.meta, class: 'optiml-meta' },
  { tag: tags.operator, class: 'optiml-operator' },
  { tag: tags.definition(tags.variableName), class: 'optiml-definition' },
  { tag: tags.standard(tags.variableName), class: 'optiml-builtin' },
  { tag: tags.special(tags.variableName), class: 'optiml-index' }
]);

/** An element with a class and what is in it: elements, and texts that stay texts. */
export function element<K extends keyof HTMLElementTagNameMap>(
  tag: K,
  className = '',
  ...children: (Node | string)[]
): HTMLElementTagNameMap[K] {
  const made = document.createElement(tag);
  made.className = className;
  made.append(...children);
  return made;
}

export function button(label: string, onClick: () => void, title = ''): HTMLButtonElement {
  const made = element('button', 'jp-Button jp-mod-styled jp-mod-minimal optiml-button', label);
  made.type = 'button';
  made.title = title;
  made.addEventListener('click', onClick);
  return made;
}

/** A block that scrolls, which the keyboard reaches too. */
function block(label: string): HTMLPreElement {
  const made = element('pre', 'optiml-code');
  made.tabIndex = 0;
  made.setAttribute('role', 'region');
  made.setAttribute('aria-label', label);
  return made;
}

/** A program in the editor's colours. */
export function program(text: string, label: string): HTMLElement {
  const made = block(label);
  const tree = cuda.language.parser.parse(text);
  highlightCode(
    text,
    tree,
    colours,
    (part, classes) => {
      made.append(classes ? element('span', classes, part) : part);
    },
    () => {
      made.append('\n');
    }
  );
  return made;
}

/** A unified difference, with the sign of each line. */
export function difference(text: string, label: string): HTMLElement {
  const made = block(label);
  for (const line of text.split('\n')) {
    const kind = { '+': 'added', '-': 'removed', '@': 'place' }[line[0] ?? ''] ?? 'same';
    made.append(element('span', `optiml-${kind}`, `${line}\n`));
  }
  return made;
}
