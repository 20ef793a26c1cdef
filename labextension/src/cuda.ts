import { LanguageSupport, StreamLanguage } from '@codemirror/language';
import type { IndentContext, StreamParser, StringStream } from '@codemirror/language';
import { clike } from '@codemirror/legacy-modes/mode/clike';

import { magicToken } from './magic.js';
import * as words from './words.js';

/** The state of the C grammar; `tokenize` is set while a comment or a string goes on. */
interface Code {
  tokenize: unknown;
}

/**
 * A directive of the preprocessor has a `macro` state of its own, dropped where its logical line
 * ends: its braces and quotes say nothing of the code around it.
 */
interface State {
  readonly code: Code;
  macro: Code | null;
  optiml: boolean; // in a #pragma optiml
  continued: boolean; // the line before ended in a backslash
  lineComment: boolean; // a // comment that a backslash takes to this line
  raw: string | null; // what closes the raw string that is open
  magic: boolean; // the line of the magic is still to come
}

const DIGITS = "\\d+(?:'\\d+)*";
const HEX = "[\\da-f]+(?:'[\\da-f]+)*";
const NUMBER = new RegExp(
  `^(?:0x(?:${HEX}\\.?(?:${HEX})?|\\.${HEX})(?:p[-+]?\\d+)?|0b[01]+(?:'[01]+)*` +
    `|(?:${DIGITS}\\.?(?:${DIGITS})?|\\.${DIGITS})(?:e[-+]?${DIGITS})?)\\w*`,
  'i'
);
const RAW = /^(?:u8|[uUL])?R"([^()\\\s"]{0,16})\(/;
const SPECIFIER = /^(?:template|extern|static|inline|__\w+__)$/;

const grammar = {
  name: 'cuda',
  keywords: (name: string) => words.KEYWORDS.has(name),
  blockKeywords: (name: string) => words.BLOCKS.has(name),
  defKeywords: (name: string) => words.DEFINING.has(name),
  types: words.isType,
  builtin: words.isBuiltin,
  atoms: (name: string) => words.ATOMS.has(name),
  number: NUMBER,
  namespaceSeparator: '::',
  typeFirstDefinitions: true,
  dontIndentStatements: SPECIFIER
};
const base = clike(grammar) as StreamParser<Code>;

const begin = (unit: number): Code => base.startState!(unit);

/** What the innermost grammar is in the middle of: nothing ends with its line. */
function isOpen(state: State, code: Code): boolean {
  return state.raw !== null || state.lineComment || code.tokenize !== null;
}

function beginLine(state: State): void {
  if (state.macro && !state.continued && !isOpen(state, state.macro)) {
    state.macro = null;
    state.optiml = false;
  }
}

function rawString(stream: StringStream, state: State): string {
  const at = stream.string.indexOf(state.raw!, stream.pos);
  if (at < 0) {
    stream.skipToEnd();
  } else {
    stream.pos = at + state.raw!.length;
    state.raw = null;
  }
  return 'string';
}

function lineComment(stream: StringStream, state: State): string {
  stream.skipToEnd();
  state.lineComment = stream.string.endsWith('\\');
  return 'comment';
}

/** `#` and the name of the directive; what it defines or includes, where that is told apart. */
function directive(stream: StringStream, state: State, unit: number): string {
  stream.match(/^#\s*\w*/);
  state.macro = begin(unit);
  state.optiml = /^\s*#\s*pragma\s+optiml\b/.test(stream.string);
  if (state.optiml) {
    stream.match(/^\s+optiml/);
  }
  return 'meta';
}

function directiveWord(stream: StringStream, state: State): string | null | undefined {
  const before = stream.string.slice(0, stream.pos);
  if (/^\s*#\s*include\s*$/.test(before) && stream.match(/^<[^>]*>/)) {
    return 'string';
  }
  if (/^\s*#\s*define\s+$/.test(before) && stream.match(/^[A-Za-z_]\w*/)) {
    return 'def';
  }
  const name = state.optiml && (stream.match(/^[A-Za-z_]\w*/) as RegExpMatchArray | null);
  if (!name) {
    return undefined;
  }
  const calls = /^\s*#\s*pragma\s+optiml\s+$/.test(before) ? false : stream.match(/^\s*\(/, false);
  if (calls && words.DIRECTIVE_BUILTINS.has(name[0])) {
    return 'builtin';
  }
  return words.DIRECTIVE.has(name[0]) ? 'keyword' : words.isType(name[0]) ? 'builtin' : 'variable';
}

function codeToken(stream: StringStream, state: State, unit: number): string | null {
  if (stream.sol()) {
    beginLine(state);
    state.continued = stream.string.endsWith('\\');
  }
  if (state.raw !== null) {
    return rawString(stream, state);
  }
  if (state.lineComment) {
    return lineComment(stream, state);
  }
  const code = state.macro ?? state.code;
  if (code.tokenize === null) {
    if (!state.macro && stream.peek() === '#' && !stream.string.slice(0, stream.pos).trim()) {
      return directive(stream, state, unit);
    }
    if (stream.match('//', false)) {
      return lineComment(stream, state);
    }
    const raw = stream.match(RAW) as RegExpMatchArray | null;
    if (raw) {
      state.raw = `)${raw[1]}"`;
      return rawString(stream, state);
    }
    const known = state.macro ? directiveWord(stream, state) : undefined;
    if (known !== undefined) {
      return known;
    }
  }
  const style = base.token(stream, code);
  if (style === 'builtin' && words.INDICES.has(stream.current())) {
    return 'variable-2';
  }
  return style === 'type' ? 'builtin' : style; // themes of JupyterLab have no colour for types
}

function copy(state: State): State {
  return { ...state, code: { ...state.code }, macro: state.macro && { ...state.macro } };
}

/** Whether the parser is between tokens that cross lines, as it has to be where a text ends. */
export function isClean(state: State): boolean {
  return !isOpen(state, state.macro ?? state.code);
}

function parser(magic: boolean): StreamParser<State> {
  return {
    name: magic ? 'optiml-cell' : 'cuda',
    startState: unit => ({
      code: begin(unit),
      macro: null,
      optiml: false,
      continued: false,
      lineComment: false,
      raw: null,
      magic
    }),
    copyState: copy,
    token(stream, state) {
      if (!state.magic) {
        return codeToken(stream, state, stream.indentUnit);
      }
      const style = magicToken(stream);
      state.magic = !stream.string.trim() || !stream.eol();
      return style;
    },
    blankLine(state) {
      beginLine(state);
      state.continued = false;
      state.lineComment = false;
    },
    indent(state: State, after: string, context: IndentContext) {
      if (state.magic) {
        return 0;
      }
      const inside = state.macro !== null && (state.continued || isOpen(state, state.macro));
      if (inside || isOpen(state, state.code)) {
        return null;
      }
      return after.startsWith('#') ? 0 : base.indent!(state.code, after, context);
    },
    languageData: {
      ...base.languageData,
      autocomplete: undefined,
      closeBrackets: { brackets: ['(', '[', '{', '"', "'"] }
    }
  };
}

/** CUDA C++ as it stands in a file. */
export const cudaParser = parser(false);
/** The same below a line with the magic. */
export const cellParser = parser(true);

const proseParser: StreamParser<{ magic: boolean }> = {
  name: 'optiml-prose',
  startState: () => ({ magic: true }),
  token(stream, state) {
    if (state.magic) {
      const style = magicToken(stream);
      state.magic = !stream.string.trim() || !stream.eol();
      return style;
    }
    stream.skipToEnd();
    return null;
  },
  indent: () => null,
  languageData: { closeBrackets: { brackets: [] } }
};

const support = <T>(spec: StreamParser<T>): LanguageSupport =>
  new LanguageSupport(StreamLanguage.define(spec));

/** Of `.cu` and `.cuh` files. */
export const cuda = support(cudaParser);
/** Of cells whose body is CUDA. */
export const cudaCell = support(cellParser);
/** Of cells whose body is words. */
export const proseCell = support(proseParser);
