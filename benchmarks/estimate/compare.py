"""How far today's estimates are off: absolute times, and ratios of two programs of one task.

    python benchmarks/estimate/compare.py benchmarks/results/estimate-h200.json

The file holds what a GPU measured and the programs that it ran; each program is counted anew on the
emulated device and estimated with the model as it stands.
"""

from __future__ import annotations

import argparse
import itertools
import json
import math
import statistics
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[2]))

from benchmarks.estimate.collect import TASKS
from optiml_magic.evaluation import Evaluator
from optiml_magic.model.candidate import Candidate, Proposal
from optiml_magic.problem import prepare
from optiml_magic.session import session
from optiml_magic.settings import resolve
from optiml_magic.testing.kernels import known_task

Row = tuple[str, float, float]  # title, measured and estimated seconds


def main(path: Path) -> None:
    record = json.loads(path.read_text())
    print(f"{record['gpu']}, CuPy {record['cupy']}, {record['date']}\n")
    print(f"{'task':<17} {'measured':>10} {'estimated':>10} {'est/meas':>8}  program")
    factors: list[float] = []
    ratios: list[float] = []
    right: list[bool] = []
    for task in dict.fromkeys(p["task"] for p in record["programs"]):
        rows = list(_rows(task, [p for p in record["programs"] if p["task"] == task]))
        for title, measured, estimated in rows:
            factors.append(estimated / measured)
            times = f"{1e6 * measured:8.1f}us {1e6 * estimated:8.1f}us"
            print(f"{task:<17} {times} {factors[-1]:8.2f}  {title[:60]}", flush=True)
        for (_, m1, e1), (_, m2, e2) in itertools.combinations(rows, 2):
            ratios.append(abs(math.log((e1 / e2) / (m1 / m2))))
            if not 1 / 1.1 < m1 / m2 < 1.1:
                right.append((m1 > m2) == (e1 > e2))
    _conclude(sorted(factors), sorted(ratios), right)


def _rows(task: str, programs: list[dict[str, Any]]) -> Iterator[Row]:
    settings = resolve({"verify_seeds": 1, "device": "emulated:h200"})
    problem = prepare(known_task(task, **TASKS[task]), seeds=1)
    with session(settings) as members:
        evaluator = Evaluator(problem, members.tools)
        for number, program in enumerate(programs):
            proposal = Proposal(program["program"], program["title"], "bundle")
            (evaluation,) = evaluator([Candidate(number, None, proposal)])
            assert evaluation.measurement is not None, evaluation.verdict
            measured = statistics.median(program["samples"])
            yield program["title"], measured, evaluation.measurement.seconds


def _conclude(factors: list[float], ratios: list[float], right: list[bool]) -> None:
    middle = statistics.median(factors)
    print(f"\n{len(factors)} programs; estimated over measured: median {middle:.2f},", end=" ")
    print(f"from {factors[0]:.2f} to {factors[-1]:.2f}")
    for share in (0.5, 0.8, 0.9):
        within = math.exp(ratios[min(len(ratios) - 1, int(share * len(ratios)))])
        print(f"ratios of two programs: {share:.0%} within a factor of {within:.2f}")
    share = statistics.mean(right)
    print(f"{len(right)} pairs differ by more than 10 %; {share:.0%} of them in the right order")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("path", type=Path, metavar="RECORD")
    main(**vars(parser.parse_args()))
