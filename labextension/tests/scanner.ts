/** Where comments and strings are, by the phases of translation of C++: a reader of its own. */

export interface Span {
  from: number;
  to: number;
  kind: 'comment' | 'string';
}

const RAW = /(?<![\w])(?:u8|[uUL])?R"([^()\\\s]{0,16})\(/y;

/** Spliced lines count as one, except in raw strings. An include's <file> is no string here. */
export function spansOf(text: string): Span[] {
  const spans: Span[] = [];
  let at = 0;
  const spliced = (): boolean => text[at] === '\\' && text[at + 1] === '\n';
  while (at < text.length) {
    const from = at;
    RAW.lastIndex = at;
    const raw = RAW.exec(text);
    if (raw) {
      const end = text.indexOf(`)${raw[1] ?? ''}"`, at + raw[0].length);
      at = end < 0 ? text.length : end + (raw[1] ?? '').length + 2;
      spans.push({ from, to: at, kind: 'string' });
    } else if (text.startsWith('//', at)) {
      while (at < text.length && text[at] !== '\n') {
        at += spliced() ? 2 : 1;
      }
      spans.push({ from, to: at, kind: 'comment' });
    } else if (text.startsWith('/*', at)) {
      const end = text.indexOf('*/', at + 2);
      at = end < 0 ? text.length : end + 2;
      spans.push({ from, to: at, kind: 'comment' });
    } else if (text[at] === '"' || (text[at] === "'" && !/[\da-fA-F]/.test(text[at - 1] ?? ''))) {
      const quote = text[at];
      at++;
      while (at < text.length && text[at] !== quote && text[at] !== '\n') {
        at += text[at] === '\\' ? 2 : 1;
      }
      at += text[at] === quote ? 1 : 0;
      spans.push({ from, to: at, kind: 'string' });
    } else {
      at++;
    }
  }
  return spans;
}
