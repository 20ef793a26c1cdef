"""Two digits of an index that stand for one place, as one digit."""

from __future__ import annotations

import pytest

from optiml_magic.kernels.primitives.one_place import one_place
from tests.rewriting.writing import Array

from .alike import end_of, kernel_of, refused, written

TEXT = """\
#pragma optiml launch k grid(cdiv(n * c * h * w, 64)) block(64)
__global__ void k(const int* a, int* out, int n, int c, int h, int w) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n * c * h * w) return;
    int x = i % w, y = (i / w) % h;
    int b = i / (w * h * c);
    int s = 0;
    DOES
    out[i] = s;
}
"""
ARRAYS = {"a": Array("i4", ("n", "c", "h", "w")), "out": Array("i4", ("n", "c", "h", "w"), "zeros")}
SUM = "for (int q = 0; q < c; q++) s += a[((b * c + q) * h + y) * w + x];"


@pytest.mark.parametrize(
    "text",
    [
        TEXT.replace("DOES", SUM),
        TEXT.replace(
            "DOES", SUM.replace("((b * c + q) * h + y) * w + x", "(b * c + q) * h * w + y * w + x")
        ),
        TEXT.replace("DOES", SUM).replace(
            "int x = i % w, y = (i / w) % h;", "int y = i / w % h; int x = i % w;"
        ),
        TEXT.replace("DOES", "s = a[b * c * h * w + y * w + x] - a[i];"),
        TEXT.replace("DOES", SUM).replace("int x = i % w, y", "int x = i % w; long long y"),
    ],
)
def test_a_row_and_a_column_are_a_pixel(text: str) -> None:
    after = written(one_place(kernel_of(text)))
    assert "% (w * h)" in after
    large, small = {"n": 2, "c": 3, "h": 5, "w": 7}, {"n": 1, "c": 1, "h": 1, "w": 1}
    assert end_of(text, after, ARRAYS, large, small) == "same"


@pytest.mark.parametrize(
    "text",
    [
        TEXT.replace("DOES", SUM + " s += x;"),
        TEXT.replace("DOES", SUM + " if (y == 0) s = 0;"),
        TEXT.replace("DOES", SUM.replace("+ x]", "+ w - 1 - x]")),
        TEXT.replace("DOES", SUM.replace("h + y) * w", "h + h - 1 - y) * w")),
        TEXT.replace("DOES", "for (int q = 0; q <= y; q++) s += a[((b * c) * h + y) * w + x];"),
        TEXT.replace(
            "DOES", "for (int q = 0; q < c; q++) s += a[(b * c + q) * h * w + x * h + y];"
        ),
        TEXT.replace("DOES", "int p = y * w + x; s = a[p] + p;"),
        TEXT.replace("DOES", SUM).replace("(i / w) % h", "(i / h) % h"),
        TEXT.replace("DOES", SUM.replace("+ x]", "+ x / 2]")),
        TEXT.replace("DOES", "x = 0; " + SUM),
    ],
)
def test_others_stay(text: str) -> None:
    assert refused(one_place(kernel_of(text)))
