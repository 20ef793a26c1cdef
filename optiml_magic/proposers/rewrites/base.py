"""What a rewrite rule is: a program and its findings in, whole new programs out."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from optiml_magic.model.candidate import Proposal

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from optiml_magic.model.finding import Finding
    from optiml_magic.model.hypothesis import Hypothesis
    from optiml_magic.source.program import Program


class Rewrite(Protocol):
    """One rule. Where it is not certain that the result means the same, it proposes nothing."""

    name: str  # what Action.rewrite of a finding calls it

    def propose(self, program: Program, findings: Sequence[Finding]) -> Iterator[Proposal]: ...


def proposal(
    rule: Rewrite,
    text: str,
    title: str,
    rationale: str,
    hypothesis: Hypothesis,
    *,
    prior: float,
    findings: Sequence[Finding] = (),
) -> Proposal:
    """A proposal whose prior a finding that names the rule lifts half of the way to certainty."""
    asked = any(action.rewrite == rule.name for finding in findings for action in finding.actions)
    lifted = prior + (1.0 - prior) / 2 if asked else prior
    return Proposal(text, title, rule.name, rationale, hypothesis, round(lifted, 3))
