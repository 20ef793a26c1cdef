"""A matrix times a vector, or two."""

from __future__ import annotations

from typing import Any

import numpy as np

from optiml_magic.bench.entry import Entry, Values, uniform
from optiml_magic.bench.floors import Floor

_GESUMMV = "PolyBench-GPU CUDA/GESUMMV"


def _along_rows(rng: np.random.Generator, rows: int, cols: int) -> Values:
    return {"a": uniform(rng, rows, cols), "x": uniform(rng, cols), "rows": rows, "cols": cols}


def _along_columns(rng: np.random.Generator, rows: int, cols: int) -> Values:
    return {"a": uniform(rng, rows, cols), "x": uniform(rng, rows), "rows": rows, "cols": cols}


def _two(rng: np.random.Generator, n: int) -> Values:
    scalars = {"alpha": np.float32(1.5), "beta": np.float32(1.2), "n": n}
    return {"a": uniform(rng, n, n), "b": uniform(rng, n, n), "x": uniform(rng, n), **scalars}


def gesummv(a: Any, b: Any, x: Any, alpha: Any, beta: Any) -> Any:
    return alpha * (a @ x) + beta * (b @ x)


def _floor(rows: int, cols: int) -> Floor:
    return Floor(4 * (rows * cols + rows + cols), flops=2 * rows * cols)


TASKS = (
    Entry(
        "gemv", "vectors", lambda a, x: a @ x, _along_rows,
        full={"rows": 16384, "cols": 4096}, small={"rows": 512, "cols": 256},
        checked={"rows": 132, "cols": 260}, floor=_floor,
        torch=lambda t, a, x: t.mv(a, x), libraries={"cuBLAS": lambda _, a, x: a @ x},
    ),
    Entry(
        "gemv_transposed", "vectors", lambda a, x: a.T @ x, _along_columns,
        full={"rows": 16384, "cols": 4096}, small={"rows": 512, "cols": 256},
        checked={"rows": 260, "cols": 132}, floor=_floor,
        torch=lambda t, a, x: t.mv(a.t(), x), libraries={"cuBLAS": lambda _, a, x: a.T @ x},
    ),
    Entry(
        "gesummv", "vectors", gesummv, _two,
        full={"n": 6144}, small={"n": 256}, checked={"n": 260},
        floor=lambda n: Floor(8 * n * (n + 1), flops=4 * n * n),
        torch=lambda t, a, b, x, alpha, beta: alpha * t.mv(a, x) + beta * t.mv(b, x),
        libraries={"cuBLAS": lambda _, a, b, x, alpha, beta: alpha * (a @ x) + beta * (b @ x)},
        outputs={"y": "f4[n]"}, source=_GESUMMV,
    ),
)  # fmt: skip
