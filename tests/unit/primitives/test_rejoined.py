"""Numbers that are put together of their digits again."""

from __future__ import annotations

import pytest

from optiml_magic.kernels.primitives.rejoined import rejoined
from tests.rewriting.writing import Array

from .alike import end_of, kernel_of, refused, written

TEXT = """\
#pragma optiml launch k grid(cdiv(n, 32)) block(32)
__global__ void k(const int* a, int* o, int n) {
    int i = blockIdx.x * 32 + threadIdx.x;
    if (i >= n) return;
    TYPE x = a[i];
    o[i] = (int)(VALUE);
}
"""
ARRAYS = {"a": Array("i4", ("n",)), "o": Array("i4", ("n",), "zeros")}


@pytest.mark.parametrize("kind", ["int", "unsigned", "long long"])
@pytest.mark.parametrize(
    ("value", "now"),
    [
        ("x % 24 / 4 + x / 24 * 6", "x / 4"),
        ("x / 24 * 6 + 7 + x % 24 / 4", "7 + x / 4"),
        ("3 * (6 * (x / 24) + i + x % 24 / 4)", "3 * (i + x / 4)"),
        ("(x + 3) % 24 % 8 - x", "(x + 3) % 8 - x"),
        ("(x % 24 / 4 + x / 24 * 6) % 5", "(x / 4) % 5"),
        ("x % 24 % 8 % 2", "x % 2"),
    ],
)
def test_they_are_whole_again_whatever_the_sign(kind: str, value: str, now: str) -> None:
    before = TEXT.replace("TYPE", kind).replace("VALUE", value)
    after = written(rejoined(kernel_of(before)))
    assert now.replace("(x / 4) % 5", "x / 4 % 5") in after.replace("(x / 4) % 5", "x / 4 % 5")
    assert end_of(before, after, ARRAYS, {"n": 371}, {"n": 3}) == "same"


@pytest.mark.parametrize(
    "value",
    [
        "x % 24 / 4 + x / 24 * 5",
        "x % 24 / 5 + x / 24 * 4",
        "x % 24 / 4 + (x + 1) / 24 * 6",
        "x % 24 / 4 - x / 24 * 6",
        "x % 24 % 7",
        "(int)(x % 24) % n + x / 24",
    ],
)
def test_others_stay(value: str) -> None:
    before = TEXT.replace("TYPE", "int").replace("VALUE", value)
    assert "digits" in refused(rejoined(kernel_of(before)))
