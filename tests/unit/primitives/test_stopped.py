"""Loops that leave the kernel: they end, and what is done by others is the same."""

from __future__ import annotations

import pytest

from optiml_magic.kernels.primitives.stopped import stopped
from tests.rewriting.writing import Array

from .alike import end_of, kernel_of, refused, written

TEXT = """\
#pragma optiml zero(out)
#pragma optiml launch k grid(cdiv(n, 64)) block(64)
__global__ void k(const int* c, int* out, int n, int m) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i > n - m) return;
    %s
    atomicAdd(out, 1);
}
"""


SEARCH = "for (int j = 0; j < m; j++) if (c[i + j] == 3) return;"
BODIES = {
    "plain": SEARCH,
    "hint": "#pragma unroll 2\n    for (int j = 0; j < m; j++) { if (c[i + j] == 3) { out[1] = 2; "
    "return; } }",
    "while": "int j = 0; while (j < m) { if (c[i + j] == 3) return; j++; }",
    "nested": "for (int j = 0; j < m; j++) { for (int l = 0; l < j; l++) { if (c[i + l] == 3) "
    "return; if (c[i + l] > 5) break; } if (c[i + j] == 4) return; }",
    "under a branch": f"if (c[i] > 0) {SEARCH}",
    "one behind the other": f"{SEARCH} {SEARCH.replace('== 3', '> 5')}",
    "in two branches": f"if (c[i] > 0) {{ {SEARCH} }} else {{ {SEARCH.replace('3', '4')} }}",
    "do": "do { if (c[i] == 3) return; } while (c[i] > 99);",
}

SEVERAL = ("one behind the other", "in two branches")


@pytest.mark.parametrize("name", BODIES)
def test_a_loop_ends_before_the_kernel_is_left(name: str) -> None:
    before = TEXT % BODIES[name]
    after = written(stopped(kernel_of(before)))
    assert after.count("return;") == (3 if name in SEVERAL else 2)
    arrays = {"c": Array("i4", ("n",), "positive"), "out": Array("i4", ("2",), "zeros")}
    assert end_of(before, after, arrays, {"n": 150, "m": 3}, {"n": 1, "m": 1}) == "same"


def test_kernels_that_stay() -> None:
    none = SEARCH.replace("return", "break")
    assert refused(stopped(kernel_of(TEXT % none))) == "no loop leaves the kernel"
