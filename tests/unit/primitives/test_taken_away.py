"""Rests that are spelled as a difference, as remainders."""

from __future__ import annotations

import pytest

from optiml_magic.kernels.primitives.taken_away import taken_away
from tests.rewriting.writing import Array

from .alike import end_of, kernel_of, refused, written

TEXT = """\
#pragma optiml launch k grid(cdiv(n * h * w, 64)) block(64)
__global__ void k(const int* a, int* out, int n, int h, int w) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n * h * w) return;
    %s
    out[i] = a[b * h * w + r] + r;
}
"""
ARRAYS = {"a": Array("i4", ("n", "h", "w")), "out": Array("i4", ("n", "h", "w"), "zeros")}


@pytest.mark.parametrize(
    ("body", "words"),
    [
        ("int hw = h * w, b = i / hw, r = i - b * hw;", "r = i % hw"),
        ("int hw = h * w, b = i / hw, r = i - hw * b;", "r = i % hw"),
        ("int b = i / (h * w), r = i - b * h * w;", "r = i % (h * w)"),
        ("int b = i / (h * w), r = i - b * (h * w);", "r = i % (h * w)"),
        ("int hw = h * w, b = i / hw, r = i - b * h * w;", "r = i % (h * w)"),
        ("int b = i / h / w, r = i - i / (h * w) * (h * w);", "r = i % (h * w)"),
        ("int b = i / 6; int r = i - b * 6; b = 0;", None),
        ("const int q = i / 6; int b = 0, r = i - q * 6;", "r = i % 6"),
        ("int b = 0, q = -i / w, r = -i - q * w; r = -r;", "r = -i % w"),
        ("int b = 0, q = (i - 9) / w, r = (i - 9) - q * w; r *= r;", "r = (i - 9) % w"),
        ("int b = 0, r = 0; for (int j = 0; j < 3; j++) { int q = j / 2; r += j - q * 2; }", None),
        ("unsigned u = i, v = w, q = u / v, b = 0, r = u - q * v;", "r = u % v"),
        ("long long u = i, v = w, q = u / v, b = 0, r = u - q * v;", "r = u % v"),
        ("int b = 0, q = threadIdx.x / 8, r = threadIdx.x - q * 8;", None),
    ],
)
def test_a_rest_is_a_remainder(body: str, words: str | None) -> None:
    text = TEXT % body
    made = taken_away(kernel_of(text))
    if words is None:
        assert refused(made)
        return
    after = written(made)
    assert words in after
    large, small = {"n": 3, "h": 5, "w": 7}, {"n": 1, "h": 1, "w": 1}
    assert end_of(text, after, ARRAYS, large, small) == "same"


@pytest.mark.parametrize(
    "body",
    [
        "int b = 0, q = i / w; int r = i - q * h;",  # by another size
        "int b = 0, q = i / w; int r = i - q;",
        "int b = 0, q = i / w; int r = i - q * w * h;",
        "int b = 0, j = i + 1, q = j / w; int r = i - q * w;",  # of another number
        "int b = 0, q = i / w; q = 0; int r = i - q * w;",  # a quotient that changes
        "int b = 0, q = i / w; i = 3; int r = i - q * w;",  # an index that changes
        "int b = 0, q = i / w; w = 3; int r = i - q * w;",  # a size that changes
        "int b = 0, v = w, q = i / v; v = 3; int r = i - q * v;",
        "int b = 0, q = i / w; int& l = i; l = 3; int r = i - q * w;",
        "int b = 0, q = i / w; int* l = &q; *l = 3; int r = i - q * w;",
        "int b = 0; short q = i / w; int r = i - q * w;",  # a quotient of fewer bits
        "int b = 0; unsigned char q = i / 2; int r = i - q * 2;",
        "int b = 0; int r = i - (char)(i / 2) * 2;",
        "int b = 0; unsigned q = i / w; int r = i - q * w;",  # of another sign
        "int b = 0; float q = i / w; int r = i - q * w;",
        "int b = 0; float f = i, q = f / 3; int r = f - q * 3;",  # no whole numbers
        "int b = 0; long long q = i / w; int r = i - q * w;",
        "int b = 0, q = a[0] / w; int r = a[0] - q * w;",  # of memory
        "int b = 0, q = i / w; { int w = 3; b = i - q * w; } int r = 0;",  # a hidden size
        "int b = 0; if (i > 3) { int q = i / w; b = q; } int q = 0, r = i - q * w;",
    ],
)
def test_others_stay(body: str) -> None:
    assert refused(taken_away(kernel_of(TEXT % body)))
