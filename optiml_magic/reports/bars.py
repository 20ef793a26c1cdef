"""Where the time goes, before and after: what each resource of the chip alone would need.

On a card it is how busy each is, where ncu counted; the two are not the same and say so.
"""

from __future__ import annotations

from collections.abc import Mapping

from optiml_magic.findings.subject import UTILISATION
from optiml_magic.model.measurement import Measurement
from optiml_magic.reports.figure import (
    AFTER,
    BEFORE,
    HEIGHT,
    INK,
    WIDTH,
    NoPicture,
    Picture,
    drawing,
    label,
    picture,
)  # fmt: skip
from optiml_magic.reports.quantities import seconds
from optiml_magic.reports.summary import Summary

NAME = "bars"
_MOST = 8
_LEAST = 5  # rows that the bars are drawn as thin as
_ALONE = "microseconds that each would need alone (they overlap; dashed: the whole run)"
_BUSY = {"dram": "gpu__dram_throughput.avg.pct_of_peak_sustained_elapsed", **UTILISATION}
_TITLES = {
    "dram": "device memory",
    "l2": "L2 cache",
    "lsu": "L1 and shared memory",
    "atomics": "atomics at one place",
    "issue": "issuing instructions",
    "fp32": "float32 units",
    "fp64": "float64 units",
    "int": "integer units",
    "sfu": "special functions",
    "latency": "waiting (latency)",
    "blocks": "starting blocks",
    "launch": "launching",
}


def bars(summary: Summary) -> Picture | NoPicture:
    """Terms of the time model where the time is estimated; ncu's utilisation on a card."""
    before = summary.root.evaluation.measurement
    after = summary.winner.evaluation.measurement
    if before is None or after is None:
        return NoPicture(NAME, "the input kernel has no time")
    if before.source == "estimated":
        terms = _terms(before), _terms(after)
        if not terms[0] or not terms[1]:
            return NoPicture(NAME, "the estimate does not say where the time goes")
        return _drawn(summary, *terms, before, after)
    used = _utilisation(before), _utilisation(after)
    if not used[0] or not used[1]:
        return NoPicture(NAME, "no hardware counters say where the time goes")
    return _drawn(summary, *used, before, after)


def _terms(measured: Measurement) -> dict[str, float]:
    return {bound.resource: bound.seconds for bound in measured.bounds}


def _utilisation(measured: Measurement) -> dict[str, float]:
    found = {name: measured.get(metric) for name, metric in _BUSY.items()}
    return {name: value for name, value in found.items() if value is not None}


def _drawn(
    summary: Summary,
    first: Mapping[str, float],
    last: Mapping[str, float],
    before: Measurement,
    after: Measurement,
) -> Picture:
    estimated = before.source == "estimated"
    ranked = sorted({*first, *last}, key=lambda n: -max(first.get(n, 0.0), last.get(n, 0.0)))
    names = ranked[:_MOST]
    changed = summary.winner is not summary.root
    with drawing(WIDTH, HEIGHT) as (figure, axes):
        rows = range(len(names))
        scale = 1e6 if estimated else 1.0
        thick = 0.36 if changed else 0.6
        for shift, color, values, key in (
            (-thick / 2, BEFORE, first, f"{summary.start}, {seconds(before.seconds)}"),
            (thick / 2, AFTER, last, f"best, {seconds(after.seconds)}"),
        ):
            if color == AFTER and not changed:
                continue
            lengths = [scale * values.get(name, 0.0) for name in names]
            places = [row + (shift if changed else 0.0) for row in rows]
            axes.barh(places, lengths, thick, color=color, label=key)
        if estimated:
            for color, whole in ((BEFORE, before), (AFTER, after))[: 2 if changed else 1]:
                axes.axvline(scale * whole.seconds, color=color, linewidth=1.2, linestyle="--")
        axes.set_yticks(list(rows), [_TITLES.get(name, label(name, 24)) for name in names])
        axes.set_ylim(max(len(names), _LEAST) - 0.5, -0.5)
        axes.tick_params(axis="y", length=0)
        axes.set_xlim(left=0)
        axes.set_xlabel(_ALONE if estimated else "% of its peak")
        task, chip = label(summary.task, 30), label(before.chip, 20)
        goes = f"Where the time of {task} goes on {chip}, estimated"
        busy = f"How busy {task} keeps the parts of {chip}, by ncu"
        axes.set_title(goes if estimated else busy)
        figure.legend(loc="outside lower left", labelcolor=INK, ncols=2)
        return picture(figure, NAME, _told(summary, names[0], before, after))


def _told(summary: Summary, longest: str, before: Measurement, after: Measurement) -> str:
    what = "Where the time goes" if before.source == "estimated" else "How busy each part is"
    return (
        f"{what}, {summary.task}, {summary.source}: "
        f"{seconds(before.seconds)} before, {seconds(after.seconds)} after; the longest bar is "
        f"{_TITLES.get(longest, longest)}."
    )
