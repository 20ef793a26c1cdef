import { Compartment, RangeSet, StateEffect, StateField } from '@codemirror/state';
import type { Extension, Text, Transaction } from '@codemirror/state';
import { Decoration, EditorView, GutterMarker, gutter } from '@codemirror/view';

import { commandOf, headOf } from './magic.js';

export const MARKS = 'application/vnd.optiml.marks+json';
const SCHEMA = 1;
const LONGEST = 120; // letters of a line, as the kernel quotes it

export type Severity = 'error' | 'warning' | 'note';
const SEVERITIES: readonly Severity[] = ['error', 'warning', 'note'];

/** Something to be said of a line (from 1), which read `source` when it was said. */
export interface Mark {
  readonly line: number;
  readonly severity: Severity;
  readonly text: string;
  readonly source: string;
}

/** An output of a cell as a notebook keeps it. */
export interface Output {
  readonly output_type?: unknown;
  readonly data?: unknown;
  readonly evalue?: unknown;
}

const isRecord = (value: unknown): value is Record<string, unknown> =>
  typeof value === 'object' && value !== null;

function isMark(value: unknown): value is Mark {
  return (
    isRecord(value) &&
    Number.isInteger(value.line) &&
    SEVERITIES.includes(value.severity as Severity) &&
    typeof value.text === 'string' &&
    typeof value.source === 'string'
  );
}

/** An error of the magic says its line and quotes it: `line 4: what`, `  4 | the line`. */
function ofError(said: string): Mark[] {
  const [, number, text] = /^line (\d+): ([^]*)$/.exec(said) ?? [];
  if (number === undefined || text === undefined) {
    return [];
  }
  const quoted = new RegExp(`^ {2}${number} \\| (.*)$`, 'm').exec(text);
  if (!quoted) {
    return [];
  }
  const told = text.replace(`${quoted[0]}\n`, '').replace(quoted[0], '').trimEnd();
  return [{ line: Number(number), severity: 'error', text: told, source: quoted[1] ?? '' }];
}

/** The marks that the outputs of a cell carry. */
export function marksOf(outputs: readonly Output[]): Mark[] {
  return outputs.flatMap(({ output_type, data, evalue }) => {
    if (output_type === 'error') {
      return typeof evalue === 'string' ? ofError(evalue) : [];
    }
    const bundle = isRecord(data) ? data[MARKS] : undefined;
    return isRecord(bundle) && bundle.schema === SCHEMA && Array.isArray(bundle.marks)
      ? bundle.marks.filter(isMark)
      : [];
  });
}

/** Those of a cell whose kernel it holds itself, on lines that still read as they did. */
export function fitting(marks: readonly Mark[], doc: Text): Mark[] {
  const head = headOf(doc.toString()).text;
  if (commandOf(head) === null || /\s--file\b/.test(head)) {
    return [];
  }
  return marks.filter(
    ({ line, source }) =>
      line >= 1 && line <= doc.lines && doc.line(line).text.trim().slice(0, LONGEST) === source
  );
}

/** All that is said of one line, the gravest first; text, never HTML. */
export class LineMark extends GutterMarker {
  override startSide = 1; // a line typed before its own takes no mark along

  constructor(private readonly marks: readonly Mark[]) {
    super();
  }

  get severity(): Severity {
    return SEVERITIES.find(severity => this.marks.some(mark => mark.severity === severity))!;
  }

  get told(): string {
    return this.marks.map(({ severity, text }) => `${severity}: ${text}`).join('\n\n');
  }

  override eq(other: LineMark): boolean {
    return this.told === other.told;
  }

  override toDOM(): HTMLElement {
    const node = document.createElement('span');
    node.className = `optiml-mark optiml-mark-${this.severity}`;
    node.textContent = { error: '\u2716', warning: '\u25b2', note: '\u25cf' }[this.severity];
    node.title = this.told;
    node.setAttribute('role', 'img');
    node.setAttribute('aria-label', this.told);
    return node;
  }
}

const place = StateEffect.define<readonly Mark[]>();
const column = new Compartment();

function placed(marks: readonly Mark[], doc: Text): RangeSet<LineMark> {
  const lines = new Map<number, Mark[]>();
  for (const mark of fitting(marks, doc)) {
    lines.set(mark.line, [...(lines.get(mark.line) ?? []), mark]);
  }
  const ranges = [...lines].map(([line, said]) => new LineMark(said).range(doc.line(line).from));
  return RangeSet.of(ranges, true);
}

/** Marks move with their lines, and go when a letter of their line changes. */
function moved(marks: RangeSet<LineMark>, transaction: Transaction): RangeSet<LineMark> {
  const before = transaction.startState.doc;
  const touched = new Set<number>();
  transaction.changes.iterChangedRanges((from, to) => {
    const last = before.lineAt(to);
    for (let number = before.lineAt(from).number; number <= last.number; number++) {
      touched.add(before.line(number).from);
    }
  });
  const kept = marks.update({ filter: from => !altered(before, transaction, touched, from) });
  return kept.map(transaction.changes);
}

/** Whether a line that a change touches reads otherwise after it. */
function altered(
  before: Text,
  transaction: Transaction,
  touched: ReadonlySet<number>,
  from: number
): boolean {
  if (!touched.has(from)) {
    return false;
  }
  const at = transaction.changes.mapPos(from, 1);
  return transaction.newDoc.lineAt(at).text !== before.lineAt(from).text;
}

const field = StateField.define<RangeSet<LineMark>>({
  create: () => RangeSet.empty,
  update(marks, transaction) {
    const effect = transaction.effects.find(each => each.is(place));
    if (effect) {
      return placed(effect.value, transaction.newDoc);
    }
    return transaction.docChanged && marks.size > 0 ? moved(marks, transaction) : marks;
  },
  provide: self =>
    EditorView.decorations.from(self, marks => {
      const lines = [];
      const cursor = marks.iter();
      while (cursor.value) {
        const { severity, told } = cursor.value;
        const attributes = { class: `optiml-line-${severity}`, 'aria-description': told };
        lines.push(Decoration.line({ attributes }).range(cursor.from));
        cursor.next();
      }
      return Decoration.set(lines);
    })
});

const shown: Extension = gutter({
  class: 'optiml-gutter',
  markers: view => view.state.field(field)
});

/** Room for marks; there is no gutter until there is something to mark. */
export const marking: Extension = [field, column.of([])];

/** Show these marks in place of what an editor showed. */
export function show(view: EditorView, marks: readonly Mark[]): void {
  if (view.state.field(field, false) !== undefined) {
    const gutters = fitting(marks, view.state.doc).length > 0 ? shown : [];
    view.dispatch({ effects: [place.of(marks), column.reconfigure(gutters)] });
  }
}
