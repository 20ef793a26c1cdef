"""Every policy over pools of evaluated programs: how near the pool's best it comes, and how soon.

    python benchmarks/search/policies.py FOLDER [--seeds 10] [--write]

``FOLDER`` has the pools that ``benchmarks/search/pool.py`` wrote. Of each policy, budget and seed
the speed of the best program found is told as a share of the speed of the pool's best; the table
has the means over pools and seeds. ``own`` is what the search itself costs, in percent of the wall
time that the evaluations took when they were recorded: processor time of a replay, reading spaces
included. The record is ``benchmarks/results/search-policies.json``.
"""

from __future__ import annotations

import argparse
import json
import platform
import statistics
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT))

from optiml_magic.replay.pool import Pool  # noqa: E402
from optiml_magic.search.policies import POLICIES  # noqa: E402

RECORD = ROOT / "benchmarks" / "results" / "search-policies.json"
BUDGETS = (5, 10, 20, 40)
Row = dict[str, Any]


def measured(pool: Pool, policy: str, seed: int) -> Row:
    """The shares at every budget from one search, and what it cost."""
    began = time.process_time()
    steps = pool.search(policy, budget=max(BUDGETS), seed=seed).steps
    spent = time.process_time() - began
    seconds = [
        step.evaluation.measurement.seconds if step.evaluation.measurement else float("inf")
        for step in steps
        if step.evaluation.duplicate_of is None
    ]
    return {
        "pool": pool.header.task,
        "policy": policy,
        "seed": seed,
        "shares": [round(pool.best.seconds / min(seconds[:budget]), 4) for budget in BUDGETS],
        "evaluations": len(seconds),
        "search_seconds": round(spent, 4),
        "evaluation_seconds": round(sum(step.evaluation.seconds_spent for step in steps), 2),
    }


def main(arguments: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--write", action="store_true")
    options = parser.parse_args(arguments)
    pools = [Pool.read(path) for path in sorted(options.folder.glob("*.pool.gz"))]
    if not pools:
        parser.error(f"no pool in {options.folder}")
    for pool in pools:
        gain = pool.root.seconds / pool.best.seconds
        print(f"{pool.header.task}: {len(pool.programs)} programs, best {gain:.2f}x")
    rows = [
        measured(pool, policy, seed)
        for pool in pools
        for policy in POLICIES
        for seed in range(options.seeds)
    ]
    print(f"{'share of the best':<18}" + "".join(f"{budget:>8}" for budget in BUDGETS) + "     own")
    means = {}
    for policy in POLICIES:
        own = [row for row in rows if row["policy"] == policy]
        means[policy] = [
            round(statistics.mean(row["shares"][at] for row in own), 3)
            for at in range(len(BUDGETS))
        ]
        took = sum(row["evaluation_seconds"] for row in own)
        cost = sum(row["search_seconds"] for row in own) / took
        told = "".join(f"{share:>8.3f}" for share in means[policy])
        print(f"{policy:<18}{told}{cost:>8.2%}")
    if options.write:
        record = {
            "what": f"speed of the best found at {BUDGETS} evaluations, as share of the pool's",
            "command": f"python benchmarks/search/policies.py FOLDER --seeds {options.seeds}",
            "date": time.strftime("%Y-%m-%d"),
            "machine": f"{platform.machine()}, Python {platform.python_version()}",
            "device": sorted({pool.header.device for pool in pools}),
            "pools": {pool.header.task: len(pool.programs) for pool in pools},
            "means": means,
            "rows": rows,
        }
        RECORD.write_text(json.dumps(record) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
