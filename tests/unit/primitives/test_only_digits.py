"""Indices that are their own rests, by numbers that they never reach."""

from __future__ import annotations

import pytest

from optiml_magic.kernels.primitives.only_digits import only_digits
from tests.rewriting.writing import Array

from .alike import end_of, kernel_of, refused, written

TEXT = """\
#define M 6
#pragma optiml launch k grid(cdiv(w, 32), M * 1) block(32)
__global__ void k(const float* a, float* o, int w) {
    int x = blockIdx.x * blockDim.x + threadIdx.x;
    int p = blockIdx.y;
    int image = p / M, filter = p % M;
    if (x < w) o[(image * M + filter) * w + x] = a[(filter * M + image) * w + x];
}
"""
ARRAYS = {"a": Array("f4", ("36 * w",)), "o": Array("f4", ("6 * w",), "zeros")}


@pytest.mark.parametrize(
    ("text", "made"),
    [
        (TEXT, "image = 0, filter = p;"),
        (TEXT.replace("int p = blockIdx.y", "unsigned p = blockIdx.y"), "image = 0u, filter = p;"),
        (TEXT.replace("p / M, filter = p % M", "(int)blockIdx.y / 7, filter = p"), "image = 0,"),
    ],
)
def test_one_digit_is_all(text: str, made: str) -> None:
    after = written(only_digits(kernel_of(text)))
    assert made in after
    assert end_of(text, after, ARRAYS, {"w": 70}, {"w": 5}) == "same"


@pytest.mark.parametrize(
    "text",
    [
        TEXT.replace("M * 1", "M * 2"),
        TEXT.replace("p / M, filter = p % M", "p / 5, filter = p % 5"),
        TEXT.replace("M * 1", "w"),
        TEXT.replace("p / M, filter = p % M", "(p + 1) / M, filter = (p + 1) % M"),
        TEXT.replace("int image", "p += 1; int image"),
        TEXT.replace("p / M, filter = p % M", "(long long)p / M, filter = (long long)p % M"),
    ],
)
def test_of_more_digits_nothing_is_known(text: str) -> None:
    said = "it divides no index by as many threads as there are"
    assert refused(only_digits(kernel_of(text))) == said
