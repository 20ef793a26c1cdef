"""Every policy, and the tree search with each part of it off, over pools of evaluated programs.

    python benchmarks/search/policies.py FOLDER [--seeds 5] [--processes N] [--write]

FOLDER has the pools that ``benchmarks/search/pool.py`` wrote. Of each search the best program after
so many evaluations is told as the pool's best time over its own; the table has the geometric means
over tasks of those over seeds, and how many evaluations it took to 95 % of the pool's best. The
intervals are those of 95 % of the means over tasks drawn with replacement. ``beside mcts`` is the
same ratio of a search to the whole tree search on the same tasks. What a search asked for that
nobody had evaluated costs it nothing; ``lacking`` is how many times that was so, and ``at least``
the figure that it has where each of these had been an evaluation that brings nothing. ``own`` is
what the search itself costs, in percent of the seconds that the evaluations took: processor time of
a replay, reading spaces included. The record is ``benchmarks/results/search-policies.json``.
"""

from __future__ import annotations

import argparse
import json
import platform
import random
import statistics
import sys
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT))

from benchmarks.search.record import SUFFIX, Record  # noqa: E402
from benchmarks.search.replaying import Replaying  # noqa: E402
from benchmarks.search.variants import (  # noqa: E402
    FULL,
    RIVALS,
    VARIANTS,
    WITH_EXPERIENCE,
    Variant,
)
from optiml_magic.search.policies.puct import Puct  # noqa: E402


def title(policy: str, without: str) -> str:
    """Of a search, in the table."""
    return f"{policy} without {without}" if without else policy


RECORD = ROOT / "benchmarks" / "results" / "search-policies.json"
BUDGETS = (4, 8, 16, 32, 64)
_NEAR = 0.95
_EARLY = {f"{title(v.name, v.without or 'nothing')}, 16" for v in (*RIVALS, WITH_EXPERIENCE)}
_DRAWS = 2000  # of the tasks, with replacement
Json = dict[str, Any]
Interval = tuple[float, float, float]


@dataclass(frozen=True)
class Row:
    """A search of a task with one seed, at each of the budgets; shares are of the pool's best."""

    task: str
    policy: str
    without: str
    seed: int
    shares: tuple[float, ...]
    at_least: tuple[float, ...]
    lacking: tuple[int, ...]
    to_near: int
    evaluations: int
    second_edit_at: int  # evaluations until the first program of two edits, as above
    search_seconds: float

    @property
    def title(self) -> str:
        """Of the search."""
        return title(self.policy, self.without)


def measured(path: Path, seeds: int) -> tuple[Json, list[Row]]:
    """What a pool is, and every search over it."""
    record = Record.read(path)
    replaying = Replaying(record)
    pool = record.pool
    best, most = pool.best.seconds, max(BUDGETS)
    about: Json = {
        "task": pool.header.task,
        "programs": len(pool.programs),
        "ideas that nobody evaluated": len(record.plain.offered),
        "gain": round(pool.root.seconds / best, 3),
        "came to": record.ended or "the end",
        "seconds": round(sum(p.evaluation.seconds_spent for p in pool.programs), 1),
    }
    rows: list[Row] = []
    if record.ended in _EARLY:
        return about | {"left out": "not all policies came to 16 evaluations"}, rows
    for variant in VARIANTS:
        for seed in range(seeds if replaying.informed() or not variant.experience else 0):
            began = time.process_time()
            found = replaying.search(variant, most, seed)
            spent = time.process_time() - began
            second = (at for at, edits in enumerate(found.edits, 1) if edits > 1)
            rows.append(
                Row(
                    pool.header.task, variant.name, variant.without, seed,
                    tuple(round(best / found.at(budget), 4) for budget in BUDGETS),
                    tuple(round(best / found.least(budget), 4) for budget in BUDGETS),
                    tuple(found.lacking(budget) for budget in BUDGETS),
                    found.until(best / _NEAR, most), len(found.seconds), next(second, most),
                    round(spent, 4),
                )
            )  # fmt: skip
    return about, rows


def over_tasks(values: Sequence[float], mean: Callable[[Sequence[float]], float]) -> Interval:
    """A mean over tasks, and the bounds of 95 % of those of tasks drawn with replacement."""
    rng = random.Random(0)
    drawn = sorted(mean(rng.choices(values, k=len(values))) for _ in range(_DRAWS))
    low, high = drawn[int(0.025 * _DRAWS)], drawn[int(0.975 * _DRAWS) - 1]
    return round(mean(values), 4), round(low, 4), round(high, 4)


