"""The search tree as a picture: which edits were built on which, and how each ended."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from optiml_magic.model.evaluation import Step
from optiml_magic.reports.figure import (
    AFTER,
    BEFORE,
    HEIGHT,
    INK,
    OTHER,
    WIDTH,
    NoPicture,
    Picture,
    drawing,
    label,
    picture,
)  # fmt: skip
from optiml_magic.reports.quantities import number_of, ratio
from optiml_magic.reports.summary import Summary, step_speedup
from optiml_magic.reports.table import children
from optiml_magic.reports.tree import preorder

if TYPE_CHECKING:
    from matplotlib.axes import Axes

NAME = "tree"
_NAMED = 40  # nodes that have room for their speed-ups
_KINDS = {"verified": OTHER, "failed": BEFORE, "the path to the best": AFTER}


def branches(summary: Summary) -> Picture | NoPicture:
    """Every candidate below the one that it is an edit of, one generation a row."""
    steps = summary.trajectory.steps
    if len(steps) < 2:
        return NoPicture(NAME, "only the input kernel was evaluated")
    below, places = children(summary.trajectory), _places(summary)
    path = {step.candidate.number for step in summary.trajectory.lineage(summary.winner)}
    small = len(steps) <= _NAMED
    with drawing(WIDTH, HEIGHT) as (figure, axes):
        for color, width, best in ((OTHER, 0.9, False), (AFTER, 2.2, True)):
            ends = [
                places[number]
                for s in steps
                if s.candidate.parent is not None and (s.candidate.number in path) == best
                for number in (s.candidate.parent, s.candidate.number)
            ]
            axes.plot(*_apart(ends, 2), color=color, linewidth=width, zorder=1)
        for kind, color in _KINDS.items():
            mine = [places[s.candidate.number] for s in steps if _kind(s, path) == kind]
            if mine:
                sign = "X" if kind == "failed" else "o"
                axes.plot([], [], sign, color=color, markersize=7, label=kind)
                shown = mine if small else []
                axes.plot(*_apart(shown), sign, color=color, markersize=7, zorder=2)
                dots = [place for place in mine if not small for place in (place, place)]
                # Lines of no length, which take few bytes.
                axes.plot(*_apart(dots, 2), color=color, linewidth=4, solid_capstyle="round")
        axes.plot(
            *places[summary.winner.candidate.number], "*", color=AFTER, markersize=15, zorder=3
        )
        for step in steps if small else ():
            number = step.candidate.number
            _named(axes, summary, step, places[number], leaf=not below[number])
        axes.invert_yaxis()
        axes.margins(0.06, 0.16)
        axes.set_axis_off()
        axes.set_title(f"The tree of {label(summary.task, 40)}: speed-ups, {summary.source}")
        figure.legend(loc="outside lower left", labelcolor=INK, ncols=3)
        return picture(figure, NAME, _told(summary, path))


def _named(
    axes: Axes, summary: Summary, step: Step, place: tuple[float, float], *, leaf: bool
) -> None:
    gain = step_speedup(summary, step)
    if gain and step.evaluation.duplicate_of is None:
        offset, across, up = ((0, -8), "center", "top") if leaf else ((8, 3), "left", "bottom")
        axes.annotate(
            ratio(gain), place, offset, textcoords="offset points",
            ha=across, va=up, fontsize=8,
        )  # fmt: skip


def _apart(places: Sequence[tuple[float, float]], every: int = 1) -> tuple[list[float], ...]:
    """Across and down, for lines through so many places each."""
    gap = [(float("nan"), float("nan"))]
    parts = [[*places[at : at + every], *gap] for at in range(0, len(places), every)]
    flat = [place for part in parts for place in part]
    return [x for x, _ in flat], [y for _, y in flat]


def _places(summary: Summary) -> dict[int, tuple[float, float]]:
    """Leaves side by side, each parent above the middle of its children."""
    below, found = children(summary.trajectory), dict[int, tuple[float, float]]()
    generations = [(step.candidate.number, depth) for depth, step in preorder(summary)]
    leaves = [number for number, _ in generations if not below[number]]
    across = {number: float(at) for at, number in enumerate(leaves)}
    for number, depth in reversed(generations):  # children before their parents
        if below[number]:
            across[number] = (across[below[number][0]] + across[below[number][-1]]) / 2
        found[number] = (across[number], float(depth))
    return found


def _kind(step: Step, path: set[int]) -> str:
    if step.candidate.number in path:
        return "the path to the best"
    return "verified" if step.evaluation.verdict.passed else "failed"


def _told(summary: Summary, path: set[int]) -> str:
    steps = summary.trajectory.steps
    failed = sum(not step.evaluation.verdict.passed for step in steps)
    edits = number_of(len(path) - 1, "edit")
    every = number_of(len(steps), "candidate")
    return (
        f"The search tree of {summary.task}: {every}, {failed} failed; the best is {edits} from "
        "where it began."
    )
