"""Indices that go around once: compared, in the place of a division."""

from __future__ import annotations

import pytest

from optiml_magic.kernels.primitives.wrapped import wrapped
from tests.rewriting.writing import Array

from .alike import end_of, kernel_of, refused, written

RING = """\
#pragma optiml launch k grid(cdiv(w, 8), cdiv(h, 4)) block(8, 4)
__global__ void k(const float* a, float* out, int w, int h, int s) {
    int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
    if (x >= w || y >= h) return;
    out[y * w + x] = a[AT];
}
"""
ARRAYS = {"a": Array("f4", ("h", "w")), "out": Array("f4", ("h", "w"), "zeros")}
RINGS = {
    "y * w + (x + 1) % w": "(x + 1 >= w ? x + 1 - w : x + 1)",
    "y * w + (x - 1 + w) % w": "(x - 1 + w >= w ? x - 1 : x - 1 + w)",
    "(y + h - 1) % h * w + x": "(y + h - 1 >= h ? y + h - 1 - h : y + h - 1)",
    "y * w + (w + x) % w": "a[y * w + x]",
    "y * w + (x * 2) % w": "(x * 2 >= w ? x * 2 - w : x * 2)",
    "y * w + (x + 1 + w) % w": "(x + 1 >= w ? x + 1 - w : x + 1)",
    "(y + 2 * h + 1) % h * w + x": "(y + 2 * h + 1 - h - h >= h ?",
    "y * w + (w - 1 - x) % w": "y * w + (w - 1 - x)",
    "(unsigned)(y * w + (x + 1) % w)": "(x + 1 >= w ? x + 1 - w : x + 1)",
}


@pytest.mark.parametrize("at", RINGS)
def test_a_place_within_one_turn_is_compared(at: str) -> None:
    text = RING.replace("AT", at)
    after = written(wrapped(kernel_of(text)))
    assert "%" not in after
    assert RINGS[at] in after
    for w, h in ((1, 1), (2, 1), (9, 5), (16, 3)):
        scalars = {"w": w, "h": h, "s": 1}
        assert end_of(text, after, ARRAYS, scalars, {"w": 3, "h": 2, "s": 1}) == "same"


@pytest.mark.parametrize(
    "at",
    [
        "y * w + (x - 1) % w",  # -1 stays -1, and is no place at all
        "y * w + (x + 2) % w",  # of one column that is two turns
        "y * w + (x + s) % w",
        "y * w + (x * 3) % w",
        "y * w + x % 4",  # a shift already
        "y * w + (x + (int)a[0]) % w",
    ],
)
def test_what_may_be_further_away_is_divided(at: str) -> None:
    assert "goes around once" in refused(wrapped(kernel_of(RING.replace("AT", at))))
