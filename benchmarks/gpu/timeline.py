"""What every moment of some searches went into, as a picture: a lane a task, a colour a stage.

    python benchmarks/gpu/timeline.py RATES.jsonl OUT.svg

RATES.jsonl is what ``rates.py`` wrote; of several searches of one task the last is drawn. A stage
is drawn until the next begins, so that moments in none of them belong to the one before. The table
that is printed beside has the share of the wall time in which the device had work: the stages
``verify``, ``measure``, ``count``, ``inspect`` and ``settle``, by their exact seconds. In those the
host also compares and draws inputs, so the device is busy for less.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

from optiml_magic.reports.figure import INK, Picture, drawing, picture
from optiml_magic.timings import STAGES

Row = dict[str, Any]
BUSY = ("verify", "measure", "count", "inspect", "settle")
# Told apart on white and on black; grey for what the device has no part in.
COLOURS = {
    "prepare": "#7d8590", "compile": "#b0964a", "propose": "#a371c9", "verify": "#2f7fd0",
    "measure": "#e07b27", "count": "#c9434d", "inspect": "#2b9c9c", "settle": "#4a9e46",
}  # fmt: skip


def last_of_each(path: Path) -> dict[str, Row]:
    """The last search of each task, in the order in which the tasks came."""
    rows = [json.loads(line) for line in path.read_text().splitlines()]
    return {row["name"]: row for row in rows if "error" not in row}


def busy(row: Row) -> float:
    """The share of the wall time in which the device had work."""
    spent: dict[str, float] = row["timings"]
    wall: float = row["wall_s"]
    return sum(spent[stage] for stage in BUSY) / wall


def spans(row: Row) -> list[tuple[str, float, float]]:
    """Stage, begin and length in seconds, one after the other until the end."""
    found: list[tuple[str, float, float]] = []
    ends = [at for at, _ in row["line"][1:]] + [row["wall_s"]]
    for (begin, stage), end in zip(row["line"], ends, strict=True):
        if found and found[-1][0] == stage:
            found[-1] = (stage, found[-1][1], end - found[-1][1])
        else:
            found.append((stage, begin, end - begin))
    return found


def table(rows: dict[str, Row]) -> list[str]:
    """Markdown: the rate, the device's share and the seconds of every stage, a row a task."""
    heads = ["task", "s", "limit", "complete", "a minute", "device has work", *STAGES]
    lines = ["| " + " | ".join(heads) + " |", "|---" * len(heads) + "|"]
    for name, row in rows.items():
        spent = [f"{row['timings'].get(stage, 0.0):.1f}" for stage in STAGES]
        facts = [f"{row['wall_s']:.1f}", f"{row['seconds']:g}", str(row["complete"])]
        facts += [f"{row['a_minute']:g}", f"{busy(row):.0%}"]
        lines.append("| " + " | ".join([name, *facts, *spent]) + " |")
    return lines


def drawn(rows: dict[str, Row]) -> Picture:
    """The lanes, the first task at the top."""
    with drawing(9.0, 1.5 + 0.5 * len(rows)) as (figure, axes):
        for lane, row in enumerate(rows.values()):
            for stage, colour in COLOURS.items():
                bars = [(begin, length) for s, begin, length in spans(row) if s == stage]
                key = stage if lane == 0 else None
                axes.broken_barh(bars, (lane - 0.34, 0.68), facecolors=colour, label=key)
        names = [f"{n}: {row['a_minute']:g}/min, {busy(row):.0%}" for n, row in rows.items()]
        axes.set_yticks(range(len(rows)), names)
        axes.tick_params(axis="y", length=0)
        axes.invert_yaxis()
        axes.set_xlim(left=0)
        axes.set_xlabel("seconds")
        axes.set_title("What searches are at: evaluations a minute, share with work for the device")
        figure.legend(loc="outside lower left", labelcolor=INK, ncols=4)
        told = ", ".join(names)
        return picture(figure, "timeline", f"Stages of searches by the second; {told}.")


def main(rates: Path, out: Path) -> None:
    rows = last_of_each(rates)
    print("\n".join(table(rows)))
    drawn(rows).save(out)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("rates", type=Path)
    parser.add_argument("out", type=Path)
    main(**vars(parser.parse_args()))
