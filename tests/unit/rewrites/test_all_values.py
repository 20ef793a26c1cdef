"""Rules where a block's extents are tuned names: what they make is right for all values of these."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from optiml_magic.kernels.primitives.base import Kernel, Refused, primitive
from optiml_magic.model.hypothesis import Hypothesis
from optiml_magic.proposers.rewrites.kernel_rule import KernelRule, Site
from optiml_magic.proposers.rewrites.skip_rounds import SkipRounds
from optiml_magic.source.program import parse_program
from tests.ideas import asked
from tests.rewriting.writing import Array
from tests.unit.primitives.alike import end_of

TUNED = """\
#pragma optiml tune BLOCK in {32, 64, 128} = 64
#pragma optiml launch k grid(cdiv(cdiv(n, 4), BLOCK)) block(BLOCK)
__global__ void k(const float* x, float* out, int n) {
    for (int item = 0; item < 4; ++item) {
        int i = (blockIdx.x * blockDim.x + threadIdx.x) * 4 + item;
        if (i < n) out[i] = 2.0f * x[i];
    }
}
"""
ARRAYS = {"x": Array("f4", ("n",)), "out": Array("f4", ("n",), "zeros")}


class _Spelled(KernelRule):
    """A rule that puts something in the place of 2: the width of a block, or what never changes."""

    name = "spelled"
    teaches = "Nothing."

    def __init__(self, word: str) -> None:
        self.word = word

    def sites(self, kernel: Kernel) -> Iterator[Site | Refused]:
        word = self.word.format(kernel.block[0])

        @primitive
        def spelled(given: Kernel) -> Kernel:
            text = given.program.text.replace("2.0f", word)
            return Kernel(program := parse_program(text), program.launches[0])

        hypothesis = Hypothesis("gpu__time_duration.sum", "lower", "", (1.0, 2.0))
        yield Site("here", "spell it", lambda: spelled(kernel), 0.5, hypothesis)


class _Numbered(KernelRule):
    """A rule that says how wide blocks are as a number, in the block and in the kernel."""

    name = "numbered"
    teaches = "Nothing."

    def sites(self, kernel: Kernel) -> Iterator[Site | Refused]:
        width = str(kernel.block[0])

        @primitive
        def numbered(given: Kernel) -> Kernel:
            text = given.program.text.replace("block(BLOCK)", f"block({width})")
            program = parse_program(text.replace("blockDim.x", width))
            return Kernel(program, program.launches[0])

        hypothesis = Hypothesis("gpu__time_duration.sum", "lower", "", (1.0, 2.0))
        yield Site("here", "number it", lambda: numbered(kernel), 0.5, hypothesis)


@pytest.mark.parametrize(
    ("word", "kept"), [("{}.0f", "in {64} = 64"), ("3.0f", "in {32, 64, 128} = 64")]
)
def test_a_name_is_settled_where_its_value_is_spelled(word: str, kept: str) -> None:
    (idea,), refused = asked(_Spelled(word), TUNED)
    made = idea.make()
    assert isinstance(made, str)
    assert f"tune BLOCK {kept}" in made
    assert ("64.0f * x[i]" in made) == (word == "{}.0f")
    assert not refused


class _Threads(_Spelled):
    """A rule that says in a kernel how many threads a block has."""

    def sites(self, kernel: Kernel) -> Iterator[Site | Refused]:
        width, height, _ = kernel.block
        assert width is not None
        assert height is not None
        self.word = f"{width * height}.0f"
        yield from super().sites(kernel)


@pytest.mark.parametrize(
    ("wide", "high"), [("{16, 32} = 16", "{32, 16} = 32"), ("{16, 32} = 32", "{16, 8} = 8")]
)
def test_as_many_threads_in_other_extents_are_the_same_by_chance(wide: str, high: str) -> None:
    text = (
        TUNED.replace("BLOCK in {32, 64, 128} = 64", f"BLOCK in {wide}\n#pragma optiml tune H in {high}")
        .replace("block(BLOCK)", "block(BLOCK, H)")
    )  # fmt: skip
    (idea,), _ = asked(_Threads(""), text)
    made = idea.make()
    assert isinstance(made, str)
    assert [len(tune.values) for tune in parse_program(made).tunes] == [1, 1]


def test_rounds_that_are_left_out_do_not_count_another_block() -> None:
    (idea, *_), _ = asked(SkipRounds(), TUNED)
    made = idea.make()
    assert isinstance(made, str)
    for value in next(t for t in parse_program(made).tunes if t.name == "BLOCK").values:
        now = parse_program(made).with_values({"BLOCK": value}).text
        assert end_of(TUNED, now, ARRAYS, {"n": 1021}, {"n": 5}) == "same"


def test_a_name_that_the_grid_alone_still_has_is_settled_as_well() -> None:
    text = """\
#pragma optiml tune BLOCK in {32, 64, 128} = 64
#pragma optiml launch k grid(cdiv(n, BLOCK * 4)) block(BLOCK)
__global__ void k(const float* x, float* out, int n) {
    const int tile = blockDim.x * 4, start = blockIdx.x * tile;
    for (int turn = 0; turn < 4; ++turn) {
        int i = start + turn * blockDim.x + threadIdx.x;
        if (i < n) out[i] = 2.0f * x[i];
    }
}
"""
    (idea, *_), _ = asked(_Numbered(), text)
    made = idea.make()
    assert isinstance(made, str)
    for value in next(t for t in parse_program(made).tunes if t.name == "BLOCK").values:
        now = parse_program(made).with_values({"BLOCK": value}).text
        assert end_of(text, now, ARRAYS, {"n": 516}, {"n": 300}) == "same"
