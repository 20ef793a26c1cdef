"""Why one kernel takes longer beside its peers than in its search: what of the timing matters.

    python benchmarks/gpu/clocks.py ROWS.jsonl OUT.jsonl [TASK ...]

ROWS.jsonl is what ``optiml bench`` wrote. The winner of each row is timed by the search's clock,
in a host of its own, and here by the clock of the peers: alone, with other numbers of array sets in
a batch, beside eight gigabytes that are touched between batches, and with torch loaded. A line of
OUT.jsonl has the medians in microseconds.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[2]))

from benchmarks.gpu.machine import gpu, versions
from optiml_magic.bench.peers import OurKernel, copied
from optiml_magic.bench.suite import chosen
from optiml_magic.calling import Kernels
from optiml_magic.devices.base import Sampling
from optiml_magic.devices.functions import Ready, captured, sampled
from optiml_magic.from_reference import with_kernel
from optiml_magic.optimize import evaluate_once, prepared
from optiml_magic.settings import resolve

SETS = (1, 2, 4, 8, 16)
OTHERS = 32  # arrays of a quarter of a gigabyte
_SAMPLING = Sampling(least=8, most=40, seconds=1.0)


def ready(cp: Any, party: OurKernel, values: dict[str, Any], sets: int) -> Ready:
    stream = cp.cuda.Stream(non_blocking=True)
    with stream:
        runs = [party.ready(copied(values)) for _ in range(sets)]
        for run in runs:
            run()
    stream.synchronize()

    def all_runs() -> None:
        for run in runs:
            run()

    return Ready(stream, captured(cp, stream, all_runs), runs, "a graph")


def here(cp: Any, party: OurKernel, values: dict[str, Any], sets: int, *others: Ready) -> float:
    """The median of samples in microseconds, in turn with the ``others``."""
    mine, *_ = sampled(cp, [ready(cp, party, values, sets), *others], _SAMPLING)
    cp.get_default_memory_pool().free_all_blocks()
    return round(1e6 * statistics.median(mine), 2)


def touching(cp: Any) -> Ready:
    """What adds one to eight gigabytes."""
    arrays = [cp.zeros(1 << 26, cp.float32) for _ in range(OTHERS)]

    def touch() -> None:
        for array in arrays:
            cp.add(array, 1, out=array)

    return Ready(cp.cuda.Stream.null, touch, [touch], "launched from Python")


def main() -> None:
    import cupy as cp

    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("rows", type=Path)
    parser.add_argument("out", type=Path)
    parser.add_argument("tasks", nargs="*")
    options = parser.parse_args()
    settings = resolve({"device": "cuda:0"})
    for row in map(json.loads, options.rows.read_text().splitlines()):
        if options.tasks and row["task"] not in options.tasks:
            continue
        (entry,) = chosen((row["task"],), None)
        task = entry.task(row["setup"]["size"])
        task = with_kernel(task) if row["setup"]["origin"] == "reference" else task
        measured = evaluate_once(task, settings, program=row["program"], counters=False)
        found: dict[str, Any] = {"task": row["task"]}
        assert measured.evaluation.measurement is not None
        found["its search"] = round(1e6 * measured.evaluation.measurement.seconds, 2)
        party = OurKernel("best", Kernels.of(prepared(task, settings), settings)(row["program"]))
        drawn = entry.inputs(np.random.default_rng(0), **row["sizes"])
        values = {n: cp.asarray(v) if getattr(v, "ndim", 0) else v for n, v in drawn.items()}
        for sets in SETS:
            found[f"{sets} sets"] = here(cp, party, values, sets)
        found["4 sets, beside eight gigabytes"] = here(cp, party, values, 4, touching(cp))
        import torch

        torch.zeros(1, device="cuda")
        found["4 sets, torch loaded"] = here(cp, party, values, 4)
        found |= {"gpu": gpu(), "versions": versions()}
        with options.out.open("a") as file:
            file.write(json.dumps(found) + "\n")
        print(json.dumps({k: v for k, v in found.items() if k != "versions"}), flush=True)


if __name__ == "__main__":
    main()
