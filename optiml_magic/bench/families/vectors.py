"""A matrix times a vector."""

from __future__ import annotations

import numpy as np

from optiml_magic.bench.entry import Entry, Values, uniform
from optiml_magic.bench.floors import Floor


def _along_rows(rng: np.random.Generator, rows: int, cols: int) -> Values:
    return {"a": uniform(rng, rows, cols), "x": uniform(rng, cols), "rows": rows, "cols": cols}


def _along_columns(rng: np.random.Generator, rows: int, cols: int) -> Values:
    return {"a": uniform(rng, rows, cols), "x": uniform(rng, rows), "rows": rows, "cols": cols}


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
)  # fmt: skip
