import assert from 'node:assert/strict';
import { readFileSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';

import { StringStream } from '@codemirror/language';

import { cellParser, cuda, cudaParser, isClean } from '../src/cuda.js';
import { spansOf } from './scanner.js';
import { stateOf, tokensOf } from './tokens.js';

const ROOT = join(import.meta.dirname, '../../..');
const FOLDERS = ['optiml_magic/bench/kernels', 'optiml_magic/testing', 'tests'];
const KERNELS = FOLDERS.flatMap(folder =>
  readdirSync(join(ROOT, folder), { recursive: true, encoding: 'utf8' })
    .filter(name => /\.cuh?$/.test(name))
    .map(name => join(ROOT, folder, name))
);

/** What is comment and what is string, letter by letter; blanks are neither. */
function marked(text: string, spans: { from: number; to: number; kind: string }[]): string {
  const letters = Array.from(text, letter => (/\s/.test(letter) ? letter : '.'));
  for (const { from, to, kind } of spans) {
    for (let at = from; at < to; at++) {
      letters[at] = letters[at] === '.' ? (kind === 'comment' ? 'c' : 's') : letters[at]!;
    }
  }
  return letters.join('');
}

function shown(text: string): string {
  const tokens = tokensOf(stateOf(text, cuda)).filter(({ kind }) => /comment|string/.test(kind));
  return marked(text, tokens.filter(({ text: token }) => !token.startsWith('<')));
}

function ended(text: string, parser: typeof cudaParser): boolean {
  const state = parser.startState!(2);
  for (const line of text.split('\n')) {
    if (line === '') {
      parser.blankLine!(state, 2);
      continue;
    }
    const stream = new StringStream(line, 2, 2);
    while (!stream.eol()) {
      stream.start = stream.pos;
      parser.token(stream, state);
      assert.ok(stream.pos > stream.start, `no progress in ${line}`);
    }
  }
  return isClean(state);
}

test('there are many kernels to read', () => {
  assert.ok(KERNELS.length >= 50, `${KERNELS.length} kernels`);
});

for (const path of KERNELS) {
  test(`comments and strings of ${path.slice(ROOT.length + 1)}`, () => {
    const text = readFileSync(path, 'utf8').replaceAll('\r\n', '\n');
    assert.equal(shown(text), marked(text, spansOf(text)));
    assert.ok(ended(text, cudaParser));
    assert.ok(ended(`%%optiml check --ref f\n${text}`, cellParser));
  });
}
