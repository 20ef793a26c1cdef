import assert from 'node:assert/strict';
import { test } from 'node:test';

import { withCommand } from '../src/commands.js';
import { headOf, kernelIn } from '../src/magic.js';

test('another command keeps the flags that it knows', () => {
  for (const [line, command, expected, left] of [
    ['%%optiml', 'check', '%%optiml check', []],
    ['%%optiml check --ref f', 'annotate', '%%optiml annotate --ref f', []],
    ['%%optiml --ref f', 'check', '%%optiml check --ref f', []],
    [
      '%%optiml optimize best --ref f --budget 8 --exact --seed=3 -DN=4 -I "a b"',
      'check',
      '%%optiml check best --ref f -DN=4 -I "a b"',
      ['--budget 8', '--exact', '--seed=3']
    ],
    [
      "%%optiml profile --energy --nvcc-args '-O3 --x'",
      'optimize',
      "%%optiml optimize --nvcc-args '-O3 --x'",
      ['--energy']
    ],
    ['%%optiml check --unknown 3', 'optimize', '%%optiml optimize --unknown 3', []]
  ] as const) {
    assert.deepEqual(withCommand(line, command), { line: expected, left });
  }
});

test('flags that were left out come back with a command that knows them', () => {
  const checked = withCommand('%%optiml optimize --budget 8 --ref f', 'check');
  assert.equal(
    withCommand(checked.line, 'optimize', checked.left).line,
    '%%optiml optimize --ref f --budget 8'
  );
});

test('a kernel is below the magic, or in the file that it names', () => {
  assert.ok(kernelIn('\n%%optiml check\n__global__ void k() {}'));
  assert.ok(kernelIn('%%optiml check --file k.cu'));
  assert.ok(!kernelIn('%%optiml header a.cuh\n__device__ int f();'));
  assert.ok(!kernelIn('%%optiml synthesize\na __global__ kernel'));
  assert.ok(!kernelIn('__global__ void k() {}'));
});

test('the line of the magic is the first that is not blank', () => {
  assert.deepEqual(headOf('\n\n  %%optiml check\nx'), { from: 4, text: '%%optiml check' });
  assert.deepEqual(headOf(''), { from: 0, text: '' });
});
