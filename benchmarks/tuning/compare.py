"""Our tuner beside kernel_tuner's strategies and optuna, over spaces that were measured completely.

    pip install kernel_tuner optuna scikit-learn
    python benchmarks/tuning/compare.py FOLDER [--seeds 20] [--processes 2] [--write]

FOLDER is what ``measure.py`` left. For each number of evaluations every search runs with as many
seeds; what counts is the share of the best time of the whole space that the best point found
reaches. Searches of FOLDER that are in its ``compared.jsonl`` are not run again unless asked to by
``--again NAME``. The record is ``benchmarks/results/tuning.json``.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import os
import sys
import time
from collections.abc import Mapping
from dataclasses import replace
from functools import lru_cache, partial
from importlib import metadata
from pathlib import Path
from statistics import median
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[2]))

from benchmarks.tuning.measure import append, known, lines
from benchmarks.tuning.subjects import SUBJECTS
from benchmarks.tuning.tables import (
    Search,
    Table,
    by_kernel_tuner,
    by_optuna,
    forget_caches,
    of_best,
    ours,
)
from optiml_magic.model.space import Point
from optiml_magic.tuning.gaussian import Gaussian

RECORD = Path(__file__).parents[1] / "results" / "tuning.json"
COUNTS = (10, 20, 50, 100)
OURS = "ours"
SEARCHES: Mapping[str, Search] = {
    OURS: ours(lambda table, seed: Gaussian(table.space, table.starts, seed=seed)),
    "ours without starts": ours(lambda table, seed: Gaussian(table.space, seed=seed)),
    "random": by_kernel_tuner("random_sample"),
    "greedy ILS": by_kernel_tuner("greedy_ils"),
    "greedy ILS from the program": by_kernel_tuner("greedy_ils", from_present=True),
    "multi-start local search": by_kernel_tuner("mls"),
    "genetic algorithm": by_kernel_tuner("genetic_algorithm"),
    "simulated annealing": by_kernel_tuner("simulated_annealing"),
    "simulated annealing from the program": by_kernel_tuner(
        "simulated_annealing", from_present=True
    ),
    "differential evolution": by_kernel_tuner("diff_evo"),
    "particle swarm": by_kernel_tuner("pso"),
    "firefly": by_kernel_tuner("firefly_algorithm"),
    "Bayesian optimisation": by_kernel_tuner("bayes_opt"),
    "optuna TPE": by_optuna,
}


@lru_cache
def tables(folder: Path) -> tuple[Table, ...]:
    """The spaces that were measured, without those of which nothing was."""
    found = []
    for subject in SUBJECTS:
        space, starts = subject.space()
        rows = list(known(folder, subject, space))
        seconds = {tuple(p[name] for name in space.values): s for p, s in rows}
        if seconds:
            # Arithmetic is the same each time, and is asked thousands of times here.
            promises = {tuple(p[name] for name in space.values): space.promise(p) for p, _ in rows}
            looked_up = replace(space, promise=partial(_promise, [*space.values], promises))
            found.append(Table(subject.name, looked_up, starts, seconds))
    return tuple(found)


def _promise(names: list[str], promises: Mapping[tuple[int, ...], float], point: Point) -> float:
    return promises.get(tuple(point[name] for name in names), 0.0)


def searched(job: tuple[Path, str, str, int, int]) -> dict[str, Any]:
    """One search of one space: the shares of its seeds at one count."""
    folder, name, search, count, seeds = job
    table = next(t for t in tables(folder) if t.name == name)
    began = time.process_time()
    shares = [of_best(table, SEARCHES[search](table, seed, count), count) for seed in range(seeds)]
    spent = (time.process_time() - began) / seeds
    forget_caches()
    return {
        "subject": name, "search": search, "count": count, "shares": [round(s, 5) for s in shares],
        "processor seconds": round(spent, 3),
    }  # fmt: skip


def compared(folder: Path, seeds: int, processes: int, again: list[str]) -> list[dict[str, Any]]:
    """All of them, as far as they were not run before."""
    path = folder / "compared.jsonl"
    rows = [row for row in lines(path) if row["search"] not in again]
    rows = [row for row in rows if len(row["shares"]) == seeds]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    done = {(row["subject"], row["search"], row["count"]) for row in rows}
    jobs = [
        (folder, table.name, search, count, seeds)
        for table in tables(folder)
        for search in SEARCHES
        for count in COUNTS
        if (table.name, search, count) not in done
    ]
    with multiprocessing.get_context("spawn").Pool(processes) as pool:
        for row in pool.imap_unordered(searched, jobs):
            append(path, row)
            rows.append(row)
    return rows


def shown(rows: list[dict[str, Any]]) -> str:
    """A table for the documentation: medians, by space and count."""
    names = list(dict.fromkeys(row["subject"] for row in rows))
    names = [s.name for s in SUBJECTS if s.name in names]
    cells = {(r["subject"], r["search"], r["count"]): median(r["shares"]) for r in rows}
    head = [f"{name} {count}" for name in names for count in COUNTS]
    written = ["| | " + " | ".join(head) + " |", "|---" * (len(head) + 1) + "|"]
    for search in SEARCHES:
        found = [cells.get((name, search, count)) for name in names for count in COUNTS]
        row = " | ".join("" if f is None else f"{f:.3f}" for f in found)
        written.append(f"| {search} | {row} |")
    return "\n".join(written)


def judged(rows: list[dict[str, Any]]) -> list[str]:
    """Where another search's median is above ours."""
    cells = {(r["subject"], r["count"], r["search"]): median(r["shares"]) for r in rows}
    found = []
    for (subject, count, search), share in sorted(cells.items()):
        mine = cells.get((subject, count, OURS), 0.0)
        if not search.startswith(OURS) and share > mine:
            found.append(f"{subject}, {count}: {search} {share:.3f}, ours {mine:.3f}")
    return found


