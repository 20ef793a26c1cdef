"""Very many small problems at once."""

from __future__ import annotations

from typing import Any

import numpy as np

from optiml_magic.bench.entry import Entry, Values, uniform
from optiml_magic.bench.floors import Floor

_HAAR = "NVIDIA/cuda-samples Samples/5_Domain_Specific/dwtHaar1D"
_N = 8
_LENGTH = 512


def _pairs(rng: np.random.Generator, count: int) -> Values:
    return {"a": uniform(rng, count, 4, 4), "b": uniform(rng, count, 4, 4), "count": count}


def _definite(rng: np.random.Generator, count: int) -> Values:
    half = uniform(rng, count, _N, _N)
    a = half @ half.transpose(0, 2, 1) + np.eye(_N, dtype=np.float32)
    return {"a": a, "count": count}


def cholesky(a: Any) -> Any:
    return np.linalg.cholesky(a)


def _signals(rng: np.random.Generator, signals: int) -> Values:
    return {"x": uniform(rng, signals, _LENGTH), "signals": signals}


def haar(x: Any) -> Any:
    out, average = np.zeros_like(x), x
    while average.shape[1] > 1:
        even, odd = average[:, ::2], average[:, 1::2]
        average = (even + odd) * 0.70710678
        out[:, average.shape[1] : 2 * average.shape[1]] = (even - odd) * 0.70710678
    out[:, 0] = average[:, 0]
    return out


TASKS = (
    Entry(
        "small_products", "small", lambda a, b: a @ b, _pairs,
        full={"count": 1 << 20}, small={"count": 4096}, checked={"count": 1003},
        floor=lambda count: Floor(192 * count, flops=128 * count),
        torch=lambda t, a, b: t.bmm(a, b), libraries={"cuBLAS": lambda cp, a, b: cp.matmul(a, b)},
    ),
    Entry(
        "cholesky", "small", cholesky, _definite,
        full={"count": 1 << 19}, small={"count": 1024}, checked={"count": 261},
        # The upper half is read by nobody, and all of the result is written.
        floor=lambda count: Floor(
            4 * (_N * (_N + 1) // 2 + _N * _N) * count, flops=_N**3 // 3 * count, special=_N * count
        ),
        outputs={"lower": "f4[count, 8, 8]"},
        torch=lambda t, a: t.linalg.cholesky_ex(a).L,
    ),
    Entry(
        "haar", "small", haar, _signals,
        full={"signals": 1 << 16}, small={"signals": 128}, checked={"signals": 17},
        floor=lambda signals: Floor(8 * _LENGTH * signals, flops=4 * _LENGTH * signals),
        source=_HAAR,
    ),
)  # fmt: skip
