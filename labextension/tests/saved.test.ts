import assert from 'node:assert/strict';
import { test } from 'node:test';

import { ordered, readRun } from '../src/saved.js';
import type { Node } from '../src/saved.js';

const step = (number: number): object => ({
  candidate: { number, proposal: { text: `program ${number}` } },
  evaluation: {
    verdict: { summary: 'right' },
    findings: [{ severity: 'note', cause: 'why', evidence: [{ line: 3 }], actions: [{ advice: 'do' }] }]
  }
});
const shown = (number: number, parent: number | null): object => ({
  number, parent, title: `t${number}`, outcome: 'passed', speedup: null, on_path: true, diff: ''
});
const file = (changes: object = {}): object => ({
  format: 'optiml run',
  schema: 1,
  run: 'k-1',
  view: {
    headline: 'h', task: 'k', device: 'd', source: 's', winner: 1,
    nodes: [shown(0, null), shown(1, 0)]
  },
  summary: { trajectory: { steps: [step(0), step(1)] } },
  ...changes
});

test('a run is read from its JSON or the text of its file', () => {
  const run = readRun(file());
  assert.deepEqual(readRun(JSON.stringify(file())), run);
  assert.equal(run.nodes[1]!.program, 'program 1');
  assert.deepEqual(run.nodes[1]!.findings, [{ severity: 'note', cause: 'why', line: 3, advice: ['do'] }]);
});

test('what is no run is refused with a sentence', () => {
  for (const [given, why] of [
    ['{', /not JSON/],
    [{}, /not a saved run/],
    [null, /not a saved run/],
    [file({ schema: 2 }), /schema 2/],
    [file({ view: {} }), /damaged: nodes is no list/],
    [file({ summary: { trajectory: { steps: [step(0)] } } }), /damaged/],
    [file({ summary: { trajectory: { steps: [step(1), step(0)] } } }), /evidence of #0/]
  ] as const) {
    assert.throws(() => readRun(given), why);
  }
});

test('a tree is in order, each node below its parent, none lost and none twice', () => {
  const first = readRun(file()).nodes[0]!;
  const of = (number: number, parent: number | null): Node => ({ ...first, number, parent });
  const rows = ordered([of(0, null), of(1, 0), of(2, 0), of(3, 1), of(4, 9)]);
  assert.deepEqual(rows.map(({ node, depth }) => [node.number, depth]), [
    [0, 1], [1, 2], [3, 3], [2, 2], [4, 1]
  ]);
});
