"""Kernels that are like each other in twos and threes, and one search of one of them.

The originals of the twins, the workloads of the hit rates and the known kernels, each at a size at
which a rule pays; on a GPU the originals and the known ones at larger sizes as well. Many of them
do the same to memory in other words, so what is found on one may serve another.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT))

from benchmarks.gpu import workloads  # noqa: E402
from benchmarks.rewriting.twins import LARGE  # noqa: E402
from optiml_magic.model.task import Task  # noqa: E402
from optiml_magic.optimize import optimize  # noqa: E402
from optiml_magic.reports.summary import Summary  # noqa: E402
from optiml_magic.settings import resolve  # noqa: E402
from optiml_magic.testing.kernels import NAMES, known_task  # noqa: E402
from tests.twins.originals import ORIGINALS, Values  # noqa: E402

Row = dict[str, Any]
Rng = np.random.Generator
_F4, _I4 = np.float32, np.int32


def _drawn(rng: Rng, *shape: int) -> Any:
    return rng.random(shape, _F4) - _F4(0.5)


def _zeros(*shape: int) -> Any:
    return np.zeros(shape, _F4)


def _rows(rng: Rng, rows: int, cols: int, *names: str, **out: Any) -> Values:
    first, *vectors = names
    inputs = {first: _drawn(rng, rows, cols), **{name: _drawn(rng, cols) for name in vectors}}
    return {**inputs, "rows": rows, "cols": cols, **out}


def _product(rng: Rng, m: int, n: int, k: int) -> Values:
    a, b = _drawn(rng, m, k), _drawn(rng, k, n)
    return {"a": a, "b": b, "c": _zeros(m, n), "m": m, "n": n, "k": k}


def _of_rows(rows: int, cols: int) -> dict[str, Callable[[Rng], Values]]:
    return {
        "row_sum": lambda rng: _rows(rng, rows, cols, "a", out=_zeros(rows)),
        "row_max": lambda rng: _rows(rng, rows, cols, "a", out=_zeros(rows)),
        "row_argmin": lambda rng: _rows(rng, rows, cols, "a", where=np.zeros(rows, _I4)),
        "matvec": lambda rng: _rows(rng, rows, cols, "a", "x", y=_zeros(rows)),
        "softmax": lambda rng: _rows(rng, rows, cols, "x", out=_zeros(rows, cols)),
        "layer_norm": lambda rng: _rows(
            rng, rows, cols, "x", "gamma", "beta", out=_zeros(rows, cols)
        ),
        "row_normalise": lambda rng: _rows(rng, rows, cols, "a", out=_zeros(rows, cols)),
    }


#: By what is added to their names: larger sizes, and rows that are few and long.
_LARGER: Mapping[str, Mapping[str, Callable[[Rng], Values]]] = {
    "larger": {
        **_of_rows(8192, 2052),
        "transpose": lambda rng: _rows(rng, 4096, 4128, "a", out=_zeros(4128, 4096)),
        "matmul": lambda rng: _product(rng, 1024, 1088, 1056),
        "nbody": lambda rng: {
            **{name: _drawn(rng, 16388) for name in ("px", "py", "mass")},
            "ax": _zeros(16388), "ay": _zeros(16388), "n": 16388,
        },
        "point_lengths": lambda rng: {
            "points": _drawn(rng, 4_000_000, 3), "lengths": _zeros(4_000_000), "n": 4_000_000
        },
        "downsample": lambda rng: {
            "image": _drawn(rng, 4096, 4128), "out": _zeros(2048, 2064), "width": 4128,
            "out_width": 2064, "out_height": 2048,
        },
    },
    "long": {n: make for n, make in _of_rows(132, 65540).items() if n in ("row_sum", "softmax")},
}  # fmt: skip
_KNOWN: Mapping[str, dict[str, int]] = {
    "saxpy": {"n": 1 << 24},
    "transpose_naive": {"rows": 4096, "cols": 4096},
    "transpose_tiled": {"rows": 4096, "cols": 4096},
    "matmul_naive": {"m": 1024, "n": 1024, "k": 1024},
    "matmul_tiled": {"m": 1024, "n": 1024, "k": 1024},
}


def _of_twin(name: str, make: Callable[[Rng], Values], more: str = "") -> Task:
    original = next(original for original in ORIGINALS if original.name == name)
    values = make(np.random.default_rng(7))
    title = f"{name}_{more}" if more else name
    return Task(original.text, inputs=values, inout=original.inout, name=title)


def tasks(*, emulated: bool) -> dict[str, Callable[[], Task]]:
    """How to make each task, by a name of its own; the first are worth most."""
    found: dict[str, Callable[[], Task]] = {}
    for name, make in LARGE.items():
        found[f"twin/{name}"] = partial(_of_twin, name, make)
    for name in workloads.WORKLOADS:
        found[f"workload/{name}"] = partial(workloads.task, name, emulated=emulated)
    for name in NAMES:
        small = workloads.KNOWN[name][1] if emulated and name in workloads.KNOWN else {}
        found[f"known/{name}"] = partial(known_task, name, **small)
    if emulated:
        return found
    for more, makers in _LARGER.items():
        for name, make in makers.items():
            found[f"twin/{name}/{more}"] = partial(_of_twin, name, make, more)
    for name, sizes in _KNOWN.items():
        found[f"known/{name}/larger"] = partial(known_task, name, **sizes)
    return found


def searched(task: Task, *, home: Path, device: str, **more: Any) -> Summary:
    """One search by rules alone, with what more the settings say."""
    settings = resolve({"device": device, "llm": "none", "home": str(home), **more})
    return optimize(task, settings).summary


def row_of(name: str, summary: Summary) -> Row:
    """What a search found, and the seconds of the best program so far after each evaluation."""
    best: list[float] = []
    steps = summary.trajectory.steps
    for step in steps:
        measured = step.evaluation.measurement if step.evaluation.verdict.passed else None
        seconds = measured.seconds if measured is not None else float("inf")
        best.append(min([seconds, *best[-1:]]))
    return {
        "task": name,
        "program": steps[0].candidate.digest,
        "speedup": round(summary.speedup, 4),
        "title": summary.winner.candidate.proposal.title,
        "best_so_far": [float(f"{s:.6g}") if s < float("inf") else None for s in best],
        "wall_s": round(summary.wall_seconds, 2),
        "notes": [note for note in summary.notes if note.startswith("experience")],
    }
