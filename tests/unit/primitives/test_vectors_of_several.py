"""Rounds that take several elements side by side, the parts of a number, by vectors."""

from __future__ import annotations

import pytest

from optiml_magic.kernels.primitives.base import Refused
from optiml_magic.kernels.primitives.vectors import upward, vectorise
from tests.rewriting.trying import Stand
from tests.rewriting.writing import Array, Made

from .alike import end_of, kernel_of, written

SUM = """\
#pragma optiml launch k grid(cdiv(h, 32)) block(32)
__global__ void k(const float* a, const unsigned char* c, float* out, int w, int h) {
    int r = blockIdx.x * blockDim.x + threadIdx.x;
    if (r >= h) return;
    float s = 0;
    %s
    out[r] = s;
}
"""
SIZES, OTHERS = {"h": 33, "w": 64}, {"h": 2, "w": 7}
ARRAYS = {
    "a": Array("f4", ("4 * w * h",)), "c": Array("u1", ("4 * w * h",)),
    "out": Array("f4", ("h",), "zeros"),
}  # fmt: skip
HALVES = "for (int k = 0; k < 2 * w; k += 2)"


@pytest.mark.parametrize(
    ("loop", "loads"),
    [
        ("for (int k = 0; k < w; ++k) s += a[2 * (r * w + k)] - 2 * a[2 * (r * w + k) + 1];",
         ("alignas(16) float a_items[4];", "a_items[2 * k_item + 1]")),
        ("for (int k = 0; k < w; ++k) { int o = 3 * (r * w + k); s += a[o + 2] * a[o] - c[o] * a[o + 1]; }",
         ("alignas(16) float a_items[12];", "piece < 12; piece += 4", "a_items[3 * k_item + 2]")),
        (f"{HALVES} {{ int v = c[(r * 2 * w + k) / 2]; s += (v & 15) * a[k] + (v >> 4) * a[k + 1]; }}",
         ("alignas(4) unsigned char c_items[4];", "alignas(16) float a_items[8];")),
        (f"int o = r * w; {HALVES} {{ int v = c[o + k / 2]; s += v * a[k + 1] + a[k]; }}",
         ("alignas(4) unsigned char c_items[4];", "alignas(16) float a_items[8];")),
        ("for (int k = 0; k < w; ++k) s += a[r * w + k] * (c[2 * k] + c[2 * k + 1]);",
         ("alignas(16) float a_items[4];", "alignas(8) unsigned char c_items[8];")),
    ],
)  # fmt: skip
def test_a_vector_brings_all_parts_of_some_rounds(loop: str, loads: tuple[str, ...]) -> None:
    text = SUM % loop
    facts = Stand(Made("one", text, ARRAYS, SIZES, OTHERS)).facts(text)
    found = written(vectorise(upward(kernel_of(text, facts), 0), 0))
    assert all(load in found for load in loads), found
    assert end_of(text, found, ARRAYS, SIZES, OTHERS) == "same"


@pytest.mark.parametrize(
    "loop",
    [
        "for (int k = 0; k < w; ++k) s += a[2 * (r * w + k)];",  # every second is nobody's
        "for (int k = 0; k < w; ++k) s += a[2 * k + r] + a[2 * k + r + 2];",
        "for (int k = 0; k < w; ++k) { s += a[2 * k]; if (k < r) s += a[2 * k + 1]; }",
        "for (int k = 0; k < w; ++k) s += a[5 * k] + a[5 * k + 1] + a[5 * k + 2];",
    ],
)
def test_elements_that_not_every_round_takes_stay_as_they_are(loop: str) -> None:
    assert isinstance(vectorise(kernel_of(SUM % loop), 0), Refused)


PATHS = """\
#pragma optiml launch k grid(cdiv(h, 64)) block(64)
__global__ void k(const float* a, float* out, int h, int w) {
    int r = blockIdx.x * blockDim.x + threadIdx.x;
    if (r >= h) return;
    float x = a[r], y = x + 1.0f, z = 2.0f;
    for (int t = 0; t < w; t++) {
        x += 1.0f; y += x; z -= y;
        %s
    }
}
"""
STEP = "out[(r * w + t) * 3] = x; out[(r * w + t) * 3 + 2] = y; out[(r * w + t) * 3 + 1] = z;"


@pytest.mark.parametrize("strips", [(), (8,), (16, 8)])
def test_what_rounds_store_side_by_side_is_stored_by_vectors(strips: tuple[int, ...]) -> None:
    text = PATHS % STEP
    found = written(vectorise(kernel_of(text), 0, strips=strips))
    assert "float4*>(&out" in found
    arrays = {"a": Array("f4", ("h",)), "out": Array("f4", ("h", "w", "3"), "zeros")}
    for h, w in ((70, 65), (33, 64), (5, 3)):
        assert end_of(text, found, arrays, {"h": h, "w": w}, {"h": 2, "w": 9}) == "same"


@pytest.mark.parametrize(
    "step",
    [
        "out[(r * w + t) * 3] = x; out[(r * w + t) * 3 + 2] = y;",
        STEP.replace("out[(r * w + t) * 3 + 1]", "if (x > 2) out[(r * w + t) * 3 + 1]"),
        STEP + " out[r] = z;",
        STEP.replace("= z", "= out[(r * w + t) * 3]"),
    ],
)
def test_stores_that_leave_something_out_or_meet_others_stay(step: str) -> None:
    assert isinstance(vectorise(kernel_of(PATHS % step), 0, strips=(8,)), Refused)
