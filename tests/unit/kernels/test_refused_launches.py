"""Kernels whose launch is not certain: nothing is inferred, and nothing that looks right is made up."""

from __future__ import annotations

import re

import pytest

from optiml_magic.errors import SourceError
from optiml_magic.kernels.launches import infer_launch
from optiml_magic.kernels.prepared import with_launches
from optiml_magic.kernels.unit import lift
from optiml_magic.source.program import parse_program

HEAD = (
    "__global__ void k(float* out, const float* a, const int* ids, int n, int w, int h,"
    " float alpha, double beta, Sizes s)"
)
TEXT = "struct Sizes { int n; };\n__device__ int limit;\n" + HEAD
INDEX = "int i = blockIdx.x * blockDim.x + threadIdx.x;"
XY = "int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;"
NO_BOUND = "the store on line 3 has no bound along x in terms of the scalar parameters"
STORE = "the number of threads along x that the store on line 3 asks for is not known"
LOAD = "the number of threads along x that the load on line 3 asks for is not known"


def refused(text: str) -> SourceError:
    unit = lift(text)
    with pytest.raises(SourceError) as caught:
        infer_launch(unit, unit.kernels[0])
    return caught.value


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        (f"{INDEX} if (i < alpha) out[i] = 1;", NO_BOUND),
        (f"{INDEX} if (i < n * alpha) out[i] = 1;", NO_BOUND),
        (f"{INDEX} if (i < (int)alpha) out[i] = 1;", NO_BOUND),
        (f"{INDEX} if (i < int(beta * n)) out[i] = 1;", NO_BOUND),
        (f"{INDEX} for (int k = 0; k < n; ++k) out[i * n + k] = alpha;", NO_BOUND),
        (f"{INDEX} float s = 0; for (int k = 0; k < n; ++k) s += a[k]; out[i] = s;", NO_BOUND),
        (f"{INDEX} if (i < ids[0]) out[i] = 1;", NO_BOUND),
        (f"{INDEX} if (i < limit) out[i] = 1;", NO_BOUND),
        (f"{INDEX} if (i < s.n) out[i] = 1;", NO_BOUND),
        (f"{INDEX} if (a[i] > 0) out[i] = 1;", NO_BOUND),
        (f"{INDEX} int j = ids[i]; if (j < n) out[j] = 1;", NO_BOUND),
        (f"{INDEX} if (i > n) out[i] = 1;", NO_BOUND),
        (f"{INDEX} if (i != n) out[i] = 1;", NO_BOUND),
        (f"{INDEX} if (i < n || i < w) out[i] = 1;", "its stores are bounded differently along x"),
        (f"{INDEX} if (i < n) out[i] = 1; out[0] = 2;", NO_BOUND),
        ("int i = (gridDim.x - 1 - blockIdx.x) * blockDim.x + threadIdx.x; if (i < n) out[i] = 1;",
         NO_BOUND),
        (("int i = (blockIdx.y * gridDim.x + blockIdx.x) * blockDim.x + threadIdx.x;"
         "if (i < n) out[i] = 1;"), NO_BOUND),
        ((f"__shared__ float c; {INDEX} if (i < n) c = a[i]; __syncthreads();"
         "if (threadIdx.x == 0) out[blockIdx.x] = c;"), NO_BOUND),
        (f"{XY} if (y < h) out[y] = a[x];", NO_BOUND),
        (f"{INDEX} if (i < n) out[i] = 1; else if (i < w) out[i] = 2; if (i < h) out[i] = 3;",
         "its stores are bounded differently along x"),
        ((f"{INDEX} int step = blockDim.x * gridDim.x; for (int j = i; j < n; j += step) out[j] = 1;"
         "for (int j = i; j < w; j += step) out[j] = 2;"),
         "its stores are bounded differently along x"),
        (f"{INDEX} if (i < n && threadIdx.x == 0) out[blockIdx.x] = 1;", STORE),
        (f"{INDEX} if (i < n) out[blockIdx.x] = a[i];", STORE),
        (f"{INDEX} if (i < n) out[threadIdx.x] = a[i];", STORE),
        (f"{INDEX} if (i < n) out[i] = a[blockIdx.x];", LOAD),
        ("int row = blockIdx.x; if (row < h && threadIdx.x < w) out[row * w + threadIdx.x] = 1;",
         STORE),
        (("int row = blockIdx.x; if (row < h) for (int c = threadIdx.x; c < w; ++c)"
         " out[row * w + c] = 1;"), STORE),
        (("int row = blockIdx.x; if (row >= h) return; float v = 0;"
         "if (threadIdx.x < w) v = a[row * w + threadIdx.x]; if (threadIdx.x == 0) out[row] = v;"),
         LOAD),
        (f"{INDEX} if (i < n) out[i] = blockIdx.x;",
         "what line 3 stores depends on how many threads a block has"),
        (f"__shared__ int c; {INDEX} if (i < n) atomicAdd(&c, 1); __syncthreads(); if (i < n) out[i] = c;",
         "what the threads of a block share depends on how many there are"),
        (("__shared__ float t[16][16]; int x = blockIdx.x * 14 + threadIdx.x;"
         "int y = blockIdx.y * 14 + threadIdx.y;"
         "if (x < w && y < h) t[threadIdx.y][threadIdx.x] = a[y * w + x]; __syncthreads();"
         "if (threadIdx.x < 14 && threadIdx.y < 14 && x < w && y < h)"
         " out[y * w + x] = t[threadIdx.y + 1][threadIdx.x + 1];"),
         "how its block relates to `t` is not clear"),
        ("int i = blockIdx.x * 30 + threadIdx.x; if (threadIdx.x < 30 && i < n) out[i] = a[i];",
         "it compares threadIdx.x with 30, which asks for more threads than 30"),
        (f"{INDEX} if (threadIdx.x < 512 && i < n) out[i] = 1;",
         "it compares threadIdx.x with 512, which asks for more threads than 256"),
        (f"__shared__ float c[17]; {INDEX} c[threadIdx.x] = 1; if (i < n) out[i] = c[threadIdx.x];",
         "how its block relates to `c` is not clear"),
        ((f"__shared__ float c[512]; {INDEX} c[threadIdx.x] = 1; c[threadIdx.x + blockDim.x] = 1;"
         "if (i < n) out[i] = c[threadIdx.x];"), "how its block relates to `c` is not clear"),
        (f"{INDEX} if (i < n) elsewhere(out, i);", "what it does with `out` could not be followed"),
        (f"{INDEX} if (i < n) limit = i;", "what it does with `limit` could not be followed"),
    ],
)  # fmt: skip
def test_nothing_is_inferred(body, reason):
    error = refused(f"{TEXT} {{ {body} }}")
    assert error.message == f"the launch of `k` cannot be inferred: {reason}"
    assert error.line == 3


