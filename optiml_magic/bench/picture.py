"""The suite as a picture: how far the input, the best and the best peer are above each floor."""

from __future__ import annotations

from collections.abc import Sequence

from optiml_magic.bench.row import BEST, INPUT, Row
from optiml_magic.reports.figure import AFTER, BEFORE, INK, OTHER, Picture, drawing, picture
from optiml_magic.reports.quantities import ratio

NAME = "suite"


def suite_picture(rows: Sequence[Row]) -> Picture:
    """One line a task that has figures, the held-out ones below; at least one is needed."""
    drawn = sorted((row for row in rows if not row.error), key=lambda r: (r.part != "open",))
    with drawing(7.6, 1.4 + 0.2 * len(drawn)) as (figure, axes):
        places = list(range(len(drawn)))
        above = {
            INPUT: [row.seconds[INPUT] / row.floor for row in drawn],
            BEST: [row.over_floor for row in drawn],
        }
        axes.hlines(places, above[BEST], above[INPUT], color=OTHER, linewidth=0.8)
        axes.plot(above[INPUT], places, "o", color=OTHER, markersize=4, label="input kernel")
        peers = [(row.seconds[row.best_peer] / row.floor, at)
                 for at, row in enumerate(drawn) if row.best_peer]  # fmt: skip
        if peers:
            xs, ys = zip(*peers, strict=True)
            axes.plot(xs, ys, "D", color=BEFORE, markersize=4, label="best peer")
        axes.plot(above[BEST], places, "o", color=AFTER, markersize=5, label="found")
        axes.axvline(1.0, color=INK, linewidth=0.8, linestyle=":")
        first = next((at for at, row in enumerate(drawn) if row.part != "open"), None)
        if first:
            axes.axhline(first - 0.5, color=INK, linewidth=0.5)
        names = [row.task if row.part == "open" else f"{row.task} (held out)" for row in drawn]
        axes.set_yticks(places, names, fontsize=8)
        axes.set_ylim(len(drawn) - 0.4, -0.6)
        axes.tick_params(axis="y", length=0)
        axes.set_xscale("log")
        axes.xaxis.set_major_formatter(lambda value, _: f"{value:g}")
        axes.tick_params(axis="x", which="minor", labelbottom=False)
        axes.set_xlabel("times the floor of the task")
        source = drawn[0].source
        axes.set_title(f"The suite on {drawn[0].setup.chip}, {source}")
        figure.legend(loc="outside lower left", labelcolor=INK, ncols=3)
        fastest = max(row.speedup for row in drawn)
        told = (
            f"{len(drawn)} tasks, {source}: times above the floor of the input kernel, the best "
            f"that was found and the best peer; the largest speed-up is {ratio(fastest)}."
        )
        return picture(figure, NAME, told)
