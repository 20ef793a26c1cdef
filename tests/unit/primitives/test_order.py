"""One index taken apart the other way round: the same pairs, other neighbours."""

from __future__ import annotations

import pytest

from optiml_magic.kernels.primitives.order import reordered
from tests.present import SOAK
from tests.rewriting.writing import Array

from .alike import end_of, kernel_of, refused, written

FLAT = """\
#pragma optiml launch k grid(cdiv(rows * cols, 64)) block(64)
__global__ void k(const float* a, float* o, int rows, int cols) {
    int t = blockIdx.x * blockDim.x + threadIdx.x;
    if (t >= rows * cols) return;
    int col = t / rows, row = t % rows;
    o[row * cols + col] = 2.0f * a[row * cols + col];
}
"""
ARRAYS = {"a": Array("f4", ("rows", "cols")), "o": Array("f4", ("rows", "cols"), "zeros")}


@pytest.mark.parametrize(
    "text",
    [
        FLAT,
        FLAT.replace("t / rows", "(blockIdx.x * blockDim.x + threadIdx.x) / rows"),
        FLAT.replace("if (t >= rows * cols) return;", "if (t < cols * rows)").replace(
            "int col = t / rows, row = t % rows;\n    ", ""
        ).replace("row * cols + col", "(t % rows) * cols + t / rows"),
    ],
)  # fmt: skip
def test_quotient_and_rest(text: str) -> None:
    after = written(reordered(kernel_of(text)))
    assert "% cols" in after
    assert "/ cols" in after
    if SOAK or text is FLAT:
        sizes = {"rows": 5, "cols": 37}, {"rows": 13, "cols": 1}
        assert end_of(text, after, ARRAYS, *sizes) == "same"


@pytest.mark.parametrize(
    ("old", "new", "reason"),
    [
        ("2.0f", "t", "its index is used as it is, line 2"),
        ("t % rows", "t % cols", "divided by two sizes"),
        ("2.0f", "(t % 3)", "not one quotient and one rest"),
        (
            "    o[",
            "    if (t > 3) o[",
            "some of its threads are treated differently from the others, line 6",
        ),
        (
            "    o[",
            "    if (t > 3) col += 0;\n    o[",
            "some of its threads are treated differently",
        ),
        ("rows * cols) return", "total) return", "is not a product of two sizes"),
        ("    int col", "    cols = cols / 2;\n    int col", "`cols` changes in the kernel"),
        ("block(64)", "block(32, 2)", "its blocks are not one-dimensional"),
        ("    o[", "    __syncthreads();\n    o[", "its threads wait for each other, line 6"),
    ],
)
def test_refused(old: str, new: str, reason: str) -> None:
    text = FLAT.replace("int cols)", "int cols, int total)") if "total" in new else FLAT
    assert reason in refused(reordered(kernel_of(text.replace(old, new))))
