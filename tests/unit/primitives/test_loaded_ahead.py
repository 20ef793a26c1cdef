"""Loops in place, which load what several rounds need before the first of them stores."""

from __future__ import annotations

import pytest

from optiml_magic.kernels.primitives.loaded_ahead import loaded_ahead
from optiml_magic.proposers.rewrites.load_ahead import LoadAhead
from tests.ideas import asked
from tests.rewriting.writing import Array

from .alike import end_of, kernel_of, refused, written

HEAD = """\
#pragma optiml launch k grid(cdiv(w, 64)) block(64)
__global__ void k(float* x, const float* y, int w, int h, int s) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= w) return;
    float last = 0.5f;
    %s
}
"""
ARRAYS = {"x": Array("f4", ("h", "w")), "y": Array("f4", ("h", "w"))}
SIZES = ({"w": 70, "h": 13, "s": 0}, {"w": 3, "h": 1, "s": 0})


@pytest.mark.parametrize(
    "body",
    [
        "for (int j = 0; j < h; j++) { last = 0.5f * last + x[j * w + i]; x[j * w + i] = last; }",
        "for (int j = h - 1; j >= 0; --j) { last -= x[j * w + i]; x[j * w + i] = last; }",
        "float* p = x + i; for (int j = 0; j < h; ++j, p += w) { last += *p; *p = last; }",
        "for (int j = 0; j + 1 < h; j++) { float v = x[(j + 1) * w + i]; x[j * w + i] = v + y[j * w + i]; }",
        "for (int j = 0; j < h; ++j) { x[j * w + i] += y[j * w + i]; last = 0.5f; }",
        "for (int j = 0; j < h; j += 2) { int at = j * w + i; float v = x[at] * y[at]; x[at] = v; }",
    ],
)  # fmt: skip
def test_rounds_load_together(body: str) -> None:
    text = HEAD % body
    made = written(loaded_ahead(kernel_of(text), 4))
    assert "x_ahead[turn] = " in made
    assert end_of(text, made, ARRAYS, *SIZES) == "same"


@pytest.mark.parametrize(
    "body",
    [
        "for (int j = 0; j < h; j++) { last += x[j * s + i]; x[j * s + i] = last; }",
        "for (int j = 2; j < h; j++) x[j * w + i] = x[(j - 2) * w + i] + 1.0f;",
        "for (int j = 0; j < h; j++) { x[j * w + i] = 1.0f; last += x[j * w + i]; }",
        "for (int j = 0; j < h; j++) { last += y[j * w + i]; x[j * w + i] = last; }",
        "for (int j = 0; j < h; j++) { last += x[j * w + i]; if (last > 9.0f) break; x[j * w + i] = last; }",
        "for (int j = 0; j < h; j++) if (y[j] > 0.0f) { last += x[j * w + i]; x[j * w + i] = last; }",
        "for (int j = 0; j < h; j++) { last += x[(int)y[j]]; x[(int)y[j]] = last; }",
    ],
)  # fmt: skip
def test_what_may_meet_stays_in_order(body: str) -> None:
    assert "no loop stores" in refused(loaded_ahead(kernel_of(HEAD % body), 4))


def test_sums_along_columns_are_offered_with_what_goes_on_in_a_register() -> None:
    text = HEAD % "for (int j = 1; j < h; j++) x[j * w + i] += x[(j - 1) * w + i];"
    (idea,), _ = asked(LoadAhead(), text)
    made = idea.make()
    assert isinstance(made, str)
    assert "x_ahead" in made
    assert end_of(text, made, ARRAYS, *SIZES) == "same"