def by_task(
    rows: Sequence[Row], variant: Variant, value: Callable[[Row], float], *, geometric: bool
) -> dict[str, float]:
    """The mean over seeds of each task."""
    mean = statistics.geometric_mean if geometric else statistics.mean
    found: dict[str, list[float]] = {}
    for row in rows:
        if (row.policy, row.without) == (variant.name, variant.without):
            found.setdefault(row.task, []).append(value(row))
    return {task: mean(values) for task, values in found.items()}


def within(rows: Sequence[Row], variant: Variant, at: int) -> Json:
    """Of one search after so many evaluations, over all tasks; ``at`` is that of the budget."""
    geometric = statistics.geometric_mean
    own, whole = (
        by_task(rows, one, lambda r: r.shares[at], geometric=True) for one in (variant, FULL)
    )
    least = by_task(rows, variant, lambda r: r.at_least[at], geometric=True)
    lacking = by_task(rows, variant, lambda r: r.lacking[at], geometric=False)
    return {
        "share": over_tasks([*own.values()], geometric),
        "beside mcts": over_tasks([own[task] / whole[task] for task in own], geometric),
        "at least": round(geometric([*least.values()]), 4),
        "lacking": round(statistics.mean([*lacking.values()]), 2),
    }


def figures(rows: Sequence[Row], variant: Variant) -> Json:
    """Of one search, over all tasks."""
    found = {str(budget): within(rows, variant, at) for at, budget in enumerate(BUDGETS)}
    near = by_task(rows, variant, lambda r: r.to_near, geometric=False)
    second = by_task(rows, variant, lambda r: r.second_edit_at, geometric=False)
    return found | {
        "tasks": len(near),
        "to 95 %": over_tasks([*near.values()], statistics.mean),
        "to two edits": round(statistics.mean([*second.values()]), 1),
    }


def shown(found: dict[str, Json]) -> None:
    """The table."""
    head = "".join(f"{budget:>22}" for budget in BUDGETS)
    print(f"{'share of the best':<44}{head}{'to 95 %':>20}{'2 edits':>9}")
    for name, row in found.items():
        cells = ""
        for budget in BUDGETS:
            share, low, high = row[str(budget)]["share"]
            cells += f"{share:>8.3f} [{low:.3f} {high:.3f}]"
        near, low, high = row["to 95 %"]
        print(f"{name:<44}{cells}{near:>7.1f} [{low:.1f} {high:.1f}]{row['to two edits']:>8.1f}")
    print(f"\n{'beside mcts (at least, lacking)':<44}")
    for name, row in found.items():
        cells = ""
        for budget in BUDGETS:
            ratio, low, high = row[str(budget)]["beside mcts"]
            least, lacking = row[str(budget)]["at least"], row[str(budget)]["lacking"]
            cells += f"{ratio:>7.3f} [{low:.3f} {high:.3f}] ({least:.3f}, {lacking:.1f})"
        print(f"{name:<44}{cells}")


def main(arguments: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--processes", type=int, default=1)
    parser.add_argument("--write", action="store_true")
    options = parser.parse_args(arguments)
    paths = sorted(options.folder.glob(f"*{SUFFIX}"))
    if not paths:
        parser.error(f"no pool in {options.folder}")
    pools: dict[str, Json] = {}
    rows: list[Row] = []
    with ProcessPoolExecutor(options.processes) as processes:
        for about, more in processes.map(partial(measured, seeds=options.seeds), paths):
            pools[about["task"]] = about
            rows += more
            print(json.dumps(about), flush=True)
    found = {title(v.name, v.without): figures(rows, v) for v in VARIANTS}
    shown(found)
    spent = sum(row.search_seconds for row in rows if row.title == FULL.name)
    each = statistics.mean(about["seconds"] / about["programs"] for about in pools.values())
    own = spent / (each * sum(row.evaluations for row in rows if row.title == FULL.name))
    print(f"the search itself: {own:.2%} of the evaluations' seconds")
    if options.write:
        record = {
            "what": f"the pool's best time over that of the best found at {BUDGETS} evaluations",
            "command": " ".join(["python benchmarks/search/policies.py FOLDER", *arguments[1:]]),
            "date": time.strftime("%Y-%m-%d"),
            "machine": f"{platform.machine()}, Python {platform.python_version()}",
            "device": sorted({Record.read(path).pool.header.device for path in paths}),
            "recorded by": sorted({Record.read(path).command for path in paths}),
            "constants of mcts": asdict(Puct()),
            "pools": pools,
            "own": round(own, 5),
            "means": found,
            "rows": [asdict(row) for row in rows],
        }
        RECORD.write_text(json.dumps(record) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
