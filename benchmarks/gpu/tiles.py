"""Square products as ``blocked_product`` makes them, with many tiles: which is best at which size.

    python benchmarks/gpu/tiles.py OUT.jsonl [--device DEVICE] [--sizes N ...]

Every program is verified and timed as the candidate of a search is. A line a size says what the
input kernel takes and which tiles the rule would begin with, then there is a line a tile: rows and
columns of outputs a block, rounds, rows and columns a thread, and microseconds.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT / "benchmarks" / "tuning"))

from subjects import SUBJECTS  # noqa: E402

from optiml_magic.evaluation import Evaluator  # noqa: E402
from optiml_magic.model.candidate import Candidate, Proposal  # noqa: E402
from optiml_magic.model.task import Task  # noqa: E402
from optiml_magic.problem import prepare  # noqa: E402
from optiml_magic.session import session  # noqa: E402
from optiml_magic.settings import resolve  # noqa: E402

NAMES = ("BM", "BN", "BK", "TM", "TN")
TILES = (
    (128, 128, 16, 8, 8), (128, 64, 16, 8, 8), (64, 64, 16, 8, 8), (64, 64, 16, 4, 4),
    (64, 64, 32, 4, 4), (32, 64, 16, 4, 4), (32, 64, 32, 4, 4), (32, 32, 16, 4, 4),
    (32, 32, 32, 4, 4), (32, 32, 16, 2, 4), (32, 32, 32, 2, 4), (32, 32, 32, 4, 2),
    (32, 32, 16, 2, 2), (32, 32, 32, 2, 2), (16, 32, 16, 2, 2), (16, 32, 32, 2, 2),
    (16, 32, 32, 2, 4), (16, 64, 32, 2, 4), (16, 64, 16, 2, 4), (16, 16, 32, 2, 2),
    (64, 32, 32, 4, 4), (64, 32, 32, 4, 2), (32, 64, 32, 4, 2), (32, 64, 32, 2, 4),
)  # fmt: skip


def rows(n: int, device: str) -> Iterator[dict[str, Any]]:
    """The lines of one size."""
    subject = replace(SUBJECTS[0], sizes={"n": n}, wider={})
    space, starts = subject.space()
    rng = np.random.default_rng(0)
    a, b = (rng.uniform(-1, 1, (n, n)).astype(np.float32) for _ in "ab")
    inputs = {"a": a, "b": b, "n": n, "out": np.zeros((n, n), np.float32)}
    task = Task(subject.text, reference=lambda a, b: a @ b, inputs=inputs)
    problem = prepare(task, seeds=1)
    with session(resolve({"device": device}), task=task) as members:
        evaluator = Evaluator(problem, members.tools)
        (root,) = evaluator([Candidate(0, None, Proposal(subject.text, "input", "benchmark"))])
        assert root.measurement is not None, root.verdict
        begins = [list(point.values()) for point in starts]
        yield {"n": n, "input": round(root.measurement.seconds * 1e6, 2), "starts": begins}
        for number, tile in enumerate(TILES, 1):
            point = dict(zip(NAMES, tile, strict=True))
            if space.promise(point) <= 0:
                continue
            proposal = Proposal(space.text(point), str(tile), "benchmark")
            (found,) = evaluator([Candidate(number, 0, proposal)])
            took = found.measurement
            yield {
                "n": n, "tile": tile, "us": took and round(took.seconds * 1e6, 2),
                "verdict": found.verdict.outcome.value,
            }  # fmt: skip


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("out", type=Path)
    parser.add_argument("--device", default="cuda:0")
    parser.add_argument("--sizes", type=int, nargs="+", default=[256, 512])
    options = parser.parse_args(arguments)
    with options.out.open("a") as file:
        for n in options.sizes:
            for row in rows(n, options.device):
                print(json.dumps(row), file=file, flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
