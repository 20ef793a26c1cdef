import assert from 'node:assert/strict';
import { test } from 'node:test';

import { cuda, cudaCell, proseCell } from '../src/cuda.js';
import { all, indentOf, kindOf, tokensOf, stateOf } from './tokens.js';

const KERNEL = `%%optiml optimize best --ref matmul_ref --budget 16
#pragma optiml tune TILE in {8, 16} = 16 if TILE * TILE <= 1024
#pragma optiml launch mm grid(cdiv(cols, TILE)) block(TILE)
__global__ void __launch_bounds__(256) mm(const float4* __restrict__ a, half* b) {
  __shared__ float tile[TILE];
  int i = blockIdx.x * blockDim.x + threadIdx.x; // don't stop here
  atomicAdd(&tile[0], 1.0f);
  __syncthreads();
}
`;

test('words of CUDA have their kinds', () => {
  for (const [token, kind] of [
    ['__global__', 'keyword'],
    ['__shared__', 'keyword'],
    ['__launch_bounds__', 'keyword'],
    ['void', 'variableName.standard'],
    ['float4', 'variableName.standard'],
    ['half', 'variableName.standard'],
    ['threadIdx', 'variableName.special'],
    ['atomicAdd', 'variableName.standard'],
    ['__syncthreads', 'variableName.standard'],
    ['1.0f', 'number'],
    ["// don't stop here", 'comment']
  ] as const) {
    assert.equal(kindOf(KERNEL, token, cudaCell), kind, token);
  }
});

test('the line of the magic is a magic with its command and flags', () => {
  assert.deepEqual(
    tokensOf(stateOf(KERNEL.split('\n')[0]!, cudaCell)).map(({ text, kind }) => [text, kind]),
    [
      ['%%optiml', 'meta'],
      ['optimize', 'keyword'],
      ['best', 'variableName'],
      ['--ref', 'attributeName'],
      ['matmul_ref', 'variableName'],
      ['--budget', 'attributeName'],
      ['16', 'number']
    ]
  );
});

test('directives are told apart', () => {
  assert.deepEqual(all(KERNEL, 'meta', cudaCell), ['%%optiml', '#pragma optiml', '#pragma optiml']);
  assert.equal(kindOf(KERNEL, 'tune', cudaCell), 'keyword');
  assert.equal(kindOf(KERNEL, 'grid', cudaCell), 'keyword');
  assert.equal(kindOf(KERNEL, 'cdiv', cudaCell), 'variableName.standard');
  assert.equal(kindOf(KERNEL, '1024', cudaCell), 'number');
});

test('a name that a directive also has is a name elsewhere', () => {
  assert.equal(kindOf('int launch = 1;', 'launch', cuda), 'variableName');
});

test('what crosses lines ends where C++ says', () => {
  const text = `const char* a = R"x(one " // no
)" still )x"; int after_raw;
/* open /* not nested */ int after_comment;
// spliced \\
still a comment
int after_line;
#define BODY(x) { x + \\
  "text" /* over
  lines */ 'c'
int after_macro = 1'000'000 + 0x1p-3;
#error don't
int after_error;
k<<<1, 2>>>("\\" \\
tail");
int last;
`;
  assert.deepEqual(all(text, 'string', cuda), [
    'R"x(one " // no', ')" still )x"', '"text"', "'c'", "'t", '"\\" \\', 'tail"'
  ]);
  assert.deepEqual(all(text, 'comment', cuda), [
    '/* open /* not nested */', '// spliced \\', 'still a comment', '/* over', 'lines */'
  ]);
  const names = all(text, 'variableName', cuda);
  for (const name of ['after_raw', 'after_comment', 'after_line', 'after_macro', 'last']) {
    assert.ok(names.includes(name), name);
  }
  assert.deepEqual(all(text, 'number', cuda), ["1'000'000", '0x1p-3', '1', '2']);
});

test('braces of a macro do not move the code below it', () => {
  const text = '#define BEGIN {\n#define OPEN(x) if (x) { \\\n  y(\nvoid f() {\nx;\n}\n';
  assert.equal(indentOf(text, 5, cuda), 2);
  assert.equal(indentOf(text, 6, cuda), 0);
});

test('code is indented as C is', () => {
  const text = `%%optiml check
__global__ void k(float* a,
int n)
{
if (n)
for (int i = 0; i < n; ++i)
a[i] = 0;
#pragma unroll
while (n) {
n--;
}
}
`;
  const expected = [0, 0, 18, 0, 2, 4, 6, 0, 2, 4, 2, 0];
  const lines = text.trimEnd().split('\n');
  lines.forEach((_, at) => {
    const indented = lines.map((line, row) => ' '.repeat(row < at ? expected[row]! : 0) + line);
    assert.equal(indentOf(indented.join('\n'), at + 1, cudaCell), expected[at], lines[at]);
  });
});

test('prose has no tokens but in the line of the magic', () => {
  const text = "%%optiml synthesize --ref f\nIt's a kernel, don't \"stop\" /* here\n";
  assert.deepEqual(
    tokensOf(stateOf(text, proseCell)).map(found => found.text),
    ['%%optiml', 'synthesize', '--ref', 'f']
  );
});

test('comments are toggled as in C, and not in prose', () => {
  const of = (text: string, support: typeof cuda): readonly unknown[] =>
    stateOf(text, support).languageDataAt('commentTokens', text.length);
  assert.deepEqual(of('int a;', cuda), [{ line: '//', block: { open: '/*', close: '*/' } }]);
  assert.deepEqual(of('%%optiml synthesize\nwords', proseCell), []);
});
