"""Pools of evaluated programs, for policies to search over without a device.

    python benchmarks/search/pool.py FOLDER [--budget 80] [--device emulated:h200] [--task NAME ...]

Each kernel of ``tasks.py`` is searched by several policies with several seeds, without a model and
without experience; what they evaluated together becomes one file, ``FOLDER/NAME.pool.gz``. The
journals stay in ``FOLDER/runs``, and runs whose journal has an end there are not made again.
``benchmarks/search/policies.py FOLDER`` searches over the pools.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT))

from benchmarks.search.tasks import tasks  # noqa: E402
from optiml_magic.model.task import Task  # noqa: E402
from optiml_magic.optimize import optimize  # noqa: E402
from optiml_magic.replay.pool import Pool  # noqa: E402
from optiml_magic.replay.recording import Recording  # noqa: E402
from optiml_magic.settings import Settings  # noqa: E402

# A random search is the widest, the others go deep where it pays; shares of the budget.
RUNS = (("random", 0, 1.0), ("random", 1, 0.5), ("mcts", 2, 0.5), ("greedy", 3, 0.5))


def recorded(task: Task, folder: Path, settings: Settings) -> list[Recording]:
    """The runs of one task, made or found."""
    found = []
    for policy, seed, share in RUNS:
        path = folder / "runs" / f"{task.name}-{policy}-{seed}.jsonl"
        if not path.exists():
            began = time.monotonic()
            budget = max(1, round(share * settings.budget))
            chosen = replace(settings, policy=policy, seed=seed, budget=budget)
            summary = optimize(task, chosen).summary
            assert summary.journal is not None
            summary.journal.rename(path)
            spent = time.monotonic() - began
            steps = len(summary.trajectory.steps)
            print(f"{path.stem}: {steps} in {spent:.0f} s, {summary.speedup:.2f}x", flush=True)
        found.append(Recording.read(path))
    return found


def main(arguments: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--budget", type=int, default=80)
    parser.add_argument("--device", default="emulated:h200")
    parser.add_argument("--task", action="append", help="only this one; repeatable")
    options = parser.parse_args(arguments)
    (options.folder / "runs").mkdir(parents=True, exist_ok=True)
    settings = Settings(
        device=options.device, llm="none", experience="none", budget=options.budget,
        seconds=float("inf"), home=options.folder / "home",
    )  # fmt: skip
    for task in tasks():
        if options.task is None or task.name in options.task:
            pool = Pool.of(recorded(task, options.folder, settings), slim=True)
            path = options.folder / f"{task.name}.pool.gz"
            pool.write(path)
            gain = pool.root.seconds / pool.best.seconds
            kept = f"{path.stat().st_size / 1024:.0f} KB"
            print(f"{path}: {len(pool.programs)} programs, best {gain:.2f}x, {kept}", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
