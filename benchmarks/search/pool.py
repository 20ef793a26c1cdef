"""Pools of evaluated programs, for policies to search over without a device.

    python benchmarks/search/pool.py FOLDER [--processes N] [--seconds 180] [--limit SECONDS]
                                     [--device emulated:h200] [--seeds 5] [--task NAME ...]

Each kernel of ``tasks.py`` is searched by every policy, by the tree search with each part off,
and with the experience that ships, with several seeds each: first all of them a little, then
further. A program is evaluated once for all of them (``filling.py``). FOLDER/NAME.jsonl has the
evaluations as they come, FOLDER/NAME.pool.xz the pool and what it lacks. A task has ``--seconds``
at most, and none begins that could not end before ``--limit``. The same command goes on with the
tasks whose searches did not end. ``benchmarks/search/policies.py FOLDER`` searches over the pools.
"""

from __future__ import annotations

import argparse
import multiprocessing
import os
import sys
import tempfile
import time
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT))

from benchmarks.search.filling import filling, rounds  # noqa: E402
from benchmarks.search.record import SUFFIX, Record  # noqa: E402
from benchmarks.search.tasks import NAMES, tasks  # noqa: E402
from benchmarks.search.variants import PARTS, RIVALS, WITH_EXPERIENCE  # noqa: E402
from optiml_magic.errors import OptimlError  # noqa: E402
from optiml_magic.settings import Settings  # noqa: E402

BUDGETS = (16, 32, 64)
# Of a launch so many instructions are counted, then blocks are a sample; of inputs one set is
# verified: more would cost time and tell the policies nothing.
_COUNTED, _VERIFIED, _TRIALS = 2_000_000, 1, 2.0
_BEGINS = 8.0  # seconds that it takes until the first program is evaluated


@dataclass(frozen=True)
class Order:
    """What one process does of one task; ``until`` is the time of day that it ends at."""

    folder: Path
    home: Path
    device: str
    seeds: int
    seconds: float
    until: float
    command: str


def filled(name: str, order: Order) -> str:
    """Go on with one task; what came of it, in a line."""
    began = time.time()
    if began + _BEGINS > order.until:
        return f"{name}: not begun"
    ends = min(began + order.seconds, order.until)
    settings = Settings(
        device=order.device, llm="none", experience="none", seconds=float("inf"), home=order.home,
        verify_seeds=_VERIFIED, count_instructions=_COUNTED, trial_seconds=_TRIALS,
    )  # fmt: skip
    try:
        with filling(tasks()[name](), settings, order.folder / f"{name}.jsonl") as found:
            ended = rounds(
                found, ((*RIVALS, WITH_EXPERIENCE), PARTS), order.seeds, BUDGETS,
                lambda: time.time() > ends,
            )  # fmt: skip
            record = found.record(order.command, ended)
    except OptimlError as error:
        return f"{name}: {error}"
    path = order.folder / f"{name}{SUFFIX}"
    record.write(path)
    pool = record.pool
    gain = pool.root.seconds / pool.best.seconds
    return (
        f"{name}: {len(pool.programs)} programs, {len(record.plain.offered)} ideas more, "
        f"best {gain:.2f}x, {time.time() - began:.0f} s{f', came to {ended}' if ended else ''}"
    )


def undone(folder: Path, name: str) -> bool:
    """Whether a task has searches that did not end."""
    path = folder / f"{name}{SUFFIX}"
    return not path.exists() or bool(Record.read(path).ended)


def main(arguments: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--processes", type=int, default=1)
    parser.add_argument("--seconds", type=float, default=180.0, help="of a task")
    parser.add_argument("--limit", type=float, default=float("inf"), help="seconds of all")
    parser.add_argument("--device", default="emulated:h200")
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--task", action="append", choices=NAMES, help="only this one; repeatable")
    options = parser.parse_args(arguments)
    began = time.time()
    options.folder.mkdir(parents=True, exist_ok=True)
    names = [n for n in options.task or NAMES if undone(options.folder, n)]
    # A library that starts threads of its own would make the processes wait for each other.
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    spawned = multiprocessing.get_context("spawn")
    with (
        tempfile.TemporaryDirectory() as home,
        ProcessPoolExecutor(options.processes, mp_context=spawned) as processes,
    ):
        order = Order(
            options.folder, Path(home), options.device, options.seeds, options.seconds,
            began + options.limit,
            " ".join(["python benchmarks/search/pool.py FOLDER", *arguments[1:]]),
        )  # fmt: skip
        for done in as_completed(processes.submit(filled, name, order) for name in names):
            print(done.result(), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
