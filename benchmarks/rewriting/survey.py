"""What every rule does with every kernel that this repository holds.

    python benchmarks/rewriting/survey.py FOLDER [--write] [--rules NAME ...] [--processes N]
        [--points N] [--device emulated:h200] [--seconds N] [--origins NAME ...]
    python benchmarks/rewriting/survey.py FOLDER --write --seconds 0

Each program (``programs.py``) is verified, measured and diagnosed; then every rule is asked, and
the first points of each match run beside the program: its outputs against the task's reference,
accesses out of bounds and hazards looked for, its time estimated. What a rule made first is given
to all rules again, and what they make of that is not run. A program is a line of
``FOLDER/survey.jsonl``; the same command goes on where it stopped, and with other ``--rules`` adds
what these do. After ``--seconds`` no further program begins: the second form makes the record of
what is there. The record, ``benchmarks/results/rewriting-survey.json``, has the counts by rule; its
table goes into docs/rewriting.md.
"""

from __future__ import annotations

import argparse
import json
import math
import multiprocessing
import os
import platform
import re
import statistics
import sys
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from importlib.metadata import version
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT))

from benchmarks.rewriting.asking import Asked, Row, surveyed  # noqa: E402
from benchmarks.rewriting.programs import ORIGINS, SUITE, listed  # noqa: E402
from optiml_magic.proposers.rewrites import REWRITES  # noqa: E402

RECORD = ROOT / "benchmarks" / "results" / "rewriting-survey.json"
PAGE = ROOT / "docs" / "rewriting.md"
BEGIN, END = "<!-- survey -->", "<!-- end of survey -->"
FILE = "survey.jsonl"
NAMES = tuple(rule.name for rule in REWRITES)
_VERSIONS = ("optiml-magic", "nvidia-cuda-nvrtc", "llvmlite", "tree-sitter-cuda", "numpy")
_GAIN = 1.05  # below, a time is the same
_LEAST = 0.75  # of the points of a rule that are to be verified
_QUOTED = re.compile(r"`[^`]*`")


def collect(options: argparse.Namespace) -> list[Row]:
    """The rows of all programs, those of earlier runs joined with those of this one."""
    options.folder.mkdir(parents=True, exist_ok=True)
    file = options.folder / FILE
    rows = joined(map(json.loads, file.read_text().splitlines())) if file.exists() else {}
    until = time.monotonic() + options.seconds
    work = [
        (one.name, lacking)
        for one in listed()
        if one.origin in options.origins
        if (lacking := _lacking(rows.get(one.name), options.rules))
    ]
    todo = iter(work)
    with (
        file.open("a") as kept,
        ProcessPoolExecutor(
            options.processes, multiprocessing.get_context("spawn"), max_tasks_per_child=None
        ) as pool,
    ):
        running: set[Future[Row]] = set()
        done = 0
        while True:
            while len(running) < options.processes and time.monotonic() < until:
                name, rules = next(todo, ("", ()))
                if not name:
                    break
                asked = Asked(rules, options.points, options.device, str(options.folder / "home"))
                running.add(pool.submit(surveyed, name, asked))
            if not running:
                break
            ended, running = wait(running, return_when=FIRST_COMPLETED)
            for future in ended:
                row, done = future.result(), done + 1
                kept.write(json.dumps(row) + "\n")
                kept.flush()
                rows = joined([*rows.values(), row])
                print(f"{done} of {len(work)}: {_line(row)}", flush=True)
    return [*rows.values()]


def joined(rows: Iterable[Row]) -> dict[str, Row]:
    """One row a program: of what a rule did there the latest."""
    found: dict[str, Row] = {}
    for row in rows:
        old = found.get(row["name"], {})
        both = {part: {**old.get(part, {}), **row.get(part, {})} for part in ("rules", "again")}
        crashes = [c for c in old.get("crashes", ()) if c["rule"] not in row["asked"]]
        found[row["name"]] = {
            **row, **both,
            "asked": sorted({*old.get("asked", ()), *row["asked"]}),
            "crashes": [*crashes, *row.get("crashes", ())],
        }  # fmt: skip
    return found


def _lacking(row: Row | None, rules: Sequence[str]) -> tuple[str, ...]:
    return tuple(rule for rule in rules if row is None or rule not in row["asked"])


