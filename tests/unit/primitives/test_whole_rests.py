"""Rests by all elements of a ring of rows, as those of its rows."""

from __future__ import annotations

import pytest

from optiml_magic.kernels.primitives.whole_rests import whole_rests
from tests.rewriting.writing import Array

from .alike import end_of, kernel_of, refused, written

RING = """\
#pragma optiml launch k grid(cdiv(w, 8), cdiv(h, 4)) block(8, 4)
__global__ void k(const float* a, const int* p, float* out, int w, int h, int s, unsigned u) {
    int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
    if (x >= w || y >= h) return;
    int row = y * w;
    out[y * w + x] = a[AT];
}
"""
ARRAYS = {
    "a": Array("f4", ("h * 6", "w")), "p": Array("i4", ("h",)),
    "out": Array("f4", ("h", "w"), "zeros"),
}  # fmt: skip
RINGS = {
    "(row + w) % (w * h) + x": "((y + 1) % h * w) + x",
    "(row + w * h - w) % (w * h) + x": "((y + h - 1) % h * w) + x",
    "x + (y * w + 3 * w) % (h * w)": "((y + 3) % h * w)",
    "(row - w) % (w * h) + w * h + x": "((y - 1) % h * w)",  # one below zero stays one
    "(row * 3) % (w * 4) + x": "((y * 3) % 4 * w)",
    "(row * h + h * w) % (h * w * 5) + x": "((y + 1) % 5 * (h * w))",
    "(row + s * w) % (w * h) + x": "((y + s) % h * w)",
}


@pytest.mark.parametrize("at", RINGS)
def test_rests_by_elements_become_rests_by_rows(at: str) -> None:
    text = RING.replace("AT", at)
    after = written(whole_rests(kernel_of(text)))
    assert RINGS[at] in after, after
    for w, h in ((1, 1), (2, 1), (9, 5), (16, 3)):
        scalars = {"w": w, "h": h, "s": 1, "u": w}
        assert end_of(text, after, ARRAYS, scalars, {"w": 3, "h": 2, "s": 1, "u": 3}) == "same"


@pytest.mark.parametrize(
    "at",
    [
        "(row + x) % (w * h)",
        "(row + w) % h",
        "(row + w) % (w * h + 1) + x",
        "y * w + (x + 1) % w",
        "(unsigned)(row + w) % (unsigned)(w * h) + x",
        "(row + w) % (int)(u * h) + x",
        "(y * u + u) % (u * h) + x",
        "(y * (int)u - (int)u) % (h * (int)u) + w * h + x",
        "(int)((y * (long long)w + w) % (h * (long long)w)) + x",
        "(row + p[y] * w) % (p[x] * h)",
        "(row + (w = 4)) % (w * h) + x",
    ],
)
def test_other_rests_stay(at: str) -> None:
    assert refused(whole_rests(kernel_of(RING.replace("AT", at))))
