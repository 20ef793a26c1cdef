"""How often the edits of earlier runs paid off, and what that is worth to the next ones.

A hit is an edit that was verified and measured and gained at least 10 % of its parent's time. Rates
are smoothed by a Beta prior, so that a few tries move them little: first over all roofline classes,
then towards the class at hand; an action of a finding starts from the rate of the rule that it
asks for. Without experience every rate is the prior's mean, and nothing is ranked otherwise than by
the findings and the priors themselves. The constants are ours.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal

from optiml_magic.model.finding import Finding
from optiml_magic.model.idea import Idea

GAIN = 1.10  # times faster than the parent, from which an edit is a hit
MEAN = 0.3  # of the Beta prior: about one edit in three is hoped to be a hit
STRENGTH = 4.0  # how many tries the prior is worth

Kind = Literal["tool", "action", "rule"]
_ORDER = {"critical": 0, "warning": 1, "note": 2}


@dataclass(frozen=True)
class Tally:
    """What became of the edits of one tool, action or rule, on one family of chips in one class.

    ``applied`` are those that were evaluated; ``measured`` of them have a time beside that of their
    parent, and ``log_gain`` is the sum of the logarithms of those speed-ups. Times of one
    ``source`` are never added to those of another.
    """

    kind: Kind
    name: str  # of an action: "tool > rule"
    source: str
    family: str
    roofline: str
    proposed: int = 0
    applied: int = 0
    confirmed: int = 0
    refuted: int = 0
    not_measurable: int = 0
    gained: int = 0
    measured: int = 0
    log_gain: float = 0.0

    @property
    def mean_gain(self) -> float | None:
        """The geometric mean of the speed-ups over the parents; None where none was measured."""
        return math.exp(self.log_gain / self.measured) if self.measured else None

    @property
    def rate(self) -> float:
        """The smoothed hit rate of this tally alone."""
        return smoothed(MEAN, self.gained, self.applied)


@dataclass(frozen=True)
class HitRates:
    """The tallies of one source and one family of chips: all that a run looks at."""

    tallies: tuple[Tally, ...] = ()

    def rate(self, kind: Kind, name: str, roofline: str, mean: float = MEAN) -> float:
        """The smoothed hit rate in (0, 1); ``mean`` where nothing is known."""
        found = [t for t in self.tallies if (t.kind, t.name) == (kind, name)]
        pooled = smoothed(mean, sum(t.gained for t in found), sum(t.applied for t in found))
        near = [t for t in found if t.roofline == roofline]
        return smoothed(pooled, sum(t.gained for t in near), sum(t.applied for t in near))

    def weighed(self, ideas: Sequence[Idea], roofline: str) -> list[Idea]:
        """The ideas with their priors scaled: the odds are multiplied by those of a hit."""
        if not self.tallies:
            return list(ideas)
        return [_weighed(idea, self._of(idea, roofline)) for idea in ideas]

    def ranked(self, findings: Sequence[Finding], roofline: str) -> tuple[Finding, ...]:
        """Within a severity, what promises most comes first: the gain times the tool's rate."""
        if not self.tallies:
            return tuple(findings)

        def place(finding: Finding) -> tuple[int, float]:
            promised = math.log(max(finding.gain[1], 1.0))
            return _ORDER[finding.severity], -promised * self.rate("tool", finding.tool, roofline)

        return tuple(sorted(findings, key=place))

    def _of(self, idea: Idea, roofline: str) -> float:
        rule = self.rate("rule", idea.proposer, roofline)
        if not idea.answers:
            return rule
        name = action_name(idea.answers, idea.proposer)
        return self.rate("action", name, roofline, rule)


NO_EXPERIENCE = HitRates()


def action_name(tool: str, rule: str) -> str:
    """An action as a tally calls it."""
    return f"{tool} > {rule}"


def smoothed(mean: float, hits: int, tries: int) -> float:
    """The mean of a Beta distribution after so many tries; in (0, 1) where ``mean`` is."""
    return (STRENGTH * mean + hits) / (STRENGTH + tries)


def _weighed(idea: Idea, rate: float) -> Idea:
    if not 0.0 < idea.prior < 1.0:
        return idea
    odds = idea.prior / (1.0 - idea.prior) * (rate / (1.0 - rate)) * ((1.0 - MEAN) / MEAN)
    return replace(idea, prior=max(0.001, round(odds / (1.0 + odds), 3)))
