"""What a rewrite rule is: a program and what is known of it in, ideas for new programs out."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Protocol

from optiml_magic.model.hypothesis import Hypothesis
from optiml_magic.model.idea import Idea

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from optiml_magic.model.finding import Action, Finding
    from optiml_magic.model.refusal import Refusal
    from optiml_magic.model.view import View
    from optiml_magic.source.program import Program


class Rewrite(Protocol):
    """One rule. Where it is not certain that the result means the same, it refuses.

    Its ideas carry its name as their proposer. Findings that ask for it lift them: see answering.
    """

    name: str  # what Action.rewrite of a finding calls it

    def propose(self, program: Program, view: View) -> Iterator[Idea | Refusal]:
        """Ideas for the program of ``view.step``, and why not for what it comes close to."""


def answering(idea: Idea, findings: Sequence[Finding]) -> Idea:
    """The idea with its prior lifted half of the way to certainty where a finding names the rule.

    It answers the finding that expects what the rule expects, else the first that names the rule;
    where that says which metric should move, this is what will be tested.
    """
    asked = [
        (finding, action)
        for finding in findings
        for action in finding.actions
        if action.rewrite == idea.proposer
    ]
    hypothesis = idea.hypothesis
    if not asked or hypothesis is None:
        return idea
    agreeing = (pair for pair in asked if pair[1].metric == hypothesis.metric)
    finding, action = next(agreeing, asked[0])
    return replace(
        idea,
        hypothesis=_expected(action, hypothesis),
        prior=round(idea.prior + (1.0 - idea.prior) / 2, 3),
        answers=finding.tool,
    )


def _expected(action: Action, hypothesis: Hypothesis) -> Hypothesis:
    """What the action promises, in place of what the rule does; its range where it tells none."""
    if not action.metric:
        return hypothesis
    same = (action.metric, action.direction) == (hypothesis.metric, hypothesis.direction)
    untold = action.factor == (1.0, 1.0)
    factor = hypothesis.factor if same and untold else action.factor
    return Hypothesis(action.metric, action.direction, hypothesis.because, factor)
