"""Tiles of a whole warp or more, whose columns may lie in one bank."""

from __future__ import annotations

from random import Random

from tests.rewriting.writing import Array, Made, sizes_of


def turned(rng: Random) -> Made:
    """A matrix turned by tiles, which may be padded already, or walked along their rows alone."""
    side, high = rng.choice([(16, 16), (16, 4), (32, 8), (32, 4)])
    extent = rng.choice(["S", "S", "S + 1", "S + 2", "2 * S"])
    kind = rng.choice(["float", "float", "int"])
    first, second = rng.choice(
        [("t + k][threadIdx.x", "threadIdx.x][t + k"), ("threadIdx.x][t + k", "t + k][threadIdx.x")]
    )
    value = rng.choice([f"tile[{second}]", f"tile[{second}] + tile[{second}]"])
    text = f"""\
#define S {side}
#pragma optiml launch turned grid(cdiv(w, {side}), cdiv(h, {side})) block({side}, {high})
__global__ void turned(const {kind}* a, {kind}* b, int w, int h) {{
    __shared__ {kind} tile[S][{extent}];
    int t = threadIdx.y;
    int x = blockIdx.x * S + threadIdx.x, y = blockIdx.y * S + t;
    for (int k = 0; k < S; k += {high})
        if (x < w && y + k < h) tile[{first}] = a[(y + k) * w + x];
    __syncthreads();
    x = blockIdx.y * S + threadIdx.x;
    y = blockIdx.x * S + t;
    for (int k = 0; k < S; k += {high})
        if (x < h && y + k < w) b[(y + k) * h + x] = {value};
}}
"""
    dtype = {"float": "f4", "int": "i4"}[kind]
    arrays = {"a": Array(dtype, ("h", "w")), "b": Array(dtype, ("w", "h"), "zeros")}
    return Made("turned", text, arrays, *sizes_of(rng, ["w", "h"]))


FAMILY = (turned,)
