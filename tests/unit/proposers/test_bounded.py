"""Rules that would read text without end are refused, and the search goes on with the others."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace

import pytest

from optiml_magic.kernels.allowance import LONGEST, MOST, Allowance, TooMuch
from optiml_magic.kernels.primitives.base import Kernel, kernels
from optiml_magic.kernels.unit import lift
from optiml_magic.model.candidate import Proposal
from optiml_magic.model.idea import Idea
from optiml_magic.model.refusal import Refusal
from optiml_magic.model.view import View
from optiml_magic.proposers.rewrites.block_size import BlockSize
from optiml_magic.proposers.rewrites.vectorise_map import VectoriseMap
from optiml_magic.proposers.rules import RuleProposer
from optiml_magic.source.program import Program
from tests.ideas import view_of

SCALE = """\
#pragma optiml launch scale grid(cdiv(n, 64)) block(64)
__global__ void scale(const float* a, float* out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) out[i] = a[i] * 1.5f;
}
"""
BOX = """\
#pragma optiml launch box grid(cdiv(w, 32), cdiv(h, 8)) block(32, 8)
__global__ void box(const unsigned short* src, unsigned short* dst, int w, int h) {
    int x = blockIdx.x * blockDim.x + threadIdx.x;
    int y = blockIdx.y * blockDim.y + threadIdx.y;
    if (x >= w || y >= h) return;
    unsigned int sum = 0;
    for (int dy = -7; dy <= 7; dy++)
        for (int dx = -7; dx <= 7; dx++) {
            int px = min(max(x + dx, 0), w - 1);
            int py = min(max(y + dy, 0), h - 1);
            sum += src[py * w + px];
        }
    dst[y * w + x] = sum / 225;
}
"""
LONG = f"// {'x' * LONGEST}\n{SCALE}"
TOO_LONG = f" characters, and rules take at most {LONGEST}"
TOO_MUCH = f"it would read more than {MOST} characters of intermediate programs"


class Rule:
    """Has one idea, and then does something else."""

    def __init__(self, make: Callable[[Kernel], str], late: Callable[[], object] = list) -> None:
        self.name = "rule"
        self._make, self._late = make, late

    def propose(self, program: Program, view: View) -> Iterator[Idea | Refusal]:
        (kernel,) = kernels(program, None)
        yield Idea("an idea", self.name, lambda: self._make(kernel), key="idea")
        self._late()
        yield Refusal(self.name, "the end")


def grown(kernel: Kernel, steps: int = 12) -> str:
    """A kernel that does all that it does twice, and all of that twice."""
    for _ in range(steps):
        body = kernel.function.body
        kernel = kernel.rewritten(replace(body, body=(*body.body, *body.body)))
    return kernel.program.text


def reads(count: int) -> None:
    """Reads so many texts, none of which is too long."""
    for number in range(count):
        lift(f"// {number:04d} {'x' * (LONGEST - 10)}\n")


def asked(rule: Rule, text: str = SCALE) -> tuple[list[str], list[str]]:
    """What becomes of the ideas of a rule, and what it refuses; another one is asked as well."""
    found = RuleProposer([rule, BlockSize()]).propose(view_of(text), 16)
    assert {idea.proposer for idea in found.ideas} >= {"block_size"}
    own = [idea for idea in found.ideas if idea.proposer == rule.name]
    assert not any(refusal.fault for refusal in found.refused)
    return [str(idea.make()) for idea in own], [r.reason for r in found.refused]


def test_what_grows_without_end_is_refused() -> None:
    (made,), refused = asked(Rule(grown))
    assert made.startswith("rule: the program has ")
    assert made.endswith(TOO_LONG)
    assert refused == ["the end"]
    (made,), _ = asked(Rule(lambda kernel: grown(kernel, 3)))
    assert made.count("out[i] = ") == 8


def test_a_text_that_nobody_reads_again_is_short_as_well() -> None:
    (made,), _ = asked(Rule(lambda _: LONG))
    assert made == f"rule: the program has {len(LONG)}{TOO_LONG}"


def test_an_idea_whose_text_is_there_is_short_as_well() -> None:
    class Ready(Rule):
        def propose(self, program: Program, view: View) -> Iterator[Idea]:
            for text in (LONG, SCALE):
                yield Idea.of(Proposal(text, "", self.name))

    assert asked(Ready(grown)) == ([SCALE], [f"the program has {len(LONG)}{TOO_LONG}"])


def test_many_texts_are_too_much_for_one_request() -> None:
    enough = MOST // LONGEST

    def made(count: int) -> str:
        reads(count)
        return SCALE

    assert asked(Rule(lambda _: made(enough)))[0] == [SCALE]
    assert asked(Rule(lambda _: made(enough + 1)))[0] == [f"rule: {TOO_MUCH}"]
    (own,), refused = asked(Rule(lambda _: made(enough), lambda: reads(enough + 1)))
    assert (own, refused) == (SCALE, [TOO_MUCH])
    reads(enough + 1)  # outside of requests there may be any


def test_what_is_read_again_counts_once() -> None:
    allowance = Allowance(most=10)
    with allowance.spent():
        for _ in range(9):
            lift("int a;")
        with pytest.raises(TooMuch):
            lift("int b;")


def test_rules_are_not_asked_about_a_long_program() -> None:
    found = RuleProposer().propose(view_of(LONG), 16)
    assert found.ideas == ()
    assert [str(r) for r in found.refused] == [f"rules: the program has {len(LONG)}{TOO_LONG}"]


def test_a_window_of_hundreds_of_elements_is_not_written_out() -> None:
    found = RuleProposer([VectoriseMap()]).propose(view_of(BOX), 16)
    (late,) = {str(idea.make()) for idea in found.ideas}
    assert late.startswith("vectorise_map: the program has ")
    assert late.endswith(TOO_LONG)
