"""Sums of squares of differences as sums of products, and the loop as it was where digits cancel."""

from __future__ import annotations

import pytest

from optiml_magic.kernels.primitives.multiplied import multiplied
from optiml_magic.proposers.rewrites.blocked_product import BlockedProduct
from tests.ideas import asked
from tests.rewriting.writing import Array

from .alike import end_of, kernel_of, refused, written

TEXT = """\
#pragma optiml launch k grid(cdiv(m, 16), cdiv(n, 16)) block(16, 16)
__global__ void k(const float* p, const float* q, float* out, int n, int m, int d) {
    int j = blockIdx.x * blockDim.x + threadIdx.x, i = blockIdx.y * blockDim.y + threadIdx.y;
    if (i >= n || j >= m) return;
    float sum = %s;
    for (int k = 0; k < d; k++) {
        %s
    }
    out[i * m + j] = sum;
}
"""
ROUND = "float diff = p[i * d + k] - q[j * d + k]; sum += diff * diff;"
ARRAYS = {
    "p": Array("f4", ("n * d",)), "q": Array("f4", ("m * d",)), "out": Array("f4", ("n * m",)),
}  # fmt: skip
SIZES = {"n": 19, "m": 33, "d": 7}, {"n": 2, "m": 3, "d": 40}


@pytest.mark.parametrize(
    ("begin", "round_"),
    [
        ("0.0f", ROUND),
        ("3.5f", "sum += (p[i * d + k] - q[j * d + k]) * (p[i * d + k] - q[j * d + k]);"),
        ("0", "double e = p[i * d + k] - q[j * d + k]; float c = e; sum += c * c;"),
        ("0", "int c = (int)p[i * d + k] - (int)q[j * d + k]; long long e = c; sum += e * e;"),
        ("0", "float a = p[i * d + k], b = 2.0f * q[j * d + k]; float c = a - b; sum = sum + c * c;"),
    ],
)  # fmt: skip
def test_the_sum_is_the_same_but_for_its_last_bits(begin: str, round_: str) -> None:
    text = TEXT % (begin, round_)
    after = written(multiplied(kernel_of(text), 0))
    assert "products += left * right;" in after
    assert end_of(text, after, ARRAYS, *SIZES, rounds=True) == "same"


def test_where_digits_cancel_the_differences_are_squared() -> None:
    text = TEXT % (
        "0.0f",
        "float diff = (p[i * d + k] + 4096.0f) - (q[j * d + k] + 4096.0f); sum += diff * diff;",
    )
    after = written(multiplied(kernel_of(text), 0))
    assert end_of(text, after, ARRAYS, *SIZES, rounds=True) == "same"
    wrong = after.replace("16 * rest > squares", "true")
    assert end_of(text, wrong, ARRAYS, *SIZES, rounds=True) != "same"


@pytest.mark.parametrize(
    "round_",
    [
        "sum += p[i * d + k] * q[j * d + k];",
        "float diff = p[i * d + k] - q[j * d + k]; sum += diff;",
        "float diff = p[i * d + k] - q[j * d + k]; if (diff > 0) sum += diff * diff;",
        "float diff = p[i * d + k] - q[j * d + k]; sum += diff * diff; out[0] = 1;",
        "float a = p[i * d + k] - q[k], b = q[j * d + k] - p[k]; sum += a * b;",
        "int diff = p[i * d + k] - q[j * d + k]; sum += diff * diff;",
        "float diff = p[i * d + k] - q[j * d + k]; int whole = diff; sum += diff * whole;",
        "float diff = (int)(p[i * d + k] - q[j * d + k]); sum += diff * diff;",
        "float diff = (i * d + k + 0u) - (j * d + k); sum += diff * diff;",
        "unsigned char diff = (int)p[k] - (int)q[k]; sum += diff * diff;",
    ],
)
def test_other_sums_stay(round_: str) -> None:
    assert refused(multiplied(kernel_of(TEXT % ("0", round_)), 0))


def test_tiles_have_the_squares_of_their_rows_and_columns_once() -> None:
    ideas, _ = asked(BlockedProduct(), TEXT % ("0.0f", ROUND))
    (idea,) = (idea for idea in ideas if "squares multiplied out" in idea.title)
    assert "how sums of squares are made" in idea.arithmetic
    text = idea.make()
    assert isinstance(text, str)
    assert "left_squares_part[part] += left * left;" in text
    assert "again |= !(16 * rest > squares);" in text
    assert end_of(TEXT % ("0.0f", ROUND), text, ARRAYS, *SIZES, rounds=True) == "same"
