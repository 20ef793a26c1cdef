"""Pads for tiles whose lanes share banks, and for no others."""

from __future__ import annotations

import pytest

from optiml_magic.kernels.primitives.padded import pad, tiles
from tests.rewriting.writing import Array

from .alike import end_of, kernel_of, refused, written

TURN = """\
#pragma optiml launch turn grid(cdiv(n, 32), cdiv(n, 32)) block(32, 8)
__global__ void turn(const float* a, float* b, int n) {
    __shared__ float tile[32][32];
    int x = blockIdx.x * 32 + threadIdx.x, y = blockIdx.y * 32 + threadIdx.y;
    for (int k = 0; k < 32; k += 8)
        if (x < n && y + k < n) tile[threadIdx.y + k][threadIdx.x] = a[(y + k) * n + x];
    __syncthreads();
    x = blockIdx.y * 32 + threadIdx.x;
    y = blockIdx.x * 32 + threadIdx.y;
    for (int k = 0; k < 32; k += 8)
        if (x < n && y + k < n) b[(y + k) * n + x] = tile[threadIdx.x][threadIdx.y + k];
}
"""


def test_a_column_of_a_tile() -> None:
    (tile,) = tiles(kernel_of(TURN))
    assert (tile.before, tile.after, tile.line) == (32, 1, 11)
    after = written(pad(kernel_of(TURN)))
    assert "__shared__ float tile[32][32 + 1];" in after
    assert after.replace("32 + 1", "32") == TURN
    arrays = {"a": Array("f4", ("n", "n")), "b": Array("f4", ("n", "n"), "zeros")}
    assert end_of(TURN, after, arrays, {"n": 70}, {"n": 5}) == "same"


@pytest.mark.parametrize(
    ("old", "new", "passes"),
    [
        ("block(32, 8)", "block(16, 16)", (16, 2)),
        ("float tile[32][32]", "float tile[32][48]", (16, 1)),
        ("float tile", "int other[4], tile", (32, 1)),
        ("float tile", "double tile", (16, 1)),
        ("float tile[32][32]", "double tile[32][24]", (8, 1)),
        ("float tile[32][32]", "float4 tile[32][32]", (8, 1)),
    ],
)
def test_by_the_shape_of_a_warp(old: str, new: str, passes: tuple[int, int]) -> None:
    (tile,) = tiles(kernel_of(TURN.replace(old, new).replace("float int", "int")))
    assert (tile.before, tile.after) == passes


DIAGONAL = """\
#pragma optiml launch walk grid(n) block(64)
__global__ void walk(const float* a, float* b, int n) {
    __shared__ float h[65][65];
    int t = threadIdx.x;
    h[0][t + 1] = a[blockIdx.x];
    h[t + 1][0] = 2.0f * t;
    if (t == 0) h[0][0] = 0.0f;
    __syncthreads();
    for (int d = 0; d < 127; d++) {
        int j = d - t;
        if (j >= 0 && j < 64) h[t + 1][j + 1] = fmaxf(h[t][j] + 1.0f, fmaxf(h[t][j + 1], h[t + 1][j]));
        __syncthreads();
    }
    b[blockIdx.x * 64 + t] = h[64][t + 1];
}
"""


def test_a_diagonal_is_walked_more_often_than_a_column() -> None:
    (tile,) = tiles(kernel_of(DIAGONAL))
    assert (tile.before, tile.after) == (32, 1)
    arrays = {"a": Array("f4", ("n",)), "b": Array("f4", ("n", "64"), "zeros")}
    after = written(pad(kernel_of(DIAGONAL)))
    assert "h[65][65 + 1];" in after
    assert end_of(DIAGONAL, after, arrays, {"n": 3}, {"n": 1}) == "same"


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("tile[32][32]", "tile[32][33]"),
        ("    __syncthreads();", "    float* p = &tile[0][0];\n    __syncthreads();"),
        ("    __syncthreads();", "    float* p = tile[0];\n    __syncthreads();"),
        ("tile[threadIdx.x][threadIdx.y + k]", "tile[threadIdx.y + k][threadIdx.x]"),
        ("tile[32][32]", "tile[384][32]"),  # there is no room
        ("float tile[32][32]", "char tile[32][32]"),
        ("float tile[32][32]", "double tile[191][32]"),  # nor here, for the pads
        ("tile[threadIdx.x][", "tile[(int)a[threadIdx.x]]["),
    ],
)
def test_refused(old: str, new: str) -> None:
    text = TURN.replace(old, new)
    assert refused(pad(kernel_of(text))) == "no lanes share a bank that a pad would part"
