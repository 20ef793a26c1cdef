"""The search as a picture: the best speed-up so far, evaluation by evaluation."""

from __future__ import annotations

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
from optiml_magic.reports.quantities import ratio
from optiml_magic.reports.roofline import best_so_far
from optiml_magic.reports.summary import Summary, step_speedup

NAME = "progress"


def progress(summary: Summary) -> Picture | NoPicture:
    """Each candidate at its speed-up; those that failed below the axis."""
    steps = summary.trajectory.steps
    if summary.root.evaluation.measurement is None:
        return NoPicture(NAME, "the input kernel has no time")
    if len(steps) < 2:
        return NoPicture(NAME, "only the input kernel was evaluated")
    passed, failed = [], []
    for at, step in enumerate(steps):
        gain = step_speedup(summary, step)
        if gain is not None and step.evaluation.verdict.passed:
            passed.append((at, gain))
        else:
            failed.append(at)
    at_best = [(steps.index(s), step_speedup(summary, s) or 1.0) for s in best_so_far(summary)]
    nan = float("nan")
    from matplotlib.ticker import MaxNLocator

    with drawing(WIDTH, HEIGHT) as (figure, axes):
        ends = [*at_best, (len(steps) - 1, at_best[-1][1])]
        axes.step(
            [x for x, _ in ends],
            [y for _, y in ends],
            where="post",
            color=AFTER,
            label="best so far",
        )
        axes.plot(
            [v for x, _ in passed for v in (x, x, nan)],
            [v for _, y in passed for v in (y, y, nan)],
            color=OTHER, linewidth=5, solid_capstyle="round",
        )  # fmt: skip
        axes.plot([], [], "o", color=OTHER, markersize=5, label="verified")
        axes.set_yscale("log", base=2)
        low = min(y for _, y in passed)
        if failed:
            floor = low / 1.5
            axes.plot(
                [v for x in failed for v in (x, x, nan)],
                [floor / 1.05, floor * 1.05, nan] * len(failed),
                color=BEFORE, linewidth=2, label="failed",
            )  # fmt: skip
        axes.axhline(1.0, color=INK, linewidth=0.8, linestyle=":")
        axes.yaxis.set_major_formatter(lambda value, _: ratio(value))
        axes.tick_params(which="minor", labelleft=False)
        axes.set_xlabel("evaluation")
        axes.set_ylabel(f"speed-up, {summary.source}")
        axes.set_title(f"The search on {label(summary.task, 40)}")
        axes.xaxis.set_major_locator(MaxNLocator(integer=True))
        figure.legend(loc="outside right upper", labelcolor=INK)
        best = at_best[-1]
        told = (
            f"The search on {summary.task}: the best of {len(steps)} evaluations is "
            f"{ratio(best[1])}, {summary.source}, found as number {best[0]}; "
            f"{len(failed)} failed."
        )
        return picture(figure, NAME, told)
