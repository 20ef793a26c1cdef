"""What a loop computed of an element that it keeps, taken by the loops behind it."""

from __future__ import annotations

import pytest

from optiml_magic.kernels.primitives.base import Kernel, Refused

from .running import same
from .shapes import applied
from .test_kept import COLUMNS, LARGEST, kept

SUM = "float s = 0.0f; for (int r = 0; r < h; ++r) s += expf(a[r * w + c] - m);"
SHARES = "for (int q = 0; q < h; ++q) out[q * w + c] = expf(a[q * w + c] - m) / s;"
SHAPES = {"a": ("h", "w"), "b": ("h",), "out": ("h", "w")}


def made(*loops: str) -> Kernel | Refused:
    return kept(COLUMNS % "\n".join(loops))


@pytest.mark.parametrize("h", [2, 9])
def test_exponentials_are_computed_once(h: int) -> None:
    found = made(LARGEST, SUM, SHARES)
    text = applied(found).program.text
    assert "a_made[turn] = expf(a_kept[turn] - m);" in text
    assert "= a_made[turn] / s;" in text
    same(COLUMNS % f"{LARGEST}\n{SUM}\n{SHARES}", found, SHAPES, {"w": 35, "h": h}, {"KEEP": 3})


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("float s = 0.0f;", "float s = 0.0f; m += 1.0f;"),
        ("s += expf(a[r * w + c] - m)", "s += expf(a[r * w + c] + m)"),
        ("s += expf(a[r * w + c] - m)", "s += s > 2.0f ? expf(a[r * w + c] - m) : 0.0f"),
        ("s += expf(a[r * w + c] - m)", "s += expf(a[r * w + c] - m + r)"),
        ("s += expf(a[r * w + c] - m)", "s += expf(a[r * w + c] - b[r])"),
        ("s += expf(a[r * w + c] - m)", "s += expf(a[r * w + c] - m); m += s"),
        ("= expf(a[q * w + c] - m) / s", "= expf(a[q * w + c] - m) / s + a[q * w + c]"),
        ("out[q * w + c] =", "a[q * w + c] ="),
    ],
)
def test_what_is_not_the_same_or_needs_more_room_is_computed_anew(old: str, new: str) -> None:
    loops = [LARGEST, SUM.replace(old, new), SHARES.replace(old, new)]
    found = made(*loops)
    if new == "float s = 0.0f; m += 1.0f;":  # the same for both loops that are left
        assert "a_made" in applied(found).program.text
    else:
        assert "a_made" not in applied(found).program.text


def test_what_has_no_type_is_computed_anew() -> None:
    text = """\
#include <cuda_fp16.h>
#pragma optiml launch k grid(cdiv(w, 32)) block(32)
__global__ void k(const half2* a, float* out, int w, int h) {
    int c = blockIdx.x * blockDim.x + threadIdx.x;
    if (c >= w) return;
    float s = 0.0f;
    for (int r = 0; r < h; ++r) { float2 v = __half22float2(a[r * w + c]); s += v.x; }
    for (int r = 0; r < h; ++r) { float2 v = __half22float2(a[r * w + c]); out[r * w + c] = v.y / s; }
}
"""
    found = applied(kept(text)).program.text
    assert "a_kept" in found
    assert "a_made" not in found