@pytest.mark.parametrize(
    ("body", "missing"),
    [
        (f"{INDEX} out[i] = alpha;", "k grid(BLOCKS) block(THREADS)"),
        ("int row = blockIdx.x; if (row < h && threadIdx.x < w) out[row * w + threadIdx.x] = 1;",
         "k grid(h) block(THREADS)"),
        (f"{INDEX} if (i < n) out[blockIdx.x] = a[i];", "k grid(cdiv(n, THREADS)) block(THREADS)"),
        (f"{XY} if (y < h) out[y] = a[x];",
         "k grid(BLOCKS_X, BLOCKS_Y) block(THREADS_X, THREADS_Y)"),
        (f"{XY} if (x < w) out[x] = a[y];",
         "k grid(cdiv(w, THREADS_X), BLOCKS_Y) block(THREADS_X, THREADS_Y)"),
        (f"extern __shared__ float c[]; {INDEX} if (i < n) out[i] = c[0];",
         "k grid(BLOCKS) block(THREADS) shared(BYTES)"),
    ],
)  # fmt: skip
def test_what_is_missing_stands_in_capitals(body, missing):
    """No size is made up: a directive that is pasted unchanged names what it lacks."""
    fix = refused(f"{TEXT} {{ {body} }}").fix
    directive = fix[fix.index("#pragma") :]
    assert directive == f"#pragma optiml launch {missing}"
    (launch,) = parse_program(directive).launches
    assert any(re.match("BLOCKS|THREADS", name) for name in launch.names)


def test_scalars_that_bound_nothing_parallel_are_never_extents():
    """The float that comes first, and the bound of a loop, are no number of blocks."""
    text = """__global__ void scale(float alpha, int steps, const float* a, float* out) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    for (int k = 0; k < steps; ++k) out[i] += alpha * a[i];
}
"""
    with pytest.raises(SourceError) as caught:
        with_launches(text)
    assert "alpha" not in caught.value.fix
    assert "steps" not in caught.value.fix
