"""What a rewrite rule is: a program and what is known of it in, ideas for new programs out."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Protocol

from optiml_magic.answered import launches_at
from optiml_magic.model.hypothesis import Hypothesis
from optiml_magic.model.idea import Idea

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from optiml_magic.model.finding import Action, Finding
    from optiml_magic.model.refusal import Refusal
    from optiml_magic.model.view import View
    from optiml_magic.source.program import Program


_MOST = 3  # times its chance, for what its rule knows to be unlikely whatever is measured: ours
_ALL: Mapping[Finding, frozenset[str]] = {}


class Rewrite(Protocol):
    """One rule. Where it is not certain that the result means the same, it refuses.

    Its ideas carry its name as their proposer. Findings that ask for it lift them: see answering.
    """

    name: str  # what Action.rewrite of a finding calls it

    def propose(self, program: Program, view: View) -> Iterator[Idea | Refusal]:
        """Ideas for the program of ``view.step``, and why not for what it comes close to."""


def answering(
    idea: Idea, findings: Sequence[Finding], about: Mapping[Finding, frozenset[str]] = _ALL
) -> Idea:
    """The idea with its prior lifted half of the way to certainty where a finding names the rule.

    One that is unlikely by what its rule knows of the kernel is lifted to a few times that.

    It answers the finding that expects what the rule expects, else the first that names the rule;
    where that says which metric should move, this is what will be tested. Findings about other
    launches alone, of which ``about`` has the kernels, do not ask for it.
    """
    edited = {*idea.launches}
    asked = [
        (finding, action)
        for finding in findings
        for action in finding.actions
        if action.rewrite == idea.proposer
        and (not edited or not about.get(finding) or edited & about[finding])
    ]
    hypothesis = idea.hypothesis
    if not asked or hypothesis is None:
        return idea
    agreeing = (pair for pair in asked if pair[1].metric == hypothesis.metric)
    finding, action = next(agreeing, asked[0])
    return replace(
        idea,
        hypothesis=_expected(action, hypothesis),
        prior=round(min(idea.prior + (1.0 - idea.prior) / 2, _MOST * idea.prior), 3),
        answers=finding.tool,
    )


def subjects(
    findings: Sequence[Finding], before: Program, own: Program
) -> Mapping[Finding, frozenset[str]]:
    """The kernels of the launches that findings are about; none where they are about all of it.

    Their lines are those of ``before``; ``own`` has the same launches in the same order.
    """
    return {finding: frozenset(_kernels(finding, before, own)) for finding in findings}


def _kernels(finding: Finding, before: Program, own: Program) -> Iterator[str]:
    lines = {evidence.line for evidence in finding.evidence if evidence.line}
    at = frozenset[int]().union(*(launches_at(line, before) for line in lines))
    return (kernel for n in at if (kernel := own.launches[n].kernel) is not None)


def _expected(action: Action, hypothesis: Hypothesis) -> Hypothesis:
    """What the action promises, in place of what the rule does; its range where it tells none."""
    if not action.metric:
        return hypothesis
    same = (action.metric, action.direction) == (hypothesis.metric, hypothesis.direction)
    untold = action.factor == (1.0, 1.0)
    factor = hypothesis.factor if same and untold else action.factor
    return Hypothesis(action.metric, action.direction, hypothesis.because, factor)
