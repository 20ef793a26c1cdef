"""Which public kernels the held-out part of the suite is made of, drawn before any was written.

    python benchmarks/suite/draw.py [--write]

``candidates.tsv`` lists public kernels by repository, file, field and what they compute; scans,
sorts and half products on tensor cores are not in it. The order is a shuffle by the seed; a
candidate is passed over where it was opened, or where its field has been drawn twice already. So
what is opened is replaced by what comes next, and what else was drawn stays drawn. ``opened.jsonl``
has what was opened: ``{"repository", "file", "date", "why"}`` a line; ``held_out.jsonl`` what is
drawn, in order: ``{"repository", "file", "field", "computes"}``. Nothing else chooses, so whoever
runs this draws the same.
"""

from __future__ import annotations

import argparse
import csv
import json
import random
import sys
from collections import Counter
from pathlib import Path

HERE = Path(__file__).parent
SEED = 20261122
COUNT = 18
MOST_OF_A_FIELD = 2


def candidates() -> list[dict[str, str]]:
    """All that may be drawn, in the order of the list."""
    with (HERE / "candidates.tsv").open(encoding="utf-8") as file:
        rows = csv.reader(file, delimiter="\t")
        next(rows)
        names = ("repository", "file", "field", "computes")
        return [dict(zip(names, row, strict=True)) for row in rows]


def opened() -> list[dict[str, str]]:
    """The kernels that were drawn once and are held out no more."""
    lines = (HERE / "opened.jsonl").read_text(encoding="utf-8").splitlines()
    return [json.loads(line) for line in lines]


def drawn() -> list[dict[str, str]]:
    """The held-out kernels in the order in which they were drawn."""
    known = {(one["repository"], one["file"]) for one in opened()}
    order = candidates()
    random.Random(SEED).shuffle(order)
    fields: Counter[str] = Counter()
    found: list[dict[str, str]] = []
    for one in order:
        if (one["repository"], one["file"]) in known:
            continue
        if fields[one["field"]] < MOST_OF_A_FIELD and len(found) < COUNT:
            fields[one["field"]] += 1
            found.append(one)
    return found


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--write", action="store_true", help="as held_out.jsonl")
    options = parser.parse_args()
    text = "".join(json.dumps(one) + "\n" for one in drawn())
    sys.stdout.write(text)
    if options.write:
        (HERE / "held_out.jsonl").write_text(text, encoding="utf-8")
