"""Several proposers as one: their ideas interleaved by prior."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial

from optiml_magic.model.candidate import Candidate
from optiml_magic.model.experience import NOTHING_KNOWN, Known
from optiml_magic.model.facts import Facts
from optiml_magic.model.hit_rates import NO_EXPERIENCE, HitRates
from optiml_magic.model.idea import Idea, Ideas
from optiml_magic.model.refusal import Refusal
from optiml_magic.model.view import View
from optiml_magic.proposers.base import Proposer
from optiml_magic.proposers.remembered import remembered


def mixed(
    proposers: Sequence[Proposer],
    view: View,
    count: int,
    hit_rates: HitRates = NO_EXPERIENCE,
    find_known: Callable[[View], Known] = lambda _: NOTHING_KNOWN,
) -> Ideas:
    """All ideas for a view, highest prior first; those that seldom paid off lose of theirs.

    ``find_known`` says what is known of kernels like the one of the view. Each proposer sees what
    those before it refused and would try, and may weigh that. Equal texts are found when they are
    made.
    """
    roofline = view.step.evaluation.roofline or ""
    view = replace(view, known=find_known(view))
    refused: dict[Refusal, None] = {}
    ideas: list[Idea] = []
    more = False
    for proposer in proposers:
        told = tuple(dict.fromkeys((*view.step.refused, *refused)))
        seen = replace(
            view,
            step=replace(view.step, refused=told),
            find_queued=partial(_waiting, view.find_queued, (*ideas,)),
        )
        found = proposer.propose(seen, count)
        weights = dict(found.weights)
        ideas = [
            replace(idea, prior=min(1.0, round(idea.prior * weights.get(idea.key, 1.0), 3)))
            for idea in ideas
        ]
        ideas += hit_rates.weighed(found.ideas, roofline)
        refused |= dict.fromkeys(found.refused)
        more |= found.more
    ideas = remembered(ideas, view, view.known)
    return Ideas(tuple(sorted(ideas, key=lambda idea: -idea.prior)), tuple(refused), more)


def _waiting(find: Callable[[], tuple[Idea, ...]], ideas: tuple[Idea, ...]) -> tuple[Idea, ...]:
    """What waited before, and then what others just thought of that was not among it."""
    before = find()
    known = {idea.key for idea in before}
    new = sorted((i for i in ideas if i.key not in known), key=lambda idea: -idea.prior)
    return (*before, *new)


def informed(
    expand: Callable[[View, int], Ideas], facts: Callable[[Candidate], Facts | None]
) -> Callable[[View, int], Ideas]:
    """``expand`` whose proposers are told the facts of the step's program, where they ask."""

    def told(view: View, count: int) -> Ideas:
        return expand(replace(view, find_facts=partial(facts, view.step.candidate)), count)

    return told