def _line(row: Row) -> str:
    """A program in a line: of each rule what it tried, and the best time of it."""
    found = []
    for name, did in row["rules"].items():
        tried = [point for match in did["matches"] for point in match["points"]]
        if tried:
            right = sum(point["outcome"] == "passed" for point in tried)
            best = max((point.get("times", 0.0) for point in tried), default=0.0)
            found.append(f"{name} {right}/{len(tried)} {best:.2f}")
    crashes = f", {len(row['crashes'])} crashes" if row.get("crashes") else ""
    return f"{row['name']}: {row['root']}; {', '.join(found)}{crashes} ({row['wall']} s)"


def summary(rows: Sequence[Row]) -> dict[str, Any]:
    """Every rule over all programs, and in short every program."""
    names = [name for name in NAMES if any(name in row["rules"] for row in rows)]
    return {
        "programs": len(rows),
        "of": len(listed()),
        "by origin": {o: sum(row["origin"] == o for row in rows) for o in ORIGINS},
        "not passed": {row["name"]: row["root"] for row in rows if row["root"] != "passed"},
        "crashes": [{"program": row["name"], **c} for row in rows for c in row.get("crashes", ())],
        "seconds of CPU": round(sum(row["seconds"] for row in rows)),
        "rules": {name: of_rule(name, rows) for name in names},
        "rows": [
            {
                **{key: row[key] for key in ("name", "origin", "size", "root")},
                "lines": row.get("lines", 0),
                "matched": {
                    name: [_short(match) for match in did["matches"]]
                    for name, did in row["rules"].items()
                    if did["matches"]
                },
            }
            for row in rows
        ],
    }


def _short(match: Row) -> list[Any]:
    """The outcomes of its points, and the best of their times."""
    points = match["points"]
    return [[p["outcome"] for p in points], max((p.get("times", 0.0) for p in points), default=0.0)]


def of_rule(name: str, rows: Sequence[Row]) -> dict[str, Any]:
    """One rule: matches, refusals by reason, verified, gained, and what it leaves open."""
    asked = [row for row in rows if name in row["rules"]]
    matches = [(row, match) for row in asked for match in row["rules"][name]["matches"]]
    points = [(row, match, point) for row, match in matches for point in match["points"]]
    tried = [one for one in points if one[2]["outcome"] not in ("not run", "crashed here")]
    right = [one for one in tried if one[2]["outcome"] == "passed"]
    gains = [_short(match)[1] for _, match in matches]
    ran = [gain for gain in gains if gain]
    gained = [gain for gain in ran if gain >= _GAIN]
    again = [row["again"][name] for row in asked if name in row.get("again", {})]
    open_numbers: dict[str, set[int]] = {}
    for _, match in matches:
        for number, values in match["open"].items():
            open_numbers.setdefault(number, set()).update(values)
    return {
        "programs": len(asked),
        "matched": len({row["name"] for row, _ in matches}),
        "matches": len(matches),
        "outside the suite": sum(row["origin"] != SUITE for row, _ in matches),
        "dispatched": sum(match["dispatch"] for _, match in matches),
        "refused": sum(len(row["rules"][name]["refused"]) for row in asked),
        "reasons": _reasons(name, asked),
        "tried": len(tried),
        "verified": len(right),
        "share": round(len(right) / len(tried), 4) if tried else None,
        "same machine code": sum(bool(point.get("same")) for _, _, point in right),
        "timed": len(ran),
        "gained": len(gained),
        "median gain": round(statistics.median(gained), 2) if gained else None,
        "greatest gain": round(max(gained), 2) if gained else None,
        "mean of all": round(math.exp(statistics.fmean(map(math.log, ran))), 2) if ran else None,
        "titles": sorted({_head(match["title"]) for _, match in matches}),
        "open": {number: sorted(values) for number, values in sorted(open_numbers.items())},
        "arithmetic": dict(Counter(a for _, match in matches for a in match["arithmetic"])),
        "expected": [
            {"metric": m, "direction": d, "factor": [low, high], "because": because, "matches": n}
            for (m, d, low, high, because), n in Counter(
                tuple(match["expected"]) for _, match in matches if match["expected"]
            ).most_common()
        ],
        "named by": dict(
            Counter(t for row in asked for r, t in row.get("named", ()) if r == name).most_common()
        ),
        "failed": [
            {
                "program": row["name"], "title": match["title"], "numbers": point["numbers"],
                "outcome": point["outcome"], "why": point.get("why", ""),
            }
            for row, match, point in tried if point["outcome"] != "passed"
        ],
        "again": {
            key: sum(one[key] for one in again) for key in ("programs", "matches", "refused")
        },
        "crashes": sum(c["rule"] == name for row in asked for c in row.get("crashes", ())),
    }  # fmt: skip


