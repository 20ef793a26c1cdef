"""Rounds that blocks make a grid apart, as a block each."""

from __future__ import annotations

import pytest

from optiml_magic.kernels.primitives.round_a_block import round_a_block
from tests.rewriting.writing import Array

from .alike import end_of, kernel_of, refused, written

WINDOW = """\
#pragma optiml launch k grid(3) block(32)
__global__ void k(const float* x, const float* w, float* y, int n) {
    __shared__ float tile[34];
    const int tiles = (n + 31) / 32;
    BEFORE
    for (int t = blockIdx.x; t < tiles; t += gridDim.x) {
        int first = t * 32;
        for (int i = threadIdx.x; i < 34; i += 32) {
            int g = first + i - 1;
            tile[i] = g >= 0 && g < n ? x[g] : 0.0f;
        }
        __syncthreads();
        int g = first + threadIdx.x;
        if (g < n) y[g] = STORED;
        AFTER
        __syncthreads();
    }
}
"""
ARRAYS = {
    "x": Array("f4", ("n",)),
    "w": Array("f4", ("8",)),
    "y": Array("f4", ("n",), "zeros"),
}
SIZES = {"n": 371}, {"n": 3}


def window(before: str = "", after: str = "", stored: str = "") -> str:
    text = WINDOW.replace("BEFORE", before).replace("AFTER", after)
    own = stored or "tile[threadIdx.x] - 2 * tile[threadIdx.x + 1] + tile[threadIdx.x + 2]"
    return text.replace("STORED", own)


def changed(text: str, *pairs: tuple[str, str]) -> str:
    for old, new in pairs:
        assert old in text, old
        text = text.replace(old, new)
    return text


BY_ELEMENTS = changed(
    window(), ("int t = blockIdx.x; t < tiles; t += gridDim.x",
     "int first = blockIdx.x * blockDim.x; first < n; first += gridDim.x * blockDim.x"),
    ("        int first = t * 32;\n", ""),
    ("    const int tiles = (n + 31) / 32;\n", ""),
)  # fmt: skip
NAMED = changed(
    window("int own = blockIdx.x, step = gridDim.x;"), ("t = blockIdx.x", "t = own"),
    ("t += gridDim.x", "t += step"),
)  # fmt: skip
WEIGHTS = window(
    "__shared__ float weights[8]; if (threadIdx.x < 8) weights[threadIdx.x] = w[threadIdx.x];"
    " __syncthreads();", stored="tile[threadIdx.x + 1] * weights[t % 8]",
)  # fmt: skip
ROWS = """\
#pragma optiml launch k grid(2) block(64)
__global__ void k(const float* x, const float* w, float* y, int n) {
    __shared__ float s[2];
    const int rows = n;
    for (int r = blockIdx.x; r < rows; r += gridDim.x) {
        float v = threadIdx.x < 8 ? x[r] * w[threadIdx.x] : 0.0f;
        for (int o = 16; o > 0; o /= 2) v += __shfl_down_sync(~0u, v, o);
        if (threadIdx.x % 32 == 0) s[threadIdx.x / 32] = v;
        __syncthreads();
        if (threadIdx.x == 0) y[r] = s[0] + s[1];
        __syncthreads();
    }
}
"""
GUARDED = changed(
    BY_ELEMENTS, ("i < 34; i += 32) {", "i < 34; i += 32) if (first + i <= n + 1) {"),
    ("        for (int i", "        __syncthreads();\n        for (int i"),
)  # fmt: skip


MEANS = changed(
    window("__shared__ float mean;", stored="tile[threadIdx.x + 1] - mean"),
    ("int g = first + threadIdx.x;",
     "if (threadIdx.x == 0) mean = tile[1] + tile[2]; __syncthreads(); int g = first + threadIdx.x;"),
)  # fmt: skip


@pytest.mark.parametrize("before", [window(), BY_ELEMENTS, NAMED, WEIGHTS, ROWS, GUARDED, MEANS])
def test_each_round_is_a_block(before: str) -> None:
    after = written(round_a_block(kernel_of(before)))
    assert "gridDim" not in after
    assert "grid(3)" not in after
    assert after.count("__syncthreads") == (2 if before in (WEIGHTS, MEANS) else 1)
    assert end_of(before, after, ARRAYS, *SIZES) == "same"


