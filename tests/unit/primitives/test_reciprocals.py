"""Divisions by one value of a loop, as products with its reciprocal."""

from __future__ import annotations

import pytest

from optiml_magic.kernels.primitives.base import Refused
from optiml_magic.kernels.primitives.reciprocals import by_reciprocals

from .running import same
from .shapes import applied, kernel

COLUMNS = """\
#pragma optiml launch k grid(cdiv(w, 32)) block(32)
__global__ void k(const float* a, float* out, int w, int h, float by) {
    int c = blockIdx.x * blockDim.x + threadIdx.x;
    if (c >= w) return;
    float s = 1.0f;
    for (int r = 0; r < h; ++r) s += fabsf(a[r * w + c]);
    #pragma unroll 4
    for (int r = 0; r < h; ++r) {
        float d = a[r * w + c];
        out[r * w + c] = DIVIDED;
    }
}
"""
SHAPES = {"a": ("h", "w"), "out": ("h", "w")}


@pytest.mark.parametrize(
    ("divided", "wanted"),
    [
        ("d / s", "d * reciprocal"),
        ("d / s / (s + 1.0f)", "reciprocal"),
        ("expf(d - s) / s + d / s", "expf(d - s) * reciprocal + d * reciprocal"),
        ("(double)d / s + d / s", "(double)d * reciprocal + d * reciprocal_2"),
    ],
)
def test_one_division_before_the_loop(divided: str, wanted: str) -> None:
    text = COLUMNS.replace("DIVIDED", divided).replace(", float by", "")
    made = by_reciprocals(kernel(text))
    body = applied(made).program.text
    assert wanted in body
    assert "\n    #pragma unroll 4\n    for" in body
    if "double" in divided:
        assert (
            "const double reciprocal = 1.0 / s;\n    const float reciprocal_2 = 1.0f / s;" in body
        )
    if divided in ("d / s", "(double)d / s + d / s"):
        same(text, made, SHAPES, {"w": 35, "h": 7}, rounds=True)


@pytest.mark.parametrize(
    "divided",
    ["d / d", "d / 3.0f", "d / a[c]", "(int)s / w", "d / (s + r)", "d / w"],
)
def test_other_divisions_stay(divided: str) -> None:
    assert isinstance(by_reciprocals(kernel(COLUMNS.replace("DIVIDED", divided))), Refused)


def test_what_decides_a_whole_number_stays_exact() -> None:
    text = COLUMNS.replace("DIVIDED", "d / s > 0.1f").replace("float* out", "int* out")
    found = by_reciprocals(kernel(text))
    assert isinstance(found, Refused)
    assert found.reason.startswith("a whole number that must be exact")
