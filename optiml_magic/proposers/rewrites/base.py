"""What a rewrite rule is: a program and what is known of it in, ideas for new programs out."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from optiml_magic.model.candidate import text_digest
from optiml_magic.model.hypothesis import Hypothesis
from optiml_magic.model.idea import Idea, Make, Ready

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from optiml_magic.model.finding import Action, Finding
    from optiml_magic.model.refusal import Refusal
    from optiml_magic.model.view import View
    from optiml_magic.source.program import Program


class Rewrite(Protocol):
    """One rule. Where it is not certain that the result means the same, it refuses."""

    name: str  # what Action.rewrite of a finding calls it

    def propose(self, program: Program, view: View) -> Iterator[Idea | Refusal]:
        """Ideas for the program of ``view.step``, and why not for what it comes close to."""


def ready(text: str) -> tuple[Make, str]:
    """A text that a rule had to make to know that it can, and what tells it from others."""
    return Ready(text), text_digest(text)


def idea(
    rule: Rewrite,
    made: tuple[Make, str],
    title: str,
    rationale: str,
    hypothesis: Hypothesis,
    *,
    prior: float,
    findings: Sequence[Finding] = (),
    arithmetic: tuple[str, ...] = (),
) -> Idea:
    """An idea whose prior a finding that names the rule lifts half of the way to certainty.

    ``made`` is how its text is made, and what tells it from the rule's other ideas for the program:
    the site and the numbers. It answers the finding that expects what the rule expects, else the first that names the rule; where that says
    which metric should move, this is what will be tested.
    """
    make, site = made
    key = f"{rule.name} {site}"
    asked = [
        (finding, action)
        for finding in findings
        for action in finding.actions
        if action.rewrite == rule.name
    ]
    if not asked:
        return Idea(
            title, rule.name, make, key, rationale, hypothesis, prior, arithmetic=arithmetic
        )
    agreeing = (pair for pair in asked if pair[1].metric == hypothesis.metric)
    finding, action = next(agreeing, asked[0])
    return Idea(
        title,
        rule.name,
        make,
        key,
        rationale,
        _expected(action, hypothesis),
        round(prior + (1.0 - prior) / 2, 3),
        finding.tool,
        arithmetic,
    )


def _expected(action: Action, hypothesis: Hypothesis) -> Hypothesis:
    """What the action promises, in place of what the rule does; its range where it tells none."""
    if not action.metric:
        return hypothesis
    same = (action.metric, action.direction) == (hypothesis.metric, hypothesis.direction)
    untold = action.factor == (1.0, 1.0)
    factor = hypothesis.factor if same and untold else action.factor
    return Hypothesis(action.metric, action.direction, hypothesis.because, factor)
