import assert from 'node:assert/strict';
import { test } from 'node:test';

import { Text } from '@codemirror/state';
import type { Kernel } from '@jupyterlab/services';

import { inspected, wordAt } from '../src/hover.js';

const CELL = '\n%%optiml check --ref double\n__global__ void k(float* a) { a[0] = 1; }';
const doc = Text.of(CELL.split('\n'));

function under(piece: string, text = doc): string | null {
  const word = wordAt(text, text.toString().indexOf(piece));
  return word && text.sliceString(word.from, word.to);
}

test('a word of the line of the magic goes up to its blanks, one of CUDA is a name', () => {
  assert.equal(under('%%optiml'), '%%optiml');
  assert.equal(under('ref'), '--ref');
  assert.equal(under('__global__'), '__global__');
  assert.equal(under('lobal'), '__global__');
  assert.equal(under('a[0]'), 'a');
  assert.equal(under('= 1'), null);
  assert.equal(under('}'), null);
});

test('other cells have no words of ours', () => {
  assert.equal(under('double', Text.of(['# not ours', 'double'])), null);
  assert.equal(under('double', Text.of(['%%optimlx check', 'double'])), null);
});

interface Asked {
  readonly code: string;
  readonly cursor_pos: number;
}

/** A kernel that answers so, and what it was asked. */
function kernel(status: string, content: object | Error): [Kernel.IKernelConnection, Asked[]] {
  const asked: Asked[] = [];
  const requestInspect = (question: Asked): Promise<object> => {
    asked.push(question);
    return content instanceof Error ? Promise.reject(content) : Promise.resolve({ content });
  };
  return [{ status, requestInspect } as unknown as Kernel.IKernelConnection, asked];
}

const told = { status: 'ok', found: true, data: { 'text/plain': 'a line' }, metadata: { optiml: true } };

test('an idle kernel is asked, with its place counted in letters', async () => {
  const [idle, asked] = kernel('idle', told);
  assert.equal(await inspected(idle, '\u{1f600}ab', 3), 'a line');
  assert.deepEqual(asked, [{ code: '\u{1f600}ab', cursor_pos: 2, detail_level: 0 }]);
});

test('one that is busy or gone is not asked, and what is not of the magic is not told', async () => {
  const [busy, asked] = kernel('busy', told);
  assert.equal(await inspected(busy, 'ab', 1), null);
  assert.deepEqual(asked, []);
  assert.equal(await inspected(null, 'ab', 1), null);
  for (const content of [
    { ...told, metadata: {} },
    { ...told, found: false, data: {} },
    { status: 'error', ename: 'E', evalue: '', traceback: [] },
    new Error('Canceled future')
  ]) {
    assert.equal(await inspected(kernel('idle', content)[0], 'ab', 1), null);
  }
});