WARPS = """\
#pragma optiml launch k grid(2) block(128)
__global__ void k(const float* x, const float* w, float* y, int n) {
    int warp = threadIdx.x / 32, lane = threadIdx.x % 32, step = gridDim.x * 4;
    for (int r = blockIdx.x * 4 + warp; r < n; r += step) {
        float v = lane < 8 ? x[r] * w[lane] : 0.0f;
        for (int o = 16; o > 0; o /= 2) v += __shfl_down_sync(~0u, v, o);
        if (lane == 0) y[r] = v;
    }
}
"""


@pytest.mark.parametrize("before", [WARPS, changed(WARPS, ("/ 32,", ">> 5,"), ("% 32", "& 31"))])
def test_rows_of_warps_a_grid_apart_are_under_a_test(before: str) -> None:
    after = written(round_a_block(kernel_of(before)))
    assert "gridDim" not in after
    assert "if (r < n)" in after
    assert "grid(cdiv(n, 4))" in after
    assert end_of(before, after, ARRAYS, *SIZES) == "same"


SUM = "__shared__ float sum; if (threadIdx.x == 0) sum = 0;"
CARRIED = "if (threadIdx.x == 31) sum += tile[32]; "


@pytest.mark.parametrize(
    ("before", "reason"),
    [
        (window(SUM, CARRIED, "tile[threadIdx.x] + sum"), "goes from round to round"),
        (window("__shared__ float sum; if (blockIdx.x == 0) sum = 0;"), "a block's own"),
        (changed(window("__shared__ float sum;", CARRIED, "tile[threadIdx.x] + sum"),
                 ("int first =", "if (t == 0) sum = 0; int first =")), "not all rounds"),
        (changed(window("__shared__ float sum;", CARRIED, "tile[threadIdx.x] + sum"),
                 ("int first =", "if (t < 1) sum = 0; int first =")), "not all rounds"),
        (window("__shared__ float sum;", CARRIED), "goes from round to round"),
        (window("float c = 0.0f;", "c += tile[1];", "tile[threadIdx.x] + c"), "goes from round"),
        (window("float c[2];", "c[0] = tile[1];", "tile[threadIdx.x] + c[0]"), "goes from round"),
        (window("float c = x[blockIdx.x];", stored="tile[threadIdx.x] + c"), "a block's first"),
        (window("float own = w[0];", "float own = 2; tile[threadIdx.x] *= own; "), "a name means"),
        (window("if (threadIdx.x == 9) return;"), "a block's own"),
        (window("if (threadIdx.x == 9) y[0] = 3;"), "stores before"),
        (window(after="if (first > 64) break;"), "is not known"),
        (window(after="if (first > 64) continue;"), "a round is left"),
        (window(after="if (first > 64) return;"), "is not known"),
        (window(stored="tile[threadIdx.x] + blockIdx.x"), "a block's place"),
        (window(stored="tile[threadIdx.x] + gridDim.x"), "a block's place"),
        (changed(window(), ("y[g]", "y[g / 2]")), "meet in memory"),
        (changed(window(), ("y[g] =", "y[(g + 32) % n] =")), "meet in memory"),
        (changed(window(), ("first = t * 32", "first = t * 16")), "meet in memory"),
        (changed(window(), ("const float* x", "float* x"), ("y[g] =", "x[g] =")), "meet in memory"),
        (changed(window(), ("t += gridDim.x", "t += gridDim.x + 1")), "steps of the grid"),
        (changed(window(), ("t = blockIdx.x", "t = blockIdx.x + 1")), "steps of the grid"),
        (changed(window(), ("t < tiles", "t < tiles && x[t] > 0")), "is not known"),
        (window(after='printf("%d", t);'), "prints"),
        (changed(WARPS, ("threadIdx.x / 32", "threadIdx.x / 16")), "steps of the grid"),
        (changed(WARPS, ("if (lane", "__syncthreads(); if (lane")), "steps of the grid"),
        (changed(WARPS, ("y[r] = v", "y[r / 2] = v")), "meet in memory"),
    ],
)  # fmt: skip
def test_what_stays(before: str, reason: str) -> None:
    assert reason in refused(round_a_block(kernel_of(before)))


def test_what_blocks_add_up_together_may_be_added_by_each_round() -> None:
    text = changed(window(), ("if (g < n) y[g] =", "if (g < n) atomicAdd(&y[g % 5],"))
    before = text.replace("tile[threadIdx.x + 2];", "tile[threadIdx.x + 2]);")
    after = written(round_a_block(kernel_of(before)))
    assert end_of(before, after, ARRAYS, *SIZES, rounds=True) == "same"
