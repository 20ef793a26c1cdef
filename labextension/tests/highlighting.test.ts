import assert from 'node:assert/strict';
import { test } from 'node:test';

import { EditorState, Text } from '@codemirror/state';
import type { TransactionSpec } from '@codemirror/state';
import { StreamLanguage } from '@codemirror/language';

import { cellLanguage } from '../src/highlighting.js';
import { bodyOf, commandOf } from '../src/magic.js';
import { languageOf } from './tokens.js';

const python = StreamLanguage.define({
  name: 'python',
  token: stream => {
    stream.skipToEnd();
    return null;
  }
});

function cell(text: string): EditorState {
  const doc = Text.of(text.split('\n'));
  return EditorState.create({ doc, extensions: [cellLanguage(doc), python] });
}

function typed(state: EditorState, change: TransactionSpec['changes']): EditorState {
  return state.update({ changes: change ?? [] }).state;
}

test('the command of a line', () => {
  for (const [line, command] of [
    ['%%optiml', ''],
    ['%%optiml check --ref f', 'check'],
    ['  %%optiml run', 'run'],
    ['%%optimlx check', null],
    ['%optiml check', null],
    ['%%optiml?', null],
    ['x = 1', null]
  ] as const) {
    assert.equal(commandOf(line), command, line);
  }
});

test('the body of a cell is by its first line that is not blank', () => {
  const body = (text: string): string => bodyOf(Text.of(text.split('\n')));
  assert.equal(body('\n\n%%optiml check\n'), 'cuda');
  assert.equal(body('%%optiml synthesize --ref f\nwords'), 'prose');
  assert.equal(body('x\n%%optiml check'), 'other');
  assert.equal(body(''), 'other');
});

test('a saved cell has its language at once, and other cells keep theirs', () => {
  assert.equal(languageOf(cell('%%optiml check\nint x;')), 'optiml-cell');
  assert.equal(languageOf(cell('%%optiml synthesize\nwords')), 'optiml-prose');
  assert.equal(languageOf(cell('%%timeit\nx')), 'python');
});

test('the language follows the first line as it is typed and deleted', () => {
  let state = cell('__global__ void k() {}');
  assert.equal(languageOf(state), 'python');
  state = typed(state, { from: 0, insert: '%%optiml check\n' });
  assert.equal(languageOf(state), 'optiml-cell');
  state = typed(state, { from: 9, to: 14, insert: 'synthesize' });
  assert.equal(languageOf(state), 'optiml-prose');
  state = typed(state, { from: 0, to: 20 });
  assert.equal(languageOf(state), 'python');
});

test('typing configures the editor anew only where the kind changes', () => {
  const state = cell('%%optiml check\nint x;');
  const size = state.doc.length;
  assert.equal(state.update({ changes: { from: size, insert: ' // y' } }).reconfigured, false);
  assert.equal(state.update({ changes: { from: 14, insert: ' --ref f' } }).reconfigured, false);
  assert.equal(state.update({ changes: { from: 0, to: 2 } }).reconfigured, true);
  const other = cell('x = 1');
  assert.equal(other.update({ changes: { from: 5, insert: '0' } }).reconfigured, false);
});
