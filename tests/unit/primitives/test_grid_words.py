"""What a kernel asks of its grid, in its own sizes."""

from __future__ import annotations

from dataclasses import replace

import pytest

from optiml_magic.kernels.primitives.grid_words import grid_in_words
from optiml_magic.model.facts import LaunchFacts
from tests.present import sampled

from .running import same
from .shapes import applied, kernel, refused

PLANE = """\
#pragma optiml launch k grid(%s) block(16, 4)
__global__ void k(const float* a, float* out, int w, int h) {
    int x = threadIdx.x + blockIdx.x * blockDim.x, y = threadIdx.y + blockIdx.y * blockDim.y;
    %s
}
"""
SHAPES = {"a": ("h", "w"), "out": ("h", "w")}
BLOCKS = "w, h"
STORE = "if (x < w && y < h) out[%s] = a[y * w + x];"


@pytest.mark.parametrize(
    "body",
    sampled([
        "if (x < w && y < h) out[y * w + x] = a[y * w + x] + gridDim.x + 2 * gridDim.y;",
        "if (x < w && y < h) out[y * w + x] = 0.1f * gridDim.x * blockDim.x * a[y * w + x];",
        "int all = y * blockDim.x * gridDim.x + x; if (x < w && y < h) out[y * w + x] = all % 97;",
        "int all = gridDim.x * gridDim.y * blockDim.x * (int)blockDim.y; if (x < w && y < h) out[y * w + x] = all % 97;",
    ], 2),
)  # fmt: skip
def test_the_grid_is_said_in_sizes(body: str) -> None:
    text = PLANE % (BLOCKS, body)
    made = grid_in_words(kernel(text))
    assert "gridDim" not in applied(made).program.text
    same(text, made, SHAPES, {"w": 5, "h": 7})


@pytest.mark.parametrize(("w", "whole"), [(64, True), (70, False)])
def test_blocks_that_are_whole_at_the_measured_sizes(w: int, whole: bool) -> None:
    text = PLANE % ("w / 16, h / 4", STORE % "x + y * blockDim.x * gridDim.x")
    facts = LaunchFacts("k", 1, (4, 2, 1), (16, 4, 1), {}, {"w": w, "h": 8})
    made = grid_in_words(replace(kernel(text), facts=facts))
    if not whole:
        assert "no words for it" in refused(made)[0]
        return
    assert "x + y * ((unsigned int)w)" in applied(made).program.text
    assert "w % 16 == 0" in applied(made).program.text
    same(text, made, SHAPES, {"w": 144, "h": 12})


PARTS = """\
#pragma optiml scratch parts f4[4 * cdiv(w, 16) * 16]
#pragma optiml launch k grid(cdiv(w, 16)) block(16){args}
__global__ void k(const float* a, {parts}, float* out, int w, int h) {{
    int x = threadIdx.x + blockIdx.x * blockDim.x;
    if (x >= w) return;
    {body}
}}
"""
ADD = "for (int p = 0; p < 4; ++p) s += {array}[p * threads + x];"


@pytest.mark.parametrize("args", ["", " args(a, parts, out, w, h)"])
@pytest.mark.parametrize(
    ("arrays", "asked"),
    [(("parts",), False), (("a",), True), (("parts", "a"), True), (("a", "parts"), True)],
)
def test_rows_of_scratch_need_no_whole_blocks(
    args: str, arrays: tuple[str, ...], *, asked: bool
) -> None:
    own = "part" if args else "parts"
    sums = " ".join(ADD.format(array=own if one == "parts" else one) for one in arrays)
    body = f"int threads = gridDim.x * blockDim.x; float s = 0.0f; {sums} out[x] = s;"
    text = PARTS.format(args=args, parts=f"const float* {own}", body=body)
    facts = LaunchFacts("k", 1, (4, 1, 1), (16, 1, 1), {}, {"w": 64, "h": 8})
    made = grid_in_words(replace(kernel(text), facts=facts))
    if asked:
        assert "w % 16 == 0" in applied(made).program.text
    else:
        assert "no words for it" in refused(made)[0]


def test_a_place_that_is_not_followed_may_be_in_such_a_row() -> None:
    body = "int p = 0; while (a[p] > 0) p += gridDim.x * blockDim.x; out[x] = a[p];"
    text = PARTS.format(args="", parts="const float* parts", body=body)
    facts = LaunchFacts("k", 1, (4, 1, 1), (16, 1, 1), {}, {"w": 64, "h": 8})
    assert "w % 16 == 0" in applied(grid_in_words(replace(kernel(text), facts=facts))).program.text


@pytest.mark.parametrize(
    ("blocks", "body"),
    [
        ("w, 4", "for (; y < h; y += blockDim.y * gridDim.y) if (x < w) out[y * w + x] = gridDim.y;"),
        ("8, 4", "if (x < w && y < h) out[y * w + x] = gridDim.x;"),
        ("size(a), h", "if (x < w && y < h) out[y * w + x] = gridDim.x;"),
        ("w / 16, h / 4", STORE % "x + y * blockDim.x * gridDim.x"),
        (BLOCKS, STORE % "x + y * w"),
        (BLOCKS, "if (x < w && y < h) { int at = y * w + x; w += 1; out[at] = gridDim.x; }"),
        (BLOCKS, "if (x < w && y < h) { int at = y * w + x, w = 7; out[at] = gridDim.x + w; }"),
        (BLOCKS, "int* p = &w, at = y * w + x; if (x < w && y < h) { *p = 7; out[at] = gridDim.x; }"),
    ],
)  # fmt: skip
def test_refused(blocks: str, body: str) -> None:
    assert "no words for it" in refused(grid_in_words(kernel(PLANE % (blocks, body))))[0]
