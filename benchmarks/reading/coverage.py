"""How much of every kernel is read, and what it costs.

    python benchmarks/reading/coverage.py [--write] [FOLDER ...]

The kernels of this repository are those of ``optiml_magic/testing/kernels`` and ``findings`` and of
``tests/tutorials``. A FOLDER has the files of others and an ``index.json``: a list of objects with
``file``, ``repository``, ``path``, ``commit``, ``kernel`` and ``template``, the kernel's name with
its template arguments. The record is ``benchmarks/results/reading.json``, the table also in
``docs/reading.md``; without a FOLDER the part of the public kernels stays in them as it was.
"""

from __future__ import annotations

import argparse
import json
import platform
import re
import sys
import time
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT))

from benchmarks.reading.counting import Figures, cost, figures  # noqa: E402
from benchmarks.reading.subjects import Subject, others, own, rows  # noqa: E402

RECORD = ROOT / "benchmarks" / "results" / "reading.json"
PAGE = ROOT / "docs" / "reading.md"
BEGIN, END = "<!-- table -->", "<!-- end of table -->"
LONG = ROOT / "benchmarks" / "layer" / "layer.cu"
NEARLY_LONG = range(150, 251)
OURS, PUBLIC = "this repository", "public"
#: What is counted, of what, and the share that is aimed at.
SHARES = (
    ("statements that are read", "read", "statements", 90),
    ("kernels with every global access followed to its array", "followed", "kernels", 80),
    ("accesses delinearised, each digit bounded", "delinearised", "accesses", 85),
    ("loops with known bounds", "bounded", "loops", None),
    ("branches with a condition that is followed", "conditions", "guards", None),
)
Record = dict[str, Any]


def main(arguments: list[str]) -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folders", nargs="*", type=Path, metavar="FOLDER")
    parser.add_argument("--write", action="store_true", help="the record and the page")
    given = parser.parse_args(arguments)
    record: Record = json.loads(RECORD.read_text()) if RECORD.exists() else {"sets": {}}
    words = ["python benchmarks/reading/coverage.py", *["FOLDER"] * len(given.folders)]
    record["command"] = " ".join([*words, *["--write"] * given.write])
    record["date"] = time.strftime("%Y-%m-%d")
    record["machine"] = f"{platform.machine()}, Python {platform.python_version()}"
    record["sets"][OURS] = measured(own())
    if given.folders:
        record["sets"][PUBLIC] = measured(s for folder in given.folders for s in others(folder))
    record["milliseconds"] = {LONG.name: timed(LONG.read_text())}
    for folder in given.folders:
        for row, text in rows(folder):
            if text.count("\n") in NEARLY_LONG:
                record["milliseconds"][f"{row['repository']} {row['path']}"] = timed(text)
    print(table(record))
    if given.write:
        RECORD.write_text(_dumped(record) + "\n")
        head, _, rest = PAGE.read_text().partition(BEGIN)
        PAGE.write_text(f"{head}{BEGIN}\n{table(record)}\n{END}{rest.partition(END)[2]}")


def _dumped(record: Record) -> str:
    """As JSON, a line for each kernel."""
    text = json.dumps(record, indent=1)
    return re.sub(r"\{\n    [^{}]*\}", lambda row: " ".join(row[0].split()), text)


def measured(subjects: Iterable[Subject]) -> Record:
    total, told = Figures(), []
    for subject in subjects:
        found = figures(subject)
        total = total + found
        told.append({**subject.told, **found.counts})
    return {
        "counts": dict(total.counts),
        "reasons": dict(total.reasons.most_common()),
        "kernels": told,
    }


def timed(text: str) -> dict[str, float]:
    lifting, reading = cost(text)
    return {"lines": text.count("\n"), "lift": lifting, "read": reading}


def table(record: Record) -> str:
    """The record as it stands in the documentation."""
    sets: dict[str, Record] = record["sets"]
    heads = [f"{name}: {found['counts']['kernels']} kernels" for name, found in sets.items()]
    lines = [f"| share of | aim | {' | '.join(heads)} |", "|---|---|" + "---|" * len(sets)]
    for told, part, whole, aim in SHARES:
        counted = [found["counts"] for found in sets.values()]
        cells = [f"{share(c, part, whole):.1f} % of {c.get(whole, 0)}" for c in counted]
        lines.append(f"| {told} | {f'{aim} %' if aim else ''} | {' | '.join(cells)} |")
    cells = [str(found["counts"].get("reductions", 0)) for found in sets.values()]
    lines += [f"| reductions found | | {' | '.join(cells)} |", "", _times(record["milliseconds"])]
    for name, found in sets.items():
        lines += ["", f"What is not read in {name}, by how often:", ""]
        lines += [f"- {count}: {reason}" for reason, count in list(found["reasons"].items())[:12]]
    return "\n".join([*lines, "", f"Measured on {record['date']} ({record['machine']})."])


def share(counts: Mapping[str, int], part: str, whole: str) -> float:
    """How many of a hundred."""
    total = counts.get(whole, 0)
    had = total - counts.get("verbatim", 0) if part == "read" else counts.get(part, 0)
    return 100 * had / max(total, 1)


def _times(found: dict[str, dict[str, float]]) -> str:
    lifting, reading = ([row[what] for row in found.values()] for what in ("lift", "read"))
    return (
        f"To lift a text of {NEARLY_LONG.start} to {NEARLY_LONG.stop - 1} lines takes"
        f" {_span(lifting)} ms of processor time (aim: below 20), to read its kernels"
        f" {_span(reading)} ms; {len(found)} texts, the best of five each."
    )


def _span(values: list[float]) -> str:
    low, high = min(values), max(values)
    return f"{low:.0f}" if low == high else f"{low:.0f} to {high:.0f}"


if __name__ == "__main__":
    main(sys.argv[1:])
