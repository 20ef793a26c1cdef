"""Evaluations until the best program is found, by policy, on problems whose best is known.

    python benchmarks/search/toys.py [--seeds 60] [--write]
    python benchmarks/search/toys.py --choose

A landscape counts as solved with the first evaluation of a program that has 90 % of the best gain;
a search that never gets there counts with its whole budget. The seeds that are reported begin at
300. ``--choose`` tries other constants of the tree search, one at a time, on seeds from 10,000 on.
Beside it stands the processor time of a tree of 100,000 nodes, with that of a loop of ten million
rounds on the same machine. The record is ``benchmarks/results/search-toys.json``.
"""

from __future__ import annotations

import argparse
import json
import platform
import statistics
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT))

from benchmarks.search.landscapes import LANDSCAPES, Landscape  # noqa: E402
from benchmarks.search.large import grown  # noqa: E402
from optiml_magic.search.controls import Controls  # noqa: E402
from optiml_magic.search.loop import Budget, at_once, run  # noqa: E402
from optiml_magic.search.policies import POLICIES  # noqa: E402
from optiml_magic.search.policies.base import Policy  # noqa: E402
from optiml_magic.search.policies.puct import Puct  # noqa: E402
from optiml_magic.search.search import TreeSearch  # noqa: E402

RECORD = ROOT / "benchmarks" / "results" / "search-toys.json"
BUDGET = 300
SHARE = 0.9
NODES = 100_000
_CHOSEN_FROM = 10_000  # the first seed that constants are chosen on
_REPORTED_FROM = 300  # those below it were looked at while the policy was written
_OTHERS: dict[str, tuple[Any, ...]] = {
    "headroom": (0.0, 0.25, 0.35, 0.5),
    "patience": (6, 12, 20, 40),
    "average": (0.0, 0.1, 0.25, 0.5),
    "exploration": (0.02, 0.05, 0.1, 0.25),
    "tuning": (0.05, 0.1, 0.2, 0.4),
    "strength": (0.5, 1.0, 2.0, 4.0),
    "unasked": (0.1, 0.2, 0.5),
}


def needed(make: Callable[[int], Landscape], seed: int, policy: Policy) -> int:
    """Evaluations until a program with ``SHARE`` of the best gain was evaluated."""
    landscape = make(seed)
    tree = TreeSearch(landscape.root, landscape.expand, landscape.spaces, policy=policy, seed=seed)
    controls = Controls()

    def look(step: Any, _: Any) -> None:
        if landscape.share(step.candidate.text) >= SHARE:
            controls.stop()

    trajectory = run(
        tree, at_once(landscape.evaluate), Budget(BUDGET), progress=look, controls=controls
    )
    return len(trajectory.steps) if controls.stopped else BUDGET


def table(policies: Mapping[str, Policy], seeds: Sequence[int]) -> dict[str, dict[str, list[int]]]:
    """Evaluations by landscape, policy and seed."""
    return {
        name: {p: [needed(make, seed, policy) for seed in seeds] for p, policy in policies.items()}
        for name, make in LANDSCAPES.items()
    }


def overall(found: Mapping[str, Mapping[str, Sequence[int]]], policy: str) -> float:
    """The geometric mean over landscapes of the mean over seeds: no landscape weighs more."""
    return statistics.geometric_mean([statistics.mean(row[policy]) for row in found.values()])


def choose(seeds: int) -> Puct:
    """The constants that need the fewest evaluations, one changed at a time until none helps."""
    drawn = range(_CHOSEN_FROM, _CHOSEN_FROM + seeds)

    def cost(policy: Puct) -> float:
        return overall(table({"mcts": policy}, drawn), "mcts")

    best, least = Puct(), cost(Puct())
    print(f"{least:.1f} with {best}", flush=True)
    before = None
    while before != best:
        before = best
        for name, values in _OTHERS.items():
            for value in values:
                other = replace(best, **{name: value})
                if other != best and (found := cost(other)) < 0.99 * least:
                    best, least = other, found
                    print(f"{least:.1f} with {best}", flush=True)
    return best


def large() -> dict[str, float]:
    """Processor seconds of a tree of ``NODES`` nodes, and of a loop to compare machines by."""
    spent = grown(NODES)
    began = time.process_time()
    total = 0
    for at in range(10_000_000):
        total += at * at
    return {"tree": spent, "loop of ten million rounds": round(time.process_time() - began, 2)}


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seeds", type=int, default=60)
    parser.add_argument("--choose", action="store_true")
    parser.add_argument("--write", action="store_true")
    options = parser.parse_args(arguments)
    if options.choose:
        print(choose(options.seeds))
        return 0
    policies = {name: make() for name, make in POLICIES.items()}
    found = table(policies, range(_REPORTED_FROM, _REPORTED_FROM + options.seeds))
    print(f"{'median evaluations':<22}" + "".join(f"{name:>11}" for name in policies))
    for name, row in found.items():
        print(f"{name:<22}" + "".join(f"{statistics.median(row[p]):>11g}" for p in policies))
    means = {
        p: round(statistics.mean(statistics.mean(row[p]) for row in found.values()), 1)
        for p in policies
    }
    print(f"{'mean of all':<22}" + "".join(f"{means[p]:>11}" for p in policies))
    geometric = {p: round(overall(found, p), 1) for p in policies}
    print(f"{'geometric, of means':<22}" + "".join(f"{geometric[p]:>11}" for p in policies))
    grown = large()
    print(f"a tree of {NODES} nodes: {grown}")
    if options.write:
        record = {
            "what": f"evaluations until {SHARE:.0%} of the best gain, at most {BUDGET}",
            "command": " ".join(["python benchmarks/search/toys.py", *arguments]),
            "date": time.strftime("%Y-%m-%d"),
            "machine": f"{platform.machine()}, Python {platform.python_version()}",
            "seeds": [_REPORTED_FROM, _REPORTED_FROM + options.seeds],
            "constants of mcts": asdict(Puct()),
            "chosen on seeds from": _CHOSEN_FROM,
            "mean": means,
            "geometric mean of the landscapes' means": geometric,
            "medians": {
                name: {p: statistics.median(row[p]) for p in policies}
                for name, row in found.items()
            },
            "unsolved": {
                name: {p: sum(n == BUDGET for n in row[p]) for p in policies}
                for name, row in found.items()
            },
            "processor seconds of a large tree": grown,
            "evaluations": found,
        }
        RECORD.write_text(json.dumps(record) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
