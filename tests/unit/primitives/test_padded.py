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
