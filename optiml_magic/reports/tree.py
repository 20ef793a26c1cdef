"""The tree of a run as text: every candidate below the one that it is an edit of."""

from __future__ import annotations

from collections.abc import Iterator

from optiml_magic.model.evaluation import Step
from optiml_magic.printable import printable
from optiml_magic.reports.quantities import ratio
from optiml_magic.reports.summary import Summary, step_speedup
from optiml_magic.reports.table import children

_INDENT = "  "


def lines(summary: Summary) -> list[str]:
    """One line for each candidate; a star marks the winner.

    Under one parent they stand in the order of evaluation.
    """
    return [printable(line) for line in _below(summary)]


def _below(summary: Summary) -> Iterator[str]:
    steps = {step.candidate.number: step for step in summary.trajectory.steps}
    below = children(summary.trajectory)
    waiting = [(0, root.candidate.number) for root in reversed(summary.trajectory.roots)]
    while waiting:
        depth, number = waiting.pop()
        yield f"{_INDENT * depth}{_line(summary, steps[number])}"
        waiting += [(depth + 1, child) for child in reversed(below[number])]


def _line(summary: Summary, step: Step) -> str:
    gain, evaluation = step_speedup(summary, step), step.evaluation
    if evaluation.duplicate_of is not None:
        told = f"same as #{evaluation.duplicate_of}"
    else:
        told = ratio(gain) if gain else str(evaluation.verdict.outcome)
    mark = " *" if step is summary.winner else ""
    return f"#{step.candidate.number} {told}{mark}  {step.candidate.proposal.title}"
