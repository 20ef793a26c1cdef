"""Programs whose macros and names are those that rules and their helpers use."""

from __future__ import annotations

import pytest

from optiml_magic.source.program import parse_program

ROWS = """\
#define T float
#define LANES 128
#define THREADS 256
#define value(p) (p)
#pragma optiml launch k grid(cdiv(n, LANES)) block(LANES)
__global__ void k(const T* a, T* out, int n, int m) {
    int i = blockIdx.x * LANES + threadIdx.x;
    if (i >= n) return;
    T sum = 0.0f;
    for (int j = 0; j < m; ++j) sum += value(a[i * m + j]);
    out[i] = sum;
}
"""
COUNTS = """\
#define COPIES 7
#define BLOCKS 64
#pragma optiml zero(counts)
#pragma optiml launch k grid(cdiv(n, 256)) block(256)
__global__ void k(const unsigned char* a, int* counts, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) atomicAdd(&counts[a[i] & (BLOCKS - 1)], COPIES);
}
"""
TURNED = """\
#define TILE_COLS 3
#define PAD 9
#pragma optiml launch k grid(cdiv(w, 16), cdiv(h, 16)) block(16, 16)
__global__ void k(const float* a, float* out, int w, int h) {
    int x = blockIdx.x * 16 + threadIdx.x, y = blockIdx.y * 16 + threadIdx.y;
    if (x < w && y < h) out[x * h + y] = a[y * w + x] * TILE_COLS + PAD;
}
"""


@pytest.mark.parametrize(
    ("rule", "text", "name"),
    [
        ("row_to_lanes", ROWS, "LANES_2"),
        ("row_to_lanes", ROWS, "THREADS_2"),
        ("private_counters", COUNTS, "COPIES_2"),
        ("transpose_tile", TURNED, "TILE_COLS_2"),
    ],
)
def test_names_of_macros_are_left_to_them(rule: str, text: str, name: str, propose, compiles):
    found = [one.text for one in propose(rule, text) if name in parse_program(one.text).values]
    assert found
    for one in found[:1]:
        compiles(one)


@pytest.mark.parametrize(
    ("rule", "text"),
    [("row_to_lanes", ROWS), ("private_counters", COUNTS), ("transpose_tile", TURNED)],
)
def test_templates_within_a_block_of_c(rule: str, text: str, propose, compiles):
    """As code that is loaded by its names has one around all its kernels."""
    found = propose(rule, f'extern "C" {{\n{text}}}\n')
    assert found
    for one in found[:2]:
        compiles(one.text)


@pytest.mark.parametrize(
    ("rule", "text", "name"),
    [
        ("merge_runs", COUNTS, "ITEMS"),
        ("private_counters", COUNTS, "COPIES"),
        ("row_to_lanes", ROWS, "LANES"),
        ("row_to_lanes", ROWS, "THREADS"),
        ("transpose_tile", TURNED, "TILE_COLS"),
    ],
)
def test_tuned_names_of_other_launches_are_left_to_them(rule: str, text: str, name: str, propose):
    """As where each launch of a chain gets an edit of its own, one after the other."""
    other = f"""\
#pragma optiml tune {name} in {{1, 3}} = 3
#pragma optiml launch other grid({name}) block(32)
__global__ void other(float* z) {{ z[blockIdx.x * 32 + threadIdx.x] = {name}; }}
"""
    found = [parse_program(one.text) for one in propose(rule, other + text.replace(name, "own"))]
    made = [program for program in found if f"{name}_2" in program.values]
    assert made
    assert all(program.values[name] == 3 for program in made)