def _head(title: str) -> str:
    """A title without its numbers, by which the edits of other records are known again."""
    return re.sub(r"\d+", "N", title.partition(": ")[0])


def _reasons(name: str, rows: Sequence[Row]) -> list[Row]:
    """Refusals by reason without its names and numbers, most frequent first; a place of each."""
    found: dict[str, Row] = {}
    for row in rows:
        for reason, line in row["rules"][name]["refused"]:
            kind = re.sub(r"\d+", "N", _QUOTED.sub("`...`", reason))
            first = {"reason": reason, "count": 0, "program": row["name"], "line": line}
            found.setdefault(kind, first)["count"] += 1
    return sorted(found.values(), key=lambda one: -one["count"])


def table(found: dict[str, Any]) -> str:
    """The rules in Markdown, and what is below the aim or crashed."""
    heads = ("rule", "programs", "matches", "outside the suite", "refused", "points verified",
             "gained", "median gain", "greatest")  # fmt: skip
    lines = [f"| {' | '.join(heads)} |", "|---" * len(heads) + "|"]
    for name, r in found["rules"].items():
        share = f" ({r['share']:.1%})" if r["tried"] else ""
        gains = [f"{r[key]:.2f}x" if r[key] else "" for key in ("median gain", "greatest gain")]
        lines.append(
            f"| `{name}` | {r['matched']} | {r['matches']} | {r['outside the suite']} | "
            f"{r['refused']} | {r['verified']} of {r['tried']}{share} | "
            f"{r['gained']} of {r['timed']} | {gains[0]} | {gains[1]} |"
        )
    made = sum(r["again"]["matches"] for r in found["rules"].values())
    asked = max((r["again"]["programs"] for r in found["rules"].values()), default=0)
    told = (
        f"{found['programs']} of {found['of']} programs; asked again about {asked} programs that a "
        f"rule had made, the rules matched {made} times. Crashes: {len(found['crashes'])}."
    )
    return "\n".join([*lines, "", told])


def below(found: dict[str, Any]) -> Iterator[str]:
    """What falls short, for whoever looks at the run."""
    for name, r in found["rules"].items():
        if r["tried"] and r["share"] < _LEAST:
            yield f"{name}: only {r['share']:.1%} verified"
        for one in r["failed"]:
            yield f"{name}: {one['program']}: {one['outcome']}, {one['why']} ({one['title']})"
    for crash in found["crashes"]:
        yield f"{crash['rule']} crashed on {crash['program']}: {crash['error']}"


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--write", action="store_true")
    parser.add_argument("--rules", nargs="+", choices=NAMES, default=NAMES, help="only these")
    parser.add_argument("--origins", nargs="+", choices=ORIGINS, default=ORIGINS, help="only these")
    parser.add_argument("--processes", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--points", type=int, default=2, help="of each match that are run")
    parser.add_argument("--device", default="emulated:h200")
    parser.add_argument("--seconds", type=float, default=math.inf)
    options = parser.parse_args(arguments)
    options.folder = options.folder.absolute()
    rows = collect(options)
    found = summary(rows)
    print(table(found))
    for line in below(found):
        print(line)
    if options.write:
        words = [word for word in arguments if Path(word).absolute() != options.folder]
        record = {
            "what": "every rule on the kernels of this repository, its first points beside them",
            "command": " ".join(["python benchmarks/rewriting/survey.py FOLDER", *words]),
            "date": time.strftime("%Y-%m-%d"),
            "machine": f"{platform.machine()}, Python {platform.python_version()}",
            "versions": {name: version(name) for name in _VERSIONS},
            "device": options.device,
            "points": options.points,
            "sizes": "times at full sizes for the suite, at their own for all others; large "
            "launches by a sample of their blocks; the suite is verified at its checked sizes",
            "origins": ORIGINS,
            **found,
        }
        RECORD.write_text(json.dumps(record, separators=(",", ":")) + "\n")
        head, _, rest = PAGE.read_text().partition(BEGIN)
        PAGE.write_text(f"{head}{BEGIN}\n{table(found)}\n{END}{rest.partition(END)[2]}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
