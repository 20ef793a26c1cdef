"""Launches of more threads than a guard lets work."""

from __future__ import annotations

import pytest

from optiml_magic.kernels.primitives.base import NotLegal
from optiml_magic.kernels.primitives.bounded import bounded
from optiml_magic.kernels.primitives.narrowed import narrowed
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


PLANE = """\
#pragma optiml launch k grid(cdiv(n, 16), cdiv(h, 4)) block(16, 4)
__global__ void k(const float* a, float* out, int n, int h, int m) {
    int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
    if (%s) return;
    out[y * n + x] = a[(y + m) * n + x + m];
}
"""
PLANES = {"a": Array("f4", ("h + m", "n + m")), "out": Array("f4", ("h", "n"), "zeros")}


@pytest.mark.parametrize(
    ("test", "grid"),
    [
        ("x >= n - m || y >= h - m", "grid(cdiv(n - m, 16), cdiv(h - m, 4))"),
        ("x >= n || y + m >= h", "grid(cdiv(n, 16), cdiv(h - m, 4))"),
        ("y >= h || x + m >= n", "grid(cdiv(n - m, 16), cdiv(h, 4))"),
        ("y < m || x < m || x >= n - m || y >= h - m", "grid(cdiv(n - m, 16), cdiv(h - m, 4))"),
    ],
)
def test_they_are_along_both_axes(test: str, grid: str) -> None:
    text = PLANE % test
    after = written(bounded(kernel_of(text)))
    assert grid in after
    for sizes in ({"n": 70, "h": 9, "m": 3}, {"n": 17, "h": 5, "m": 1}):
        assert end_of(text, after, PLANES, sizes, sizes) == "same"


@pytest.mark.parametrize("test", ["x >= n || y >= h", "x >= n || y * 2 >= h", "x >= n || y >= x"])
def test_rows_stay_where_nothing_says_how_many_work(test: str) -> None:
    with pytest.raises(NotLegal):
        narrowed(kernel_of(PLANE % test))
