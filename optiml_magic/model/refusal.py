"""Why a rule leaves a program alone: an expected end, told to whoever looks for what was missed."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from optiml_magic.model.finding import Finding

MOST = 12  # that are shown of one program
_FAILED = "the rule failed"


@dataclass(frozen=True)
class Refusal:
    """One rule on one program; ``line`` counts from 1 in the program's text, 0 where it has none.

    ``reason`` is a clause or a noun in lower case without a full stop: what stands in the way.
    """

    rule: str
    reason: str
    line: int = 0

    @classmethod
    def failed(cls, rule: str, why: str = "") -> Refusal:
        """Of a rule that broke, which is a fault of the rule and not of the program."""
        return cls(rule, f"{_FAILED}: {why}" if why else _FAILED)

    @property
    def fault(self) -> bool:
        """Whether the rule broke."""
        return self.reason.startswith(_FAILED)

    def __str__(self) -> str:
        place = f", line {self.line}" if self.line else ""
        return f"{self.rule}: {self.reason}{place}"


Refused = Mapping[int, tuple[Refusal, ...]]
"""What was refused, by the number of the candidate that it is about."""

NOTHING: Refused = {}


def foremost(
    refusals: Iterable[Refusal], findings: Sequence[Finding] = (), most: int = MOST
) -> tuple[Refusal, ...]:
    """Distinct ones in their order, but faults and rules that a finding asks for come first."""
    asked = {action.rewrite for finding in findings for action in finding.actions}
    distinct = dict.fromkeys(refusals)
    ranked = sorted(distinct, key=lambda refusal: (not refusal.fault, refusal.rule not in asked))
    return tuple(ranked[:most])
