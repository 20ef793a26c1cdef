import assert from 'node:assert/strict';
import { test } from 'node:test';

import { Text } from '@codemirror/state';

import { MARKS, fitting, marksOf } from '../src/marks.js';

const MARK = { line: 2, severity: 'error', text: 'y is undefined', source: 'int x = y;' } as const;
const doc = (text: string): Text => Text.of(text.split('\n'));

test('marks are read from outputs, and nothing else is taken for one', () => {
  const bundle = (value: unknown): object => ({ output_type: 'execute_result', data: { [MARKS]: value } });
  assert.deepEqual(marksOf([bundle({ schema: 1, marks: [MARK] })]), [MARK]);
  assert.deepEqual(marksOf([bundle({ schema: 2, marks: [MARK] })]), []);
  assert.deepEqual(marksOf([bundle({ schema: 1, marks: [{ ...MARK, line: '2' }, null, 3] })]), []);
  assert.deepEqual(marksOf([bundle(null), { output_type: 'stream' }, {}]), []);
});

test('an error of the magic marks the line that it quotes', () => {
  const evalue = 'line 2: the input kernel failed: y is undefined\n  2 | int x = y;\n  fix: fix this line';
  assert.deepEqual(marksOf([{ output_type: 'error', evalue }]), [
    { ...MARK, text: 'the input kernel failed: y is undefined\n  fix: fix this line' }
  ]);
  assert.deepEqual(marksOf([{ output_type: 'error', evalue: 'invalid syntax (a, line 2)' }]), []);
});

test('a mark fits its own line, of a cell that holds its kernel', () => {
  assert.deepEqual(fitting([MARK], doc('%%optiml check\n  int x = y;')), [MARK]);
  assert.deepEqual(fitting([MARK], doc('%%optiml check\n  int x = z;')), []);
  assert.deepEqual(fitting([MARK], doc('%%optiml check --file k.cu\nint x = y;')), []);
  assert.deepEqual(fitting([MARK], doc('print()\nint x = y;')), []);
  assert.deepEqual(fitting([MARK], doc('%%optiml check')), []);
});
