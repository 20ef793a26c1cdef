"""A run as flat rows, and its tree by number."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

from optiml_magic.model.evaluation import Trajectory
from optiml_magic.reports.summary import Summary, step_speedup


def rows(summary: Summary) -> list[dict[str, Any]]:
    """One row for each candidate in order of evaluation; None where nothing was measured."""
    return [
        {
            "number": step.candidate.number,
            "parent": step.candidate.parent,
            "title": step.candidate.proposal.title,
            "proposer": step.candidate.proposal.proposer,
            "outcome": str(step.evaluation.verdict.outcome),
            "duplicate_of": step.evaluation.duplicate_of,
            "seconds": measured.seconds if measured else None,
            "speedup": step_speedup(summary, step),
            "source": measured.source if measured else None,
            "chip": measured.chip if measured else None,
            "reward": step.evaluation.reward,
            "answers": step.candidate.proposal.answers,
            "expected": str(step.candidate.proposal.hypothesis or ""),
            "answered": str(step.evaluation.answered or ""),
            "hypothesis": step.evaluation.test.state if step.evaluation.test else None,
            "kept": step.evaluation.test.kept if step.evaluation.test else None,
        }
        for step in summary.trajectory.steps
        for measured in (step.evaluation.measurement,)
    ]


def children(trajectory: Trajectory) -> Mapping[int, tuple[int, ...]]:
    """The numbers of each candidate's children, in order of evaluation."""
    found: dict[int, tuple[int, ...]] = {s.candidate.number: () for s in trajectory.steps}
    for step in trajectory.steps:
        if step.candidate.parent is not None:
            found[step.candidate.parent] += (step.candidate.number,)
    return MappingProxyType(found)
