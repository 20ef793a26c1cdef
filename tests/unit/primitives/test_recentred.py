"""Counters that are moved to the middle of what they count, and those that may not be."""

from __future__ import annotations

import pytest

from optiml_magic.kernels.primitives.recentred import recentred
from tests.rewriting.writing import Array

from .alike import end_of, kernel_of, refused, written

TEXT = """\
#pragma optiml launch k grid(cdiv(w, 16), cdiv(h, 8)) block(16, 8)
__global__ void k(const float* a, float* out, int w, int h, int most) {
    int x = blockIdx.x * blockDim.x + threadIdx.x;
    int y = blockIdx.y * blockDim.y + threadIdx.y;
    if (x >= w || y >= h) return;
    float sum = 0;
    for (int r = 0; r <= most; r++) {
        %s
    }
    out[y * w + x] = sum;
}
"""
ARRAYS = {"a": Array("f4", ("h", "w")), "out": Array("f4", ("h", "w"), "zeros")}
TWO = "for (int i = 0; i < 2 * r + 1; i++) for (int j = 0; j < 2 * r + 1; j++) "
INSIDE = "int v = y + i - r, u = x - r + j; if (v >= 0 && v < h && u >= 0 && u < w) "


@pytest.mark.parametrize(
    ("body", "made"),
    [
        (TWO + "{ " + INSIDE + "sum += a[v * w + u]; }", "int v = i + y, u = j + x;"),
        ("int d = 2 * r + 1, top = y - r; for (int i = 0; i < d; i++) if (top + i >= 0 && top + i < h) sum += a[(top + i) * w + x];", "for (int i = -r; i < r + 1; i++)"),
        ("for (int i = 2 * r; i >= 0; i--) sum += a[min(max(y + i - r, 0), h - 1) * w + x];", "for (int i = r; i >= -r; i--)"),
        ("for (int i = 0; i <= 2 * r; i++) for (int j = 0; j < 3; j++) sum += (i - r) * (j + 1) * a[y * w + x];", "(i * j + i)"),
        ("for (int i = 0; i < 2 * r + 1; i++) { for (int j = 0; j < 2 * r; j++) sum += j - r; for (int j = i; j < r; j++) sum += (j - r) * (i - r); }", "int j = -r;"),
        ("for (int i = 0; i <= 2 * r; i++) sum += abs(i - r) * ((r - i) / 2 + (i - r) % 3);", "abs(i)"),
        ("for (int i = 0; i <= 2 * r; i++) for (int j = i; j <= 2 * r; j++) sum += (i - r) * 3 + (j - r);", "int j = i;"),
    ],
)  # fmt: skip
def test_counters_begin_in_the_middle(body: str, made: str) -> None:
    text = TEXT % body
    after = written(recentred(kernel_of(text)))
    assert made in after, after
    sizes = {"w": 19, "h": 11, "most": 4}, {"w": 7, "h": 3, "most": 0}
    assert end_of(text, after, ARRAYS, *sizes) == "same"


@pytest.mark.parametrize(
    ("body", "why"),
    [
        (TWO + "sum += a[(y * w + x + i * 0 + r) % (w * h)];", "what is summed depends on `r`"),
        (TWO + "sum += i;", "what is summed depends on `r`"),
        (TWO + "sum += i - r + j;", "what is summed depends on `r`"),
        (TWO + "sum += (i - r) * (i - r) + r;", "`i` is multiplied by itself"),
        (TWO + "sum += i - 2 * r;", "what is summed depends on `r`"),
        (TWO + "sum += i - r * 1.0f;", "what is summed depends on `r`"),
        (TWO + "sum += (unsigned)i - r;", "what is summed depends on `r`"),
        (TWO + "{ int t = i; t -= r; sum += t; }", "what is summed depends on `r`"),
        ("for (long long i = 0; i <= 2 * r; i++) sum += i - r;", "two counters are of two types"),
        ("for (int i = 0; i <= 2 * r; i += 2) sum += i - r;", "where a loop ends is not followed"),
        ("for (int i = 0; i <= 2 * r; i++) { sum += i - r; if (sum > 3) i++; }", "a loop does not count in its head alone"),
        ("for (int i = 0; i < 3; i++) sum += i - r;", "no counter is moved by that of a loop around it"),
        ("for (int i = 0; i < 2 * r + 1; i++) { int r = 1; sum += i - r; }", "`r` is the name of several locals"),
        ("for (int i = 0; i < 2 * r + 1; i++) { for (int j = 0; j < 2 * r; j++) sum += j - 2 * r; for (int j = 0; j < r; j++) sum += j; }", "what is summed depends on `r`"),
        ("for (int i = 0; i < 2 * r + 1; i++) { for (int j = 0; j < 2 * r; j++) sum += j - r; for (int j = 0; j < 3; j++) sum += j - r; }", "what is summed depends on `r`"),
        ("int y2 = y - r; for (int i = 0; i < 2 * r + 1; i++) { int y = 3; sum += y2 + i + y; }", "`y` is the name of several locals"),
        ("for (int i = 0; i < 2 * r + 1; i++) { float r = 1; sum += i - r; }", "`r` is the name of several locals"),
    ],
)  # fmt: skip
def test_others_stay(body: str, why: str) -> None:
    assert refused(recentred(kernel_of(TEXT % body))).startswith(why)
