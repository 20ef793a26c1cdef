"""Tables in constant memory, in the shared memory of blocks."""

from __future__ import annotations

import pytest

from optiml_magic.kernels.primitives.base import Kernel, Refused
from optiml_magic.kernels.primitives.constant_tables import constant_tables, constants_tabled
from optiml_magic.kernels.primitives.tabled import Table

from .running import same
from .shapes import applied, kernel, refused

TEXT = """\
__constant__ int turns[16] = {3, 1, 4, 1, 5, 9, 2, 6, 5, 3, 5, 8, 9, 7, 9, 3};
__constant__ float scale = 2.0f;
__device__ int twice(int x) { return turns[turns[x & 15]] + x; }
#pragma optiml launch k grid(cdiv(n, 16), 2) block(16, 2)
__global__ void k(const int* q, int* y, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    int j = blockIdx.y * blockDim.y + threadIdx.y;
    if (i >= n || j >= 3) return;
    %s
}
"""
BODIES = [
    "y[i * 3 + j] = turns[q[i] & 15] + j;",
    "y[i * 3 + j] = twice(q[i] + j);",
    "int s = 0; for (int k = 0; k < 5; ++k) s += turns[(q[i] + k) & 15] * turns[j]; y[i * 3 + j] = s;",
]
SHAPES = {"q": ("i4", "n"), "y": ("i4", "n", "3")}


def tables(made: Kernel) -> list[Table]:
    return [one for one in constant_tables(made) if isinstance(one, Table)]


@pytest.mark.parametrize("body", BODIES)
@pytest.mark.parametrize("n", [1, 35])
def test_blocks_bring_them(body: str, n: int) -> None:
    text = TEXT % body
    (table,) = tables(kernel(text))
    assert (table.array, table.count, table.bytes) == ("turns", 16, 64)
    made = constants_tabled(kernel(text), [("turns", 16)])
    assert "__shared__ __align__(16) int turns_table[16];" in applied(made).program.text
    same(text, made, SHAPES, {"n": n})


@pytest.mark.parametrize(
    "body",
    ["y[i * 3 + j] = turns[j];", "y[i * 3 + j] = turns[blockIdx.x & 15];",
     "const int* turns = q; y[i * 3 + j] = turns[q[i] & 0];"],
)  # fmt: skip
def test_what_a_warp_asks_for_at_once_stays(body: str) -> None:
    assert not tables(kernel(TEXT % body))


def test_a_kernel_beside_it_that_asks_as_well() -> None:
    other = "__global__ void other(int* y) { y[threadIdx.x] = twice(threadIdx.x); }\n"
    text = TEXT.replace("#pragma", other + "#pragma", 1) % BODIES[1]
    found = constants_tabled(kernel(text), [("turns", 16)])
    assert isinstance(found, Refused)
    assert "another kernel" in refused(found)[0]
