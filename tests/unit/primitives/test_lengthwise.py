"""The long axis of a grid lies along x, where a step has put it elsewhere."""

from __future__ import annotations

from functools import partial

import pytest

from optiml_magic.kernels.primitives.axes import BLOCKS, exchanged
from optiml_magic.kernels.primitives.base import Kernel, NotLegal, Refused, in_turn
from optiml_magic.kernels.primitives.chunks import chunk, front
from optiml_magic.kernels.primitives.cutting import cut
from optiml_magic.kernels.primitives.lengthwise import lengthwise
from optiml_magic.source.program import parse_program
from tests.rewriting.writing import Array

from .alike import end_of, kernel_of

SCALE = """\
#pragma optiml launch scale grid(cdiv(h, 16), cdiv(w, 4)) block(16, 4)
__global__ void scale(const float* a, float* o, int h, int w) {
    int y = blockIdx.x * blockDim.x + threadIdx.x;
    int x = blockIdx.y * blockDim.y + threadIdx.y;
    if (y < h && x < w) o[y * w + x] = 2.0f * a[y * w + x] + gridDim.x;
}
"""
ARRAYS = {"a": Array("f4", ("h", "w")), "o": Array("f4", ("h", "w"), "zeros")}


def turned(text: str) -> tuple[Kernel, Kernel]:
    """A kernel, and it with its axes exchanged."""
    before = kernel_of(text)
    made = exchanged(before, "x", "y")
    assert isinstance(made, Kernel), made
    return before, made


def requires(kernel: Kernel) -> list[str]:
    return [str(r.condition) for r in kernel.program.requires]


def test_the_long_axis_lies_along_x() -> None:
    before, made = turned(SCALE)
    plain, other = lengthwise(made, before)
    assert requires(plain) == ["cdiv(h, 16) <= 65535"]
    assert "grid(cdiv(h, 16), cdiv(w, 4)) block(4, 16)" in str(other.launch)
    assert "int y = blockIdx.x * blockDim.y + threadIdx.y" in other.program.text
    assert "+ gridDim.x" in other.program.text
    assert requires(other) == []  # the launch of before has as many along y
    end = end_of(SCALE, other.program.text, ARRAYS, {"h": 37, "w": 21}, {"h": 5, "w": 9})
    assert end == "same"


def test_what_the_other_axis_then_needs_is_asked() -> None:
    wide = kernel_of(
        SCALE.replace("block(16, 4)", "block(8, 4)").replace("cdiv(h, 16)", "cdiv(h, 8)")
    )
    narrower = in_turn(
        wide, (partial(exchanged, one="x", other="y"), partial(cut, extents={"x": 2}))
    )
    assert isinstance(narrower, Kernel), narrower
    _, other = lengthwise(narrower, wide)
    assert requires(other) == ["cdiv(w, 2) <= 65535"]


def test_what_a_step_between_asked_is_asked_no_longer() -> None:
    before, made = turned(SCALE)
    stale = parse_program(SCALE).with_directive("#pragma optiml require cdiv(h, 2) <= 65535")
    between = made.program.with_directive("#pragma optiml require cdiv(h, 2) <= 65535")
    plain, *_ = lengthwise(_in(made, between.text), before)
    assert requires(plain) == ["cdiv(h, 16) <= 65535"]
    before, made = turned(stale.text)  # there the program itself asks for it
    for one in lengthwise(made, before):
        assert "cdiv(h, 2) <= 65535" in requires(one)


@pytest.mark.parametrize(
    "asked", ["h <= 65535", "w <= 65535", "cdiv(h, 2) <= 65536", "h % 4 == 0", "cdiv(h, 2) < 65535"]
)
def test_other_requirements_stay(asked: str) -> None:
    before, made = turned(SCALE)
    other = made.program.with_directive(f"#pragma optiml require {asked}")
    for one in lengthwise(_in(made, other.text), before):
        assert asked in requires(one)


def test_blocks_that_may_wait_for_others_stay_in_their_order() -> None:
    waiting = SCALE.replace(
        "    int y", "    __shared__ int at; at = atomicAdd((int*)o, 0);\n    int y", 1
    )
    before, made = turned(waiting)
    assert len([*lengthwise(made, before)]) == 1


def test_warps_may_not_be_told_apart() -> None:
    before, made = turned(SCALE)
    text = made.program.text.replace("    int y", "    int v = __activemask();\n    int y", 1)
    assert len([*lengthwise(_in(made, text), before)]) == 1


def test_several_launches_that_change() -> None:
    before = kernel_of("""\
#pragma optiml launch sum grid(cdiv(h, 64)) block(64)
__global__ void sum(const float* a, float* s, int h, int w) {
    int y = blockIdx.x * blockDim.x + threadIdx.x;
    if (y >= h) return;
    float t = 0.0f;
    for (int k = 0; k < w; ++k) t += a[y * w + k];
    s[y] = t;
}
""")
    chunks = chunk(before, 0, 4, (4,))
    made = chunks if isinstance(chunks, Refused) else front(chunks)
    assert isinstance(made, Kernel), made
    with pytest.raises(NotLegal, match="more than one launch"):
        next(lengthwise(made, before))


def test_blocks_alone_change_places() -> None:
    made = exchanged(kernel_of(SCALE), "x", "y", BLOCKS)
    assert isinstance(made, Kernel), made
    assert "int y = blockIdx.y * blockDim.x + threadIdx.x" in made.program.text
    end = end_of(
        SCALE.replace(" + gridDim.x", ""), made.program.text.replace(" + gridDim.y", ""), ARRAYS,
        {"h": 37, "w": 21}, {"h": 5, "w": 9},
    )  # fmt: skip
    assert end == "same"


def _in(made: Kernel, text: str) -> Kernel:
    """The kernel of another text with the same launch."""
    found = kernel_of(text)
    assert str(found.launch) == str(made.launch)
    return found
