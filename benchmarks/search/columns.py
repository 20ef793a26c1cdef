"""What the experience that ships is worth: the same searches without any, and with it.

    python benchmarks/search/columns.py FOLDER [--shipped FILE] [--only TASK ...] [--write NAME]

FOLDER is one of ``benchmarks/search/warm.py``: its searches are the column without experience. Each
task is searched again with the entries of FILE, or of the journals in FOLDER, but for those of its
own program: what helps it comes from other kernels. FOLDER/columns.jsonl gets a line a search; the
same command goes on with the rest. Told are the evaluations until a program has 95 % of the speed
of the best of both, and the gain after ten. The record is
``benchmarks/results/experience-columns-NAME.json``.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT))

from benchmarks.search.ship import entries  # noqa: E402
from benchmarks.search.siblings import Row, row_of, searched, tasks  # noqa: E402
from benchmarks.search.warm import ROWS  # noqa: E402
from optiml_magic.errors import OptimlError  # noqa: E402
from optiml_magic.experience import shipped  # noqa: E402
from optiml_magic.model.experience import Entry  # noqa: E402

RESULTS = ROOT / "benchmarks" / "results"
_NEAR, _FEW = 0.95, 10
_COLUMNS = ("without", "with")


def lines(path: Path) -> list[Row]:
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


def again(row: Row, others: Sequence[Entry], home: Path, options: argparse.Namespace) -> Row:
    """The search of a row once more, with the entries of other programs."""
    file = home / "others.jsonl"
    shipped.write(file, [one for one in others if one.evidence.program != row["program"]])
    make = tasks(emulated=row["device"].startswith("emulated"))[row["task"]]
    try:
        summary = searched(
            make(), home=home, device=row["device"], seconds=options.seconds,
            budget=options.budget, experience="shipped", shipped=file,
        )  # fmt: skip
    except OptimlError as error:
        return {"task": row["task"], "error": str(error)}
    return row_of(row["task"], summary)


def compared(without: Row, shipping: Row) -> Row:
    """Both columns of a task; evaluations are None where so many did not come so far."""
    columns = {"without": without["best_so_far"], "with": shipping["best_so_far"]}
    best = min(column[-1] for column in columns.values())
    row: Row = {"task": without["task"], "told": bool(shipping["notes"])}
    for name, column in columns.items():
        near = (at for at, seconds in enumerate(column, 1) if seconds * _NEAR <= best)
        row[f"evaluations_{name}"] = next(near, None)
        row[f"gain_at_10_{name}"] = round(column[0] / column[:_FEW][-1], 3)
        row[f"gain_{name}"] = round(column[0] / column[-1], 3)
    return row


def table(rows: Sequence[Row]) -> dict[str, float]:
    """Prints both columns, and gives their means over the tasks of which something was known."""
    head = ("evaluations to 95 %", "", "gain at 10", "", "gain at the end", "")
    print(f"{'':<34}" + "".join(f"{word:>12.12}" for word in head))
    names = [f"{what}_{c}" for what in ("evaluations", "gain_at_10", "gain") for c in _COLUMNS]
    for row in rows:
        known = "" if row["told"] else " (nothing known)"
        shown = "".join(f"{'-' if row[name] is None else row[name]:>12}" for name in names)
        print(f"{row['task'] + known:<34}{shown}")
    told = [row for row in rows if row["told"]]
    means: dict[str, float] = {"tasks": len(rows), "known": len(told)}
    for name in names:
        values = [row[name] for row in told if row[name] is not None]
        if values:
            mean = statistics.mean if name.startswith("eval") else statistics.geometric_mean
            means[name] = round(mean(values), 3)
    print(json.dumps(means))
    return means


def main(arguments: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--shipped", type=Path, help="entries, in the place of the folder's own")
    parser.add_argument("--seconds", type=float, default=12.0, help="of a search, as in the folder")
    parser.add_argument("--budget", type=int, default=200, help="evaluations, as in the folder")
    parser.add_argument("--limit", type=float, default=float("inf"), help="seconds of all")
    parser.add_argument("--only", nargs="+", help="tasks whose names begin so")
    parser.add_argument("--write", metavar="NAME", help="of the record, such as h200")
    options = parser.parse_args(arguments)
    began = time.monotonic()
    first = [row for row in lines(options.folder / ROWS) if "best_so_far" in row]
    if not first:
        parser.error(f"no search in {options.folder}: benchmarks/search/warm.py makes them")
    if options.only:
        first = [row for row in first if row["task"].startswith(tuple(options.only))]
    if options.shipped:
        others, unread = shipped.read(options.shipped)
        if unread:
            parser.error(unread)
    else:
        found, _ = entries([options.folder], any_source=True)
        others = tuple(found)
    kept = options.folder / "columns.jsonl"
    done = {row["task"]: row for row in lines(kept)}
    with tempfile.TemporaryDirectory() as home:
        os.environ["OPTIML_CACHE"] = home
        for row in first:
            late = time.monotonic() - began + options.seconds > options.limit
            if row["task"] not in done and not late:
                done[row["task"]] = again(row, others, Path(home), options)
                with kept.open("a") as file:
                    file.write(json.dumps(done[row["task"]]) + "\n")
                print(json.dumps(done[row["task"]]), flush=True)
    both = [(row, done[row["task"]]) for row in first if "best_so_far" in done.get(row["task"], {})]
    rows = [compared(*pair) for pair in both if None not in (p["best_so_far"][-1] for p in pair)]
    means = table(rows)
    if options.write:
        record = {
            "what": "the same searches without experience and with the entries of other programs",
            "command": "python benchmarks/search/columns.py FOLDER",
            "seconds": options.seconds,
            "budget": options.budget,
            "date": time.strftime("%Y-%m-%d"),
            "device": sorted({row["device"] for row in first}),
            "means": means,
            "rows": rows,
        }
        (RESULTS / f"experience-columns-{options.write}.json").write_text(
            json.dumps(record, indent=1) + "\n"
        )
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
