"""One thought against the mixture, with and without the lowered reference as a root.

    python benchmarks/synthesis/ablation.py [TASK ...] [--write]

The recorded completions of ``tests/recorded`` are replayed over a real server, on the emulated
device, at larger sizes than in the tests. The record is
``benchmarks/results/synthesis-ablation.json``. **The completions were written by hand**: the table
shows what the machinery makes of them, not what a model would write (docs/thoughts.md).

Without the lowered reference it is as if it had been refused: the search begins from the first
program of the model that is right.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import tempfile
import time
from collections.abc import Sequence
from contextlib import nullcontext
from pathlib import Path
from typing import Any
from unittest import mock

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT))

from optiml_magic.bench.machine import versions  # noqa: E402
from optiml_magic.cli import main as optiml  # noqa: E402
from optiml_magic.from_reference import NotLoweredError  # noqa: E402
from optiml_magic.reports.quantities import seconds  # noqa: E402
from tests.recorded import TASKS, WORDS, Recording  # noqa: E402
from tests.unit.llms.endpoint import serving  # noqa: E402

RECORD = ROOT / "benchmarks" / "results" / "synthesis-ablation.json"
DEVICE, BUDGET = "emulated:h200", 12
SIZES = {
    "softmax": ('{"rows": 8, "cols": 100}', '{"rows": 256, "cols": 200}'),
    "histogram": ('{"n": 3000}', '{"n": 40_000}'),
    "lookup": ('{"n": 500}', '{"n": 20_000}'),
}  # of normalise the words alone say them
ARMS = [(0, True), (1, True), (3, True), (1, False), (3, False)]  # thoughts; with the reference
Row = dict[str, Any]


def _refused(*_: Any) -> Any:
    raise NotLoweredError("the lowered reference is left out", fix="")


def ran(name: str, thoughts: int, *, lowered: bool, folder: Path) -> Row:
    """One run; a row without ``best`` says why there is no program."""
    task, out = folder / "task.py", folder / "out.json"
    task.write_text(TASKS[name].replace(*SIZES.get(name, ("", ""))))
    out.unlink(missing_ok=True)
    words = ["synthesize", task, "--words", WORDS[name], "--json", out, "--device", DEVICE]
    words += ["--budget", BUDGET, "--thoughts", thoughts, "--experience", "none"]
    row: Row = {"task": name, "thoughts": thoughts, "lowered": lowered}
    with serving(Recording(name)) as endpoint, mock.patch.dict(os.environ):
        endpoint.models = ["recorded"]
        os.environ.update(OPTIML_LLM_URL=endpoint.url, OPENAI_API_KEY="none")
        os.environ.update(OPTIML_HOME=str(folder / "home"), OPTIML_INSTRUCTIONS="20000000")
        refused = mock.patch("optiml_magic.synthesize.made", _refused)
        with nullcontext() if lowered else refused:
            if name not in SIZES:  # shown first, then accepted
                optiml([str(word) for word in words])
                words.append("--accept")
            optiml([str(word) for word in words])
    if not out.exists():
        return {**row, "refused": True}
    found = json.loads(out.read_text())
    by_number = {step["id"]: step for step in found["steps"]}
    best = min(
        (step for step in found["steps"] if step["verdict"] == "passed" and step["seconds"]),
        key=lambda step: step["seconds"],
    )
    root = best
    while root["parent"] is not None:
        root = by_number[root["parent"]]
    right = [c for c in found["candidates"] if c["verdict"] == "passed"]
    return {
        **row,
        "origin": found["origin"],
        "begun_from": found["candidates"][0]["seconds"],
        "best": found["best"]["seconds"],
        "number": best["id"],
        "from": root["title"],
        "roots": len(right),
        "tried": len(found["candidates"]),
        "evaluations": found["evaluations"],
    }


def table(rows: Sequence[Row]) -> str:
    """A line a run."""
    lines = [
        "| task | thoughts | lowered reference | roots right, of tried | best | comes from |",
        "|---|---|---|---|---|---|",
    ]
    for row in rows:
        there = "left out" if not row["lowered"] else "a root"
        if row["lowered"] and (row.get("refused") or row["origin"] == "model"):
            there = "refused"
        if row.get("refused"):
            lines.append(f"| {row['task']} | {row['thoughts']} | {there} | none | none | |")
            continue
        lines.append(
            f"| {row['task']} | {row['thoughts']} | {there} | {row['roots']} of {row['tried']} "
            f"| {seconds(row['best'])} | {row['from']} |"
        )
    return "\n".join(lines)


def main(names: Sequence[str], *, write: bool) -> None:
    """Run all, print the table, and write the record where that is wished."""
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        for name in names or TASKS:
            for number, (thoughts, lowered) in enumerate(ARMS):
                place = Path(folder) / f"{name}-{number}"
                place.mkdir()
                rows.append(ran(name, thoughts, lowered=lowered, folder=place))
    print(table(rows))
    if write:
        kept = json.loads(RECORD.read_text())["rows"] if names else []
        rows = [row for row in kept if row["task"] not in names] + rows
        rows.sort(key=lambda row: list(TASKS).index(row["task"]))
        record = {
            "command": "python benchmarks/synthesis/ablation.py --write",
            "date": time.strftime("%Y-%m-%d"),
            "device": DEVICE,
            "budget": BUDGET,
            "completions": "written by hand, tests/recorded",
            "sizes": {name: sizes for name, (_, sizes) in SIZES.items()},
            "versions": versions(),
            "rows": rows,
        }
        RECORD.write_text(json.dumps(record, indent=1) + "\n")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("tasks", nargs="*", metavar="TASK", help=", ".join(TASKS))
    parser.add_argument("--write", action="store_true", help=f"to {RECORD.relative_to(ROOT)}")
    given = parser.parse_args()
    main(given.tasks, write=given.write)
