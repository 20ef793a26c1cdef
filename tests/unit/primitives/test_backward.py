"""Loops whose rounds are made from the last one to the first, and those that keep their order."""

from __future__ import annotations

import pytest

from optiml_magic.kernels.primitives.backward import backward
from tests.rewriting.writing import Array

from .alike import end_of, kernel_of, refused, written

TEXT = """\
#pragma optiml launch k grid(cdiv(n, 32)) block(32)
__global__ void k(const float* a, float* out, int n, int m) {
    int t = blockIdx.x * blockDim.x + threadIdx.x;
    if (t >= n) return;
    float s = 0;
    int last = 0;
    %s
    out[t * (m + 1) + m] = s + last;
}
"""
ARRAYS = {"a": Array("f4", ("n", "m")), "out": Array("f4", ("n", "m + 1"), "zeros")}


@pytest.mark.parametrize(
    ("body", "made"),
    [
        ("for (int k = 0; k < m; k++) out[t * (m + 1) + k] = a[t * m + k];", "for (int k = m - 1; k >= 0; --k)"),
        ("for (int k = 1; k <= m - 1; ++k) { float v = a[t * m + k]; out[t * (m + 1) + k] = v * k; }", "for (int k = m - 1; k >= 1; --k)"),
        ("for (int k = m - 1; k > 0; k--) out[t * (m + 1) + k] = k;", "for (int k = 1; k <= m - 1; ++k)"),
        ("for (int k = t - 2; k < m + t - 2; k++) s += a[t * m + k - t + 2];", "for (int k = (m + t - 2) - 1; k >= t - 2; --k)"),
        ("for (int k = 0; k < m; k++) { if (a[t * m + k] < 0) continue; out[t * (m + 1) + k] = 1; }", "--k"),
    ],
)  # fmt: skip
def test_rounds_are_turned(body: str, made: str) -> None:
    after = written(backward(kernel_of(TEXT % body), 0))
    assert made in after, after
    assert end_of(TEXT % body, after, ARRAYS, {"n": 70, "m": 9}, {"n": 33, "m": 1}) == "same"


@pytest.mark.parametrize(
    ("body", "why"),
    [
        ("for (int k = 0; k < m; k++) { s = s * 0.5f + a[t * m + k]; }", "`s` goes from round to round"),
        ("for (int k = 0; k < m; k++) last = k;", "`last` goes from round to round"),
        ("for (int k = 0; k < m; k++) { out[t * (m + 1) + k] = s; s += a[t * m + k]; }", "`s` goes from round to round"),
        ("for (int k = 0; k < m; k++) out[t * (m + 1)] = k;", "two rounds may store to one element"),
        ("for (int k = 1; k < m; k++) out[t * (m + 1) + k] = out[t * (m + 1) + k - 1] + 1;", "a round may meet what another has stored"),
        ("for (int k = 0; k < m; k++) { if (a[t * m + k] > 1) break; out[t * (m + 1) + k] = 1; }", "the loop does not count by one in its head"),
        ("for (int k = 0; k < m; k++) { if (a[t * m + k] > 1) return; out[t * (m + 1) + k] = 1; }", "the loop does not count by one in its head"),
        ("for (int k = 0; k < m; k += 2) out[t * (m + 1) + k] = 1;", "the loop does not count by one in its head"),
        ("for (unsigned k = 0; k < m; k++) out[t * (m + 1) + k] = 1;", "where the loop ends is not followed"),
        ("for (int k = threadIdx.x - t; k < m; k++) out[t * (m + 1) + k] = 1;", "a counter below zero"),
        ("for (int k = last; k < m; k++) { out[t * (m + 1) + k] = 1; last++; }", "the ends of the loop change in it"),
        ("s = -9; for (int k = 0; k < m; k++) if (a[t * m + k] > s) { s = a[t * m + k]; last = k; }", "the order of its rounds decides what is chosen"),
    ],
)  # fmt: skip
def test_others_keep_their_order(body: str, why: str) -> None:
    assert refused(backward(kernel_of(TEXT % body), 0)).startswith(why)
