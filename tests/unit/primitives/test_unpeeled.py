"""Loops from the second element on, begun at the first, of a thread's own row and of memory."""

from __future__ import annotations

import pytest

from optiml_magic.kernels.primitives.unpeeled import unpeeled
from tests.rewriting.writing import Array

from .alike import end_of, kernel_of, refused, written

TEXT = """\
#pragma optiml launch k grid(cdiv(h, 32)) block(32)
__global__ void k(const float* a, float* o, int h, int n) {
    int row = blockIdx.x * blockDim.x + threadIdx.x;
    if (row >= h) return;
    float s[64];
    for (int i = 0; i < n; ++i) s[i] = a[row * n + i];
    SEEK
    o[row * n] = m;
}
"""
ARRAYS = {"a": Array("f4", ("h", "n")), "o": Array("f4", ("h", "n"), "zeros")}
PLAIN = "float m = s[0]; for (int i = 1; i < n; ++i) m = fmaxf(m, s[i]);"


@pytest.mark.parametrize(
    "seek",
    [PLAIN, PLAIN.replace("s[", "a[row * n + "), PLAIN.replace("= s[0];", "= s[0]; s[1] = 9;")],
)
def test_it_begins_with_the_first(seek: str) -> None:
    before = TEXT.replace("SEEK", seek)
    if "s[1] = 9" in seek:  # which may be the first
        assert "may change" in refused(unpeeled(kernel_of(before), 1))
        return
    after = written(unpeeled(kernel_of(before), 1))
    assert end_of(before, after, ARRAYS, {"h": 37, "n": 9}, {"h": 3, "n": 1}) == "same"


@pytest.mark.parametrize(
    ("old", "new", "reason"),
    [
        ("m, s[i]", "m, s[i + 2]", "does not begin with the first"),
        ("m = s[0]", "m = s[2]", "does not begin with the first"),
        ("float m", "float z[2]; z[0] = z[1] = 3.0f; float m", "does not begin with the first"),
        ("= s[0];", "= s[0]; s[0] = 100.0f;", "may change in front"),
        ("= s[0];", "= o[row * n]; o[row * n] = 100.0f;", "may change in front"),
    ],
)
def test_another_element_is_not_taken_in(old: str, new: str, reason: str) -> None:
    seek = PLAIN.replace(old, new)
    seek = seek.replace("m, s[i]", "m, z[i % 2]") if " z" in new else seek
    seek = seek.replace("m, s[i]", "m, o[row * n + i]") if " o" in new else seek
    assert reason in refused(unpeeled(kernel_of(TEXT.replace("SEEK", seek)), 1))
