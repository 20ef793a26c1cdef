"""Tests that are the same in all rounds of a loop, around it."""

from __future__ import annotations

import pytest

from optiml_magic.kernels.primitives.hoisted import hoisted
from tests.rewriting.writing import Array

from .alike import end_of, kernel_of, refused, written

WINDOW = """\
#pragma optiml launch k grid(cdiv(w, 32), cdiv(h, 4)) block(32, 4)
__global__ void k(const float* a, float* o, int w, int h, int r) {
    int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
    if (x >= w || y >= h) return;
    float s = 0.0f;
    for (int i = -r; i <= r; ++i)
        for (int j = -r; j <= r; ++j) {
            %s
        }
    o[y * w + x] = s;
}
"""
ARRAYS = {"a": Array("f4", ("h", "w")), "o": Array("f4", ("h", "w"), "zeros")}
SIZES = {"w": 35, "h": 6, "r": 1}, {"w": 3, "h": 9, "r": 2}


@pytest.mark.parametrize(
    "inner",
    [
        "if (y + i >= 0 && x + j >= 0 && y + i < h && x + j < w) s += a[(y + i) * w + x + j];",
        "int v = y + i, u = x + j; if (v >= 0 && v < h && u >= 0 && u < w) { s += a[v * w + u]; }",
        "int v = y + i, u = x + j;\nif (!(v < 0 || v >= h || u < 0 || u >= w)) s += a[v * w + u];",
        "int v = y + i; if (v < 0 || v >= h) continue;\nif (x + j >= 0 && x + j < w) s += a[v * w + x + j];",
    ],
)
def test_rows_are_tested_around_the_loop_over_columns(inner: str) -> None:
    text = written(hoisted(kernel_of(WINDOW % inner)))
    around, _, within = text.partition("for (int i")[2].partition("for (int j")
    assert " h" in around
    assert " h" not in within.partition("o[y")[0]
    assert end_of(WINDOW % inner, text, ARRAYS, *SIZES) == "same"


@pytest.mark.parametrize(
    "inner",
    [
        "if (x + j >= 0 && x + j < w) s += a[y * w + x + j];",  # another in each round
        "s += 1.0f; if (y + i >= 0 && y + i < h) s += a[(y + i) * w + x];",  # more is done
        "if (y + i >= 0 && y + i < h) s += a[(y + i) * w + x]; else s += 1.0f;",
        "if (s < 3.0f) s += a[y * w + x];",  # a round changes it
        "if (a[y * w + x] > 0.0f) s += 1.0f;",  # from memory, where nothing may be
        "if (h / (r - 1) > y) s += a[y * w + x];",  # by 0, where there is no round
    ],
)
def test_other_tests_stay_in_the_loop(inner: str) -> None:
    reason = "no loop tests the same in all of its rounds"
    assert refused(hoisted(kernel_of(WINDOW % inner))) == reason
