"""Findings that give the same advice, told once."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import get_args

from optiml_magic.model.finding import Action, Finding, Severity
from optiml_magic.reports.quantities import ratio

_ORDER: tuple[Severity, ...] = get_args(Severity)  # the worst first


@dataclass(frozen=True)
class Advice:
    """Actions, and every finding that asks for them."""

    findings: tuple[Finding, ...]
    actions: tuple[Action, ...]

    @property
    def severity(self) -> Severity:
        """Of the worst finding."""
        return min((f.severity for f in self.findings), key=_ORDER.index)

    @property
    def tools(self) -> str:
        """Who found it."""
        return ", ".join(dict.fromkeys(f.tool for f in self.findings))

    @property
    def causes(self) -> tuple[str, ...]:
        """What was found, each once."""
        return tuple(dict.fromkeys(f.cause for f in self.findings))

    @property
    def gain(self) -> str:
        """What may come of it, and why."""
        most = max(self.findings, key=lambda f: f.gain[1])
        reason = f": {most.reason}" if most.reason else ""
        return f"expected gain {ratio(most.gain[0])} to {ratio(most.gain[1])}{reason}"


def merged(findings: Sequence[Finding]) -> list[Advice]:
    """The worst first; otherwise in the order of the findings."""
    groups: dict[tuple[str, ...], list[Finding]] = {}
    for found in findings:
        told = tuple(action.told for action in found.actions)
        groups.setdefault(told or (found.tool,), []).append(found)
    every = [Advice(tuple(group), group[0].actions) for group in groups.values()]
    return sorted(every, key=lambda advice: _ORDER.index(advice.severity))
