"""What a kernel does with the variables of its module."""

from __future__ import annotations

import pytest

from optiml_magic.kernels.read import read
from optiml_magic.kernels.unit import lift

TEXT = """\
__constant__ float table[9];
__device__ int one;
__device__ float grid[4][8];
__device__ float* where;
__global__ void k(float* x) {
    int i = threadIdx.x;
    STATEMENT
}
"""


@pytest.mark.parametrize(
    ("statement", "wanted"),
    [
        ("x[i] = table[2 * i];", [("load", "table", "2*threadIdx.x")]),
        ("x[i] = *table;", [("load", "table", "0")]),
        ("one = 3;", [("store", "one", "0")]),
        ("atomicAdd(&one, i);", [("atomic", "one", "0")]),
        ("grid[i][2] = 1.0f;", [("store", "grid", "2 + 8*threadIdx.x")]),
        ("where[i] = 1.0f;", [("load", "where", "0"), ("store", "where", "None")]),
    ],
)
def test_each_is_an_array_a_scalar_or_a_pointer(statement: str, wanted: list[object]) -> None:
    unit = lift(TEXT.replace("STATEMENT", statement))
    found = [a for a in read(unit, unit.kernels[0]).accesses if a.array != "x"]
    assert [(a.mode, a.array, str(a.index)) for a in found] == wanted
    assert {a.line for a in found} == {7}
