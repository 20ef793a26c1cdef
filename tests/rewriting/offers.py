"""What the rules offer for a program: the one place that knows how they are asked."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from optiml_magic.model.candidate import Candidate, Proposal
from optiml_magic.model.evaluation import Evaluation, Step
from optiml_magic.model.facts import Facts
from optiml_magic.model.refusal import Refusal
from optiml_magic.model.verdict import Outcome, Verdict
from optiml_magic.model.view import View
from optiml_magic.proposers.rewrites import REWRITES
from optiml_magic.source.program import parse_program

NAMES = tuple(rule.name for rule in REWRITES)


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


def offers(text: str, root: str, facts: Callable[[], Facts]) -> Iterator[Offer | Refused]:
    """What every rule makes of a program that comes of ``root``, in the order of the rules.

    ``facts`` finds those of the program at the sizes that the rules are told; it compiles.
    """
    step, first = (
        Step(
            Candidate(0, None, Proposal(t, "", "")), Evaluation(0, "", Verdict(Outcome.PASSED, ""))
        )
        for t in (text, root)
    )
    view = View(step, first, find_facts=facts)
    program = parse_program(text)
    for rule in REWRITES:
        for found in rule.propose(program, view):
            made = found if isinstance(found, Refusal) else found.make()
            if isinstance(made, Refusal):
                yield Refused(rule.name, made.reason)
            else:
                assert not isinstance(found, Refusal)
                yield Offer(rule.name, found.title, made, bool(found.arithmetic))
