"""Launches of more threads than a guard lets work."""

from __future__ import annotations

import pytest

from optiml_magic.kernels.primitives.bounded import bounded
from tests.rewriting.writing import Array

from .alike import end_of, kernel_of, refused, written

TEXT = """\
#pragma optiml launch k grid(%s) block(32)
__global__ void k(const float* a, float* out, int n, int m) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (%s) return;
    float s = 0;
    for (int j = i; j < i + m; ++j) s += a[j];
    out[i] = s;
}
"""
ARRAYS = {"a": Array("f4", ("n + m",)), "out": Array("f4", ("n",), "zeros")}
SIZES = {"n": 70, "m": 9}, {"n": 33, "m": 1}


@pytest.mark.parametrize(
    ("grid", "test"),
    [
        ("cdiv(n, 32)", "i + m > n"),
        ("(n + 31) / 32", "i > n - m"),
        ("cdiv(n, 32)", "n - i < m"),
        ("cdiv(n, blockDim.x)".replace("blockDim.x", "32"), "i >= n - m + 1"),
    ],
)
def test_they_become_as_many_as_work(grid: str, test: str) -> None:
    text = TEXT % (grid, test)
    after = written(bounded(kernel_of(text)))
    assert "grid(cdiv(n - m + 1, 32))" in after
    assert "require n - m + 1 >= 1" in after
    assert "require n - m + 1 <= n" in after
    assert end_of(text, after, ARRAYS, *SIZES) == "same"


@pytest.mark.parametrize(
    ("grid", "test"),
    [
        ("cdiv(n, 32)", "i >= n"),
        ("cdiv(n, 32)", "i >= n - 1"),
    ],
)
def test_others_stay(grid: str, test: str) -> None:
    assert refused(bounded(kernel_of(TEXT % (grid, test))))
