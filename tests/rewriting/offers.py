"""What the rules offer for a program: the one place that knows how they are asked."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from optiml_magic.model.facts import Facts
from optiml_magic.proposers.rewrites import REWRITES
from optiml_magic.source.program import parse_program

NAMES = tuple(rule.name for rule in REWRITES)


#: What changes the order of additions, or the type of constants.
_ROUNDING = ("warp_per_item", "float_literals")


@dataclass(frozen=True)
class Offer:
    """A program that a rule makes of another one.

    ``rounds`` where the rule says that it changes arithmetic: results may differ by rounding.
    """

    rule: str
    title: str
    text: str
    rounds: bool = False


@dataclass(frozen=True)
class Refused:
    """Why a rule offers nothing for a place."""

    rule: str
    reason: str


def offers(text: str, facts: Callable[[], Facts]) -> Iterator[Offer | Refused]:
    """What every rule makes of a program, in the order of the rules.

    ``facts`` finds those of the program at the sizes that the rules are told; it compiles.
    """
    program = parse_program(text)
    for rule in REWRITES:
        for proposal in rule.propose(program, ()):
            yield Offer(rule.name, proposal.title, proposal.text, rule.name in _ROUNDING)
