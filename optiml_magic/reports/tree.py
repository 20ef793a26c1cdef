"""The tree of a run, every candidate below the one that it is an edit of: as text and as HTML."""

from __future__ import annotations

from collections.abc import Iterator

from optiml_magic.model.evaluation import Step
from optiml_magic.printable import printable
from optiml_magic.reports.blocks import BAD, GOOD, QUIET, SMALL
from optiml_magic.reports.markup import Markup, element
from optiml_magic.reports.quantities import ratio
from optiml_magic.reports.summary import Summary, promise, step_speedup
from optiml_magic.reports.table import children

_INDENT = "  "
_STEP = 18  # pixels of a generation
_CELL = "padding:2px 12px 2px {}px;text-align:left;vertical-align:top"
_BEST = ";background-color:rgba(47,127,208,0.12)"


def lines(summary: Summary) -> list[str]:
    """One line for each candidate; a star marks the winner.

    Under one parent they stand in the order of evaluation.
    """
    return [
        printable(f"{_INDENT * depth}{_line(summary, step)}") for depth, step in preorder(summary)
    ]


def fragment(summary: Summary) -> Markup:
    """The same as a table: the path to the winner is tinted."""
    path = {step.candidate.number for step in summary.trajectory.lineage(summary.winner)}
    rows = [_row(summary, depth, step, path) for depth, step in preorder(summary)]
    names = ("edit", "speed-up", "verdict", "what was expected, and what came")
    head = element("tr", *(element("th", n, scope="col", style=_CELL.format(0)) for n in names))
    body = element("table", head, *rows, style="border-collapse:collapse;font-size:13px")
    return element("div", body, style="overflow-x:auto")


def preorder(summary: Summary) -> Iterator[tuple[int, Step]]:
    """Every step with its generation, parents before their children."""
    steps = {step.candidate.number: step for step in summary.trajectory.steps}
    below = children(summary.trajectory)
    waiting = [(0, root.candidate.number) for root in reversed(summary.trajectory.roots)]
    while waiting:
        depth, number = waiting.pop()
        yield depth, steps[number]
        waiting += [(depth + 1, child) for child in reversed(below[number])]


def _line(summary: Summary, step: Step) -> str:
    mark = " *" if step is summary.winner else ""
    return f"#{step.candidate.number} {_told(summary, step)}{mark}  {step.candidate.proposal.title}"


def _told(summary: Summary, step: Step) -> str:
    gain, evaluation = step_speedup(summary, step), step.evaluation
    if evaluation.duplicate_of is not None:
        return f"same as #{evaluation.duplicate_of}"
    return ratio(gain) if gain else str(evaluation.verdict.outcome)


def _row(summary: Summary, depth: int, step: Step, path: set[int]) -> Markup:
    evaluation, number = step.evaluation, step.candidate.number
    gain, told = step_speedup(summary, step), promise(step)
    weight = ";font-weight:600" * (number in path)
    again = evaluation.duplicate_of
    ending = f"same as #{again}" if again is not None else str(evaluation.verdict.outcome)
    about = f"{_CELL.format(0)};color:{QUIET};{SMALL}"
    figure = f"{_CELL.format(0)};white-space:nowrap{weight}"
    title = f" #{number} {step.candidate.proposal.title}"
    cells: tuple[tuple[str, ...], ...] = (
        (_CELL.format(_STEP * depth) + weight, mark(summary, step), title),
        (figure, ratio(gain) if gain else ""),
        (figure, ending),
        (about, "; ".join(told) if told else _why(step)),
    )
    tint = _BEST * (number in path)
    return element("tr", *(element("td", *texts, style=s + tint) for s, *texts in cells))


def _why(step: Step) -> str:
    return "" if step.evaluation.verdict.passed else step.evaluation.verdict.summary


def mark(summary: Summary, step: Step) -> Markup:
    """How a step ended, as one coloured sign."""
    if step is summary.winner:
        return element("span", "\u2605", style=f"color:{GOOD}")
    if step.evaluation.duplicate_of is not None:
        return element("span", "=", style=f"color:{QUIET}")
    passed = step.evaluation.verdict.passed
    sign, color = ("\u2713", GOOD) if passed else ("\u2717", BAD)
    return element("span", sign, style=f"color:{color}")
