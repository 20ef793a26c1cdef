"""Transforms of small blocks: what the rule offers, and where it says nothing."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from optiml_magic.proposers.rewrites.compute_in_block import ComputeInBlock
from tests.ideas import asked

COSINES = """
#pragma optiml launch dct grid(cdiv(w, 8), cdiv(h, 8)) block(8, 8)
__global__ void dct(const float* image, float* out, int w, int h) {
    int u = threadIdx.x, v = threadIdx.y;
    int bx = blockIdx.x * 8, by = blockIdx.y * 8;
    float sum = 0.0f;
    for (int y = 0; y < 8; y++)
        for (int x = 0; x < 8; x++)
            sum += image[(by + y) * w + bx + x] * cosf((2 * x + 1) * u * 0.19634954f)
                 * cosf((2 * y + 1) * v * 0.19634954f);
    out[(by + v) * w + bx + u] = 0.25f * sum;
}"""
LINE = COSINES.replace("block(8, 8)", "block(64)").replace(
    "int u = threadIdx.x, v = threadIdx.y;", "int u = threadIdx.x % 8, v = threadIdx.x / 8;"
)
STAGED = COSINES.replace(
    "    float sum", "    __shared__ float tile[8][8];\n"
    "    tile[v][u] = image[(by + v) * w + bx + u];\n    __syncthreads();\n    float sum",
).replace("image[(by + y) * w + bx + x]", "tile[y][x]")  # fmt: skip
BOUND = COSINES.replace(
    "    float sum", "    if (bx + u >= w || by + v >= h) return;\n    float sum"
)


@pytest.mark.parametrize("text", [COSINES, LINE, STAGED, BOUND])
def test_rows_are_summed_up_once_a_block(text: str, compiles: Callable[[str], object]) -> None:
    (idea,), refused = asked(ComputeInBlock(), text)
    assert not refused
    assert idea.arithmetic == ("the order of additions", "the rounding of products")
    made = idea.make()
    assert isinstance(made, str)
    compiles(made)
    assert made.count("__shared__") == 3


def test_cosines_alone_change_no_arithmetic() -> None:
    text = COSINES.replace("image[(by + y) * w + bx + x]", "image[(by + v) * w + bx + u]")
    text = text.replace("* cosf((2 * y + 1) * v * 0.19634954f)", "")
    text = text.replace("int y = 0; y < 8; y++", "int y = 0; y < h; y++")
    (idea,), _ = asked(ComputeInBlock(), text)
    assert idea.arithmetic == ()


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("cosf((2 * x + 1) * u * 0.19634954f)", "(x + u * v)"),
        ("float sum = 0.0f;", "float sum = 0.0f; if (image[by * w + u] > 0.0f) return;"),
    ],
)
def test_what_each_thread_has_for_itself_stays(old: str, new: str) -> None:
    text = COSINES.replace(old, new)
    if "u * v" in new:
        text = text.replace("cosf((2 * y + 1) * v * 0.19634954f)", "(y + v)")
    assert not asked(ComputeInBlock(), text)[0]
