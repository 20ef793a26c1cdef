"""Maxima of a row of a thread's own, which begin below all numbers."""

from __future__ import annotations

import pytest

from optiml_magic.kernels.primitives.begun_below import begun_below
from tests.rewriting.writing import Array

from .alike import end_of, kernel_of, refused, written

TEXT = """\
#pragma optiml launch k grid(1) block(64)
__global__ void k(const float* a, float* o, int n) {
    float s[32];
    for (int i = 0; i < n; ++i) s[i] = a[i] - threadIdx.x;
    float m = s[0];
    for (int i = 0; i < n; ++i) m = fmaxf(m, s[i]);
    o[threadIdx.x] = m;
}
"""
ARRAYS = {"a": Array("f4", ("n",)), "o": Array("f4", ("64",), "zeros")}


@pytest.mark.parametrize(
    ("old", "new"), [("", ""), ("m = fmaxf(m, s[i])", "if (s[i] > m) m = s[i]")]
)
def test_it_begins_below(old: str, new: str) -> None:
    before = TEXT.replace(old, new) if old else TEXT
    after = written(begun_below(kernel_of(before)))
    assert "s[0]" not in after
    assert end_of(before, after, ARRAYS, {"n": 31}, {"n": 1}) == "same"


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("int i = 0; i < n; ++i) m", "int i = 1; i < n; ++i) m"),
        ("m = s[0]", "m = s[1]"),
        ("m = s[0]", "m = a[0]"),
        ("m = fmaxf(m, s[i])", "m = fminf(m, s[i])"),
        ("m = fmaxf(m, s[i])", "m = fmaxf(m, s[i] * 0.5f)"),
        ("float m = s[0];", "float m = s[0]; o[0] = m;"),
        ("float s[32];", "float s[32] = {1.0f};"),
    ],
)
def test_what_may_be_asked_for_stays(old: str, new: str) -> None:
    text = TEXT.replace(old, new)
    assert text != TEXT
    assert "no maximum" in refused(begun_below(kernel_of(text)))
