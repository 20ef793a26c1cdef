import type { StringStream } from '@codemirror/language';

/** What the body of a cell is: CUDA, plain words, or nothing of ours. */
export type Body = 'cuda' | 'prose' | 'other';

/** The lines of a text, as a CodeMirror document gives them. */
export interface Lines {
  readonly lines: number;
  line(number: number): { readonly text: string };
}

const MAGIC = /^\s*%%optiml(?:\s+(\S*))?(?:\s|$)/;
const OPTIML = /^%%optiml\b/;
const PROSE = 'synthesize';

/** The first line that is not blank, which is where IPython looks for a cell magic. */
function firstLine(document: Lines): string {
  for (let number = 1; number <= document.lines; number++) {
    const { text } = document.line(number);
    if (text.trim() !== '') {
      return text;
    }
  }
  return '';
}

/** The command of a `%%optiml` line; "" where it names none, null where it is no such line. */
export function commandOf(line: string): string | null {
  const found = MAGIC.exec(line);
  return found && !/\?\s*$/.test(line) ? (found[1] ?? '') : null;
}

/** What the body of a cell with this text is. */
export function bodyOf(document: Lines): Body {
  const command = commandOf(firstLine(document));
  return command === null ? 'other' : command === PROSE ? 'prose' : 'cuda';
}

/** One token of the magic's own line: the magic, its command, flags and their values. */
export function magicToken(stream: StringStream): string | null {
  if (stream.eatSpace()) {
    return null;
  }
  if (stream.match(OPTIML)) {
    return 'meta';
  }
  const second = /^\s*%%optiml\s+$/.test(stream.string.slice(0, stream.pos));
  if (stream.match(/^--?[A-Za-z][\w-]*/)) {
    return 'attribute';
  }
  if (stream.match(/^"(?:[^"\\]|\\.)*"?/) || stream.match(/^'[^']*'?/)) {
    return 'string';
  }
  if (stream.match(/^\d[\w.]*(?=\s|$)/)) {
    return 'number';
  }
  if (stream.match(/^[^\s"'=]+/)) {
    return second ? 'keyword' : 'variable';
  }
  stream.next();
  return 'operator';
}

/** The line of the magic in a cell, and where it begins. */
export function headOf(source: string): { from: number; text: string } {
  const from = source.search(/\S/);
  const text = from < 0 ? '' : (source.slice(from).split('\n', 1)[0] ?? '');
  return { from: Math.max(from, 0), text };
}

/** Whether a cell is one of the magic's with a kernel in it, or in the file that it names. */
export function kernelIn(source: string): boolean {
  const { text } = headOf(source);
  const command = commandOf(text);
  return (
    command !== null && command !== PROSE && (/\b__global__\b/.test(source) || /\s--file\b/.test(text))
  );
}
