"""What the rules offer for a program: the one place that knows how they are asked."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass, replace
from random import Random

from optiml_magic.model.candidate import Candidate, Proposal
from optiml_magic.model.evaluation import Evaluation, Step
from optiml_magic.model.facts import Facts
from optiml_magic.model.idea import Idea
from optiml_magic.model.refusal import Refusal
from optiml_magic.model.verdict import Outcome, Verdict
from optiml_magic.model.view import View
from optiml_magic.proposers.rewrites import REWRITES
from optiml_magic.source.program import parse_program
from tests.ideas import points

from .steps import noted

NAMES = tuple(rule.name for rule in REWRITES)


@dataclass(frozen=True)
class Offer:
    """A program that a rule makes of another one.

    Attributes:
        rounds: whether the rule says that it changes arithmetic: results may differ by rounding.
        steps: the primitives that it strung together, by their files.
    """

    rule: str
    title: str
    text: str
    rounds: bool = False
    steps: tuple[str, ...] = ()


@dataclass(frozen=True)
class Refused:
    """Why a rule offers nothing for a place."""

    rule: str
    reason: str


def offers(
    text: str,
    root: str,
    facts: Callable[[], Facts],
    rng: Random,
    *,
    each: int,
    rules: Collection[str] = NAMES,
) -> Iterator[Offer | Refused]:
    """At most ``each`` of what every rule makes of a program that comes of ``root``, rule by rule.

    Half of them with other values of their tuned names than the rule says, small ones more often:
    the right ones are as right, and sooner compiled. ``facts`` finds those of the program at the
    sizes that the rules are told; it compiles.
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
        if rule.name not in rules:
            continue
        with noted() as notes:
            ideas: list[Idea] = []
            for found in rule.propose(program, view):
                if isinstance(found, Refusal):
                    yield Refused(rule.name, found.reason)
                else:
                    ideas.append(found)
            left = each
            for idea in rng.sample(ideas, len(ideas)):
                before = len(notes.steps)
                made = idea.make() if left else None
                if isinstance(made, Refusal):
                    yield Refused(rule.name, made.reason)
                elif made is not None:
                    left -= 1
                    point = rng.choice(points(idea, made))
                    offer = Offer(rule.name, idea.title, point, bool(idea.arithmetic))
                    yield _drawn(replace(offer, steps=notes.since(before)), text, rng)


def _drawn(offer: Offer, before: str, rng: Random) -> Offer:
    """The offer, or with other values of its tuned names."""
    program = parse_program(offer.text)
    legal = list(program.legal_values()) if program.tunes else []
    if not legal or rng.choice([0, 1]):
        return offer
    values = min(rng.choices(legal, k=2), key=lambda point: sum(point.values()))
    text = program.with_values(values).text
    return offer if text == before else replace(offer, title=f"{offer.title}; {values}", text=text)
