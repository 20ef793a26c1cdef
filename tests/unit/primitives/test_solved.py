"""Loops whose counter is a part of a sum in their test."""

from __future__ import annotations

import re

import pytest

from optiml_magic.kernels.primitives.solved import solved
from tests.rewriting.writing import Array

from .alike import end_of, kernel_of, refused, written

TEXT = """\
#pragma optiml launch k grid(cdiv(n, 32)) block(32)
__global__ void k(const float* a, float* out, int n, int m, unsigned u, long long w) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    const unsigned t = threadIdx.x;
    if (i >= n) return;
    float s = 0;
    for (%s) s += a[j];
    out[i] = s;
}
"""
ARRAYS = {"a": Array("f4", ("n + m",)), "out": Array("f4", ("n",), "zeros")}


@pytest.mark.parametrize(
    ("head", "test"),
    [
        ("int j = 0; j + i < n; j++", "j < (n - i)"),
        ("int j = 0; i + j <= n - 1; ++j", "j < (n - i)"),
        ("int j = 2; n > i + j; j += 1", "j < (n - i)"),
        ("int j = i; n - j > m; j++", "j < (n - m)"),
    ],
)
def test_it_stands_alone(head: str, test: str) -> None:
    after = written(solved(kernel_of(TEXT % head)))
    assert test in after
    sizes = ({"n": 70, "m": 9, "u": 3, "w": 2}, {"n": 33, "m": 1, "u": 1, "w": 5})
    assert end_of(TEXT % head, after, ARRAYS, *sizes) == "same"


@pytest.mark.parametrize(
    "head",
    [
        "int j = 0; j < n - i; j++",
        "int j = 0; j + t < n; j++",
        "int j = 0; j + u < u + 2; j++",
        "int j = 0; j + w < w + 2; j++",
        "int j = 0; j + j < n; j++",
        "int j = 0; j + i < n; j += 2",
        "int j = 0; j * i < 2 * i; j++",
        "int j = 0; j + threadIdx.x < n; j++",
    ],
)
def test_others_stay(head: str) -> None:
    assert refused(solved(kernel_of(TEXT % head))) == "all counters stand alone"


@pytest.mark.parametrize(
    ("head", "test"),
    [
        ("int j = i; j < i + m && j < n; j++", "j < min(i + m, n)"),
        ("int j = i; n > j && j <= i + m - 1; ++j", "j < min(n, i + m)"),
        ("int j = 0; j < m && j + i < n; j++", "j < min(m, n - i)"),
        ("int j = 0; j < m && i + j < n && j < 5; j++", "j < min(min(m, n - i), 5)"),
    ],
)
def test_of_two_ends_it_is_the_lesser(head: str, test: str) -> None:
    after = written(solved(kernel_of(TEXT % head)))
    assert re.sub(r"[()]", "", test) in re.sub(r"[()]", "", after)
    sizes = ({"n": 70, "m": 9, "u": 3, "w": 2}, {"n": 33, "m": 1, "u": 1, "w": 5})
    assert end_of(TEXT % head, after, ARRAYS, *sizes) == "same"


def test_of_a_while_loop_too() -> None:
    text = TEXT.replace("for (%s) s += a[j];", "int j = i; while (j < n && j < i + m) s += a[j++];")
    after = written(solved(kernel_of(text)))
    assert "min(n, " in after
    sizes = ({"n": 70, "m": 9, "u": 3, "w": 2}, {"n": 33, "m": 1, "u": 1, "w": 5})
    assert end_of(text, after, ARRAYS, *sizes) == "same"


@pytest.mark.parametrize(
    "head",
    [
        "int j = 0; j < m && a[j] > 0; j++",
        "int j = 0; j < m && s < 3; j++",
        "int j = 0; j < m && j < u; j++",
        "int j = 0; j < m && j < w; j++",
        "int j = 0; j < m || j < n; j++",
        "int j = 0; j < m && j != n; j++",
        "int j = 0; j < m && i < n; j++",
        "int j = 0; j < m && j < n; j += 2",
        "int j = n - 1; j >= 0 && j > i - m; j--",
    ],
)
def test_tests_that_say_more_than_ends_stay(head: str) -> None:
    assert refused(solved(kernel_of(TEXT % head))) == "all counters stand alone"
