"""What a model adds, and what it is told: recorded answers, replayed.

    python benchmarks/llm/ablation.py [TASK ...] [--variant both ...] [--write]
    python benchmarks/llm/ablation.py [TASK ...] --device cuda --out FILE.jsonl

Each variant of ``variants.py`` searches each task with the answers that were written for its own
questions (``record.py``). The record, ``benchmarks/results/llm-ablation.jsonl``, has a line a
search. **The makers of this package wrote the answers, no endpoint was asked**: the table shows
what the search makes of good answers, not how good a model is (docs/llm.md).
"""

from __future__ import annotations

import argparse
import json
import math
import shlex
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT))

from benchmarks.llm.tasks import KERNELS, task  # noqa: E402
from benchmarks.llm.variants import (  # noqa: E402
    DEVICE,
    VARIANTS,
    answers_of,
    recorded,
    searched,
)
from optiml_magic.bench.machine import versions  # noqa: E402
from optiml_magic.llms.recorded import read  # noqa: E402

RECORD = ROOT / "benchmarks" / "results" / "llm-ablation.jsonl"
EARLY, BUDGET = 6, 12
Row = dict[str, Any]


def ran(name: str, variant: str, home: Path, device: str) -> Row:
    """One search."""
    missing: list[str] = []
    llm = recorded(variant, missing=lambda *topic: missing.append(topic[-1]))
    began = time.monotonic()
    found = searched(
        task(name), VARIANTS[variant], llm, budget=BUDGET, home=str(home), device=device
    )
    agreement = found.agreement
    return {
        "task": name,
        "variant": variant,
        "best_so_far": [round(times, 4) for times in found.curve],
        "usable": len(found.given),
        "evaluated": len(found.tried),
        "tau": round(agreement.tau, 3) if agreement.pairs else None,
        "pairs": agreement.pairs,
        "answers": llm.given,
        "to_the_recorded_question": llm.exact,
        "unanswered": llm.unanswered,
        "author": authors(variant),
        "command": shlex.join(["python", "benchmarks/llm/ablation.py", *sys.argv[1:]]),
        "date": time.strftime("%Y-%m-%d"),
        "device": device,
        "on": found.result.summary.device,
        "claimed": found.result.speedup,
        "interval": found.result.interval,
        "program": found.result.program,
        "wall": round(time.monotonic() - began, 1),
        "missing": missing,
        "budget": BUDGET,
        "versions": versions(),
    }


def authors(variant: str) -> str:
    """Who wrote the answers of a variant."""
    path = answers_of(variant)
    return ", ".join(sorted({one.author for one in read(path)})) if path.exists() else ""


def best(row: Row, count: int) -> float:
    """How many times faster after so many evaluations; a model alone may run out of ideas."""
    found: list[float] = row["best_so_far"][:count]
    return found[-1]


def table(rows: Sequence[Row]) -> str:
    """A line a variant: geometric means over the tasks, and sums."""
    titles = ["variant", "tasks", f"faster after {EARLY}", f"after {BUDGET}"]
    titles += ["usable ideas evaluated", "order, tau"]
    titles += ["answers", "to the recorded question", "not recorded"]
    lines = [f"| {' | '.join(titles)} |", "|---" * len(titles) + "|"]
    for variant in VARIANTS:
        own = [row for row in rows if row["variant"] == variant]
        if not own:
            continue
        early, late = (
            math.exp(sum(math.log(best(row, count)) for row in own) / len(own))
            for count in (EARLY, BUDGET)
        )
        usable, evaluated = (sum(row[key] for row in own) for key in ("usable", "evaluated"))
        pairs = sum(row["pairs"] for row in own)
        tau = sum((row["tau"] or 0) * row["pairs"] for row in own) / pairs if pairs else 0.0
        told = (sum(row[key] for row in own) for key in
                ("answers", "to_the_recorded_question", "unanswered"))  # fmt: skip
        cells = [f"{evaluated} of {usable}", f"{tau:.2f} of {pairs} pairs", *map(str, told)]
        if variant == "none":
            cells = [""] * len(cells)
        begin = f"| {variant} | {len(own)} | {early:.2f}x | {late:.2f}x | "
        lines.append(begin + " | ".join(cells) + " |")
    return "\n".join(lines)


def by_task(rows: Sequence[Row]) -> str:
    """A line a task: how many times faster after ``EARLY`` and all evaluations, by variant."""
    present = [v for v in VARIANTS if any(row["variant"] == v for row in rows)]
    lines = [f"| task | {' | '.join(present)} |", "|---|" + "---|" * len(present)]
    for name in KERNELS:
        own = {row["variant"]: row for row in rows if row["task"] == name}
        if own:
            found = map(own.get, present)
            cells = (f"{best(r, EARLY):.2f}, {best(r, BUDGET):.2f}" if r else "" for r in found)
            lines.append(f"| {name} | {' | '.join(cells)} |")
    return "\n".join(lines)


def main(names: Sequence[str], variants: Sequence[str], record: Path | None, device: str) -> None:
    """Run all, put each row in the place of the older one of its kind, and print the tables."""
    rows: list[Row] = []
    with tempfile.TemporaryDirectory() as home:
        for name in names or KERNELS:
            for variant in variants or VARIANTS:
                rows.append(ran(name, variant, Path(home), device))
                print(name, variant, rows[-1]["best_so_far"], flush=True)
                if record:
                    keep(rows[-1], record)
    print(table(rows), by_task(rows), sep="\n\n")


def keep(row: Row, record: Path) -> None:
    """Put a row into a record, in the order of tasks and variants."""
    old = record.read_text().splitlines() if record.exists() else []
    kept = {(one["task"], one["variant"]): one for one in [*map(json.loads, old), row]}
    order = [(name, variant) for name in KERNELS for variant in VARIANTS]
    record.write_text("".join(json.dumps(kept[key]) + "\n" for key in order if key in kept))


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("tasks", nargs="*", metavar="TASK", help=", ".join(KERNELS))
    parser.add_argument("--variant", nargs="+", default=[], choices=VARIANTS)
    parser.add_argument("--write", action="store_true", help=f"to {RECORD.relative_to(ROOT)}")
    parser.add_argument("--out", type=Path, metavar="FILE", help="where rows go without --write")
    parser.add_argument("--device", default=DEVICE, help="what to search on (default: %(default)s)")
    given = parser.parse_args()
    main(given.tasks, given.variant, RECORD if given.write else given.out, given.device)
