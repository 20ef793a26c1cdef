"""The table of a run: geometric means, the open and the held-out part apart, and every task."""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from optiml_magic.bench.entry import Entry, Part
from optiml_magic.bench.row import Row
from optiml_magic.reports.quantities import percent, ratio, seconds

PARTS: tuple[Part, ...] = ("open", "held-out")


@dataclass(frozen=True)
class Totals:
    """One part; a figure is None where no task has it.

    ``compared`` tasks have a peer; ``peers`` and ``peers_share`` are the speed-up and the share of
    the floor of the best of each.
    """

    part: Part
    tasks: int
    speedup: float | None
    share: float | None
    compared: int
    ahead: float | None
    peers: float | None
    peers_share: float | None
    evaluations: float | None  # the median


def geometric_mean(values: Iterable[float]) -> float | None:
    """None of nothing."""
    logarithms = [math.log(value) for value in values]
    return math.exp(statistics.fmean(logarithms)) if logarithms else None


def totals(rows: Sequence[Row], part: Part) -> Totals:
    """Of the rows of one part that have figures."""
    mine = [row for row in rows if row.part == part and not row.error]
    compared = [(row, row.seconds[row.best_peer]) for row in mine if row.best_peer]
    reached = [row.evaluations for row in mine if row.evaluations is not None]
    return Totals(
        part,
        len(mine),
        geometric_mean(row.speedup for row in mine),
        geometric_mean(1 / row.over_floor for row in mine),
        len(compared),
        geometric_mean(row.ahead for row, _ in compared if row.ahead is not None),
        geometric_mean(row.seconds["input"] / peer for row, peer in compared),
        geometric_mean(row.floor / peer for row, peer in compared),
        statistics.median(reached) if reached else None,
    )


def table(rows: Sequence[Row], asked: Sequence[Entry]) -> str:
    """As Markdown; what was asked for and was not run is listed."""
    lines = [
        "| part | tasks | speed-up | of the floor | over the best peer | evaluations to 95 % |",
        "|---|---|---|---|---|---|",
    ]
    for part in PARTS:
        found = totals(rows, part)
        if not found.tasks:
            continue
        evaluations = "" if found.evaluations is None else f"{found.evaluations:g}"
        ahead = f"{_ratio(found.ahead)} ({found.compared} tasks)" if found.compared else "no peers"
        lines.append(
            f"| {part} | {found.tasks} | {_ratio(found.speedup)} | {_percent(found.share)} "
            f"| {ahead} | {evaluations} |"
        )
        if found.compared:
            lines.append(
                f"| its best peers | {found.compared} | {_ratio(found.peers)} "
                f"| {_percent(found.peers_share)} | | |"
            )
    for part in PARTS:
        lines += _tasks([row for row in rows if row.part == part and not row.error], part)
    lines += _missing(rows, asked)
    return "\n".join(lines)


def _tasks(rows: Sequence[Row], part: Part) -> list[str]:
    if not rows:
        return []
    lines = [
        "",
        f"| {part} | input | best | speed-up | times the floor | best peer | over it | to 95 % |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for row in rows:
        peer = f"{row.best_peer}, {seconds(row.seconds[row.best_peer])}" if row.best_peer else ""
        lines.append(
            f"| {row.family}/{row.task} | {seconds(row.seconds['input'])} "
            f"| {seconds(row.seconds['best'])} | {ratio(row.speedup)} | {row.over_floor:.3g} "
            f"| {peer} | {_ratio(row.ahead)} "
            f"| {'' if row.evaluations is None else row.evaluations} |"
        )
    return lines


def _missing(rows: Sequence[Row], asked: Sequence[Entry]) -> list[str]:
    done = {row.task for row in rows}
    lines = [f"- {row.task}: {row.error}" for row in rows if row.error]
    lines += [f"- {entry.name}: not run" for entry in asked if entry.name not in done]
    return ["", "Without figures, and in no mean:", "", *lines] if lines else []


def _ratio(value: float | None) -> str:
    return "" if value is None else ratio(value)


def _percent(value: float | None) -> str:
    return "" if value is None else percent(value)
