"""Launches of whole blocks along the sides of a plane, with a guard that turns nobody away."""

from __future__ import annotations

import pytest

from optiml_magic.kernels.primitives.bounded import bounded
from tests.rewriting.writing import Array

from .alike import end_of, kernel_of, refused, written

TEXT = """\
#define TX 8
#pragma optiml launch k grid({grid}) block({block})
__global__ void k(const float* x, float* y, int w, int h) {{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    y[i] = x[i / w * w + (i + 1) % w]{more};
}}
"""
ARRAYS = {"x": Array("f4", ("w * h",)), "y": Array("f4", ("w * h",), "zeros")}


@pytest.mark.parametrize(
    ("grid", "block"),
    [("w/TX*(h/4)", "32"), ("w / 8 * h / 4", "32"), ("(w / TX) * (h / TX)", "TX * TX")],
)
def test_the_sides_of_a_plane_are_whole_blocks(grid: str, block: str) -> None:
    text = TEXT.format(grid=grid, block=block, more="")
    after = written(bounded(kernel_of(text)))
    assert ">= w * h) return;" in after
    assert "#pragma optiml require w % 8 == 0" in after
    assert "#pragma optiml require h % " in after
    assert end_of(text, after, ARRAYS, {"w": 24, "h": 16}, {"w": 8, "h": 8}) == "same"


@pytest.mark.parametrize(
    ("grid", "block", "more"),
    [
        ("w / 8 * (h / 4)", "64", ""),  # more threads than the plane has places
        ("w / 8 * (h / 4) * 2", "32", ""),
        ("w * (h / 32)", "32", ""),
        ("w / 8 / 4 * h", "32", ""),
        ("w / 8 * (w / 4)", "32", ""),
        ("w / 8 * (h / 4)", "32", " + gridDim.x"),
    ],
)
def test_other_numbers_of_blocks_are_none(grid: str, block: str, more: str) -> None:
    found = bounded(kernel_of(TEXT.format(grid=grid, block=block, more=more)))
    assert "does not say that its blocks are whole" in refused(found)