def pruned(folder: Path) -> dict[str, Any]:
    """What points would be lost that spill where others do not, or whose code another has."""
    builds = {row["text"]: row for row in lines(folder / "builds.jsonl")}
    texts = {}
    for row in lines(folder / "points.jsonl"):
        texts[row["subject"], json.dumps(row["point"])] = row["text"]
    found = {}
    for table in tables(folder):
        spilling, codes = [], []
        for point, seconds in table.seconds.items():
            named = json.dumps(dict(zip(table.space.values, point, strict=True)))
            build = builds[texts[table.name, named]]
            codes.append(build.get("code", ""))
            if sum(build.get("spills", ())) and seconds is not None:
                spilling.append(table.best / seconds)
        found[table.name] = {
            "points": len(codes), "different machine code": len({*codes}),
            "spilling": len(spilling), "the best of those": max(spilling, default=None),
        }  # fmt: skip
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--seeds", type=int, default=20)
    parser.add_argument("--processes", type=int, default=max(1, (os.cpu_count() or 2) // 2))
    parser.add_argument("--again", nargs="*", default=[], choices=[*SEARCHES])
    parser.add_argument("--write", action="store_true")
    given = parser.parse_args()
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # one core a search
    folder = given.folder.resolve()
    rows = compared(folder, given.seeds, given.processes, given.again)
    print(shown(rows))
    above = judged(rows)
    print("\nabove ours: " + ("\n  ".join(["", *above]) if above else "none"))
    print("pruning:", pruned(folder))
    if given.write:
        spaces = [
            {
                "name": table.name, "values": dict(table.space.values),
                "present": dict(table.space.present), "starts": [dict(s) for s in table.starts],
                "points": [[*point, seconds] for point, seconds in table.seconds.items()],
            }
            for table in tables(folder)
        ]  # fmt: skip
        record = {
            "about": json.loads((folder / "about.json").read_text()),
            "versions": {n: metadata.version(n) for n in ("kernel_tuner", "optuna", "numpy")},
            "pruning": pruned(folder), "above ours": above, "searches": rows, "spaces": spaces,
        }  # fmt: skip
        RECORD.write_text(json.dumps(record) + "\n")


if __name__ == "__main__":
    main()
