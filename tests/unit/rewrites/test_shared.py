"""What one rule found of a kernel is there for the next: the ideas are those of each rule alone."""

from __future__ import annotations

import random

import pytest

from optiml_magic.kernels.prepared import with_launches
from optiml_magic.kernels.primitives import base
from optiml_magic.model.idea import Idea
from optiml_magic.model.refusal import Refusal
from optiml_magic.proposers.rewrites import REWRITES
from optiml_magic.proposers.rewrites.base import Rewrite
from optiml_magic.source.program import parse_program
from tests.ideas import view_of
from tests.known_texts import KERNEL_TEXTS

TEXTS = [with_launches(text).program.text for text in KERNEL_TEXTS]


def found(rule: Rewrite, text: str) -> list[object]:
    """All that a rule says, with the texts that it makes."""
    said = []
    for one in rule.propose(parse_program(text), view_of(text)):
        if isinstance(one, Refusal):
            said.append(one)
        else:
            assert isinstance(one, Idea)
            rank = one.prior, one.hypothesis, one.arithmetic, one.starts
            said.append((one.key, one.title, one.make(), rank))
    return said


@pytest.mark.parametrize("seed", range(2))
def test_rules_asked_in_any_order_of_the_same_kernels_say_what_each_does_alone(seed: int) -> None:
    rng = random.Random(seed)
    for text in rng.sample(TEXTS, 3):
        alone = {}
        for rule in REWRITES:
            base._LATEST.clear()
            alone[rule.name] = found(rule, text)
        base._LATEST.clear()
        for rule in rng.sample(REWRITES, len(REWRITES)):
            assert found(rule, text) == alone[rule.name], rule.name


def test_a_refusal_is_found_once_and_raised_anew() -> None:
    asked = []

    @base.once
    def refuses(kernel: base.Kernel, axis: str) -> int:
        asked.append(axis)
        raise base.NotLegal(f"no {axis}", 7)

    kernel = base.kernels(parse_program(TEXTS[0]), None)[0]
    for _ in range(2):
        with pytest.raises(base.NotLegal, match="no x") as raised:
            refuses(kernel, "x")
        assert raised.value.line == 7
    with pytest.raises(base.NotLegal, match="no y"):
        refuses(kernel, "y")
    assert asked == ["x", "y"]


def test_the_kernels_of_a_program_are_those_that_were_asked_for_before() -> None:
    program = parse_program(TEXTS[1])
    first, again = (base.kernels(program, None) for _ in range(2))
    assert first == again
    assert first is not again
    for at in range(2, 8):
        base.kernels(parse_program(TEXTS[at]), None)
    assert base.kernels(program, None) != first  # a few are kept
