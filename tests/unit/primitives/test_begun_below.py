"""Maxima of a row of a thread's own, which begin below all numbers."""

from __future__ import annotations

import pytest

from optiml_magic.kernels.primitives.base import Kernel
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
    made = begun_below(kernel_of(before))
    after = written(made)
    assert isinstance(made, Kernel)
    assert "s[0]" not in after
    assert any("first element is NaN" in told for told in made.arithmetic)
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
        ("i < n; ++i) m", "i < n - 3; ++i) m"),  # the row has values where that has no rounds
        ("i < n; ++i) s", "i < n + 1; ++i) s"),
        ("float m = s[0];", "float m = s[0]; n -= 1;"),
        ("float m = s[0];", "float m = s[0]; s[0] = -100.0f;"),
        ("float m = s[0];", "s[0] = -100.0f; float m = s[0];"),
        ("s[i] = a[i] - threadIdx.x", "{ if (a[i] > 1.0f) break; s[i] = a[i]; }"),
    ],
)
def test_what_may_be_asked_for_stays(old: str, new: str) -> None:
    text = TEXT.replace(old, new)
    assert text != TEXT
    assert "no maximum" in refused(begun_below(kernel_of(text)))
