"""The tasks of the cheats: small, and with inputs that a cheat can take advantage of."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from optiml_magic.model.task import Task

_FOLDER = Path(__file__).parent / "inputs"
Values = dict[str, Any]


def _positive(rng: np.random.Generator, *shape: int) -> np.ndarray[Any, np.dtype[np.float32]]:
    return rng.uniform(0.5, 1.5, shape).astype(np.float32)


def _vector(rng: np.random.Generator, n: int) -> Values:
    return {"x": _positive(rng, n)}


def _doubles(rng: np.random.Generator, n: int) -> Values:
    return {"x": rng.uniform(0.5, 1.5, n)}


def _matrix(rng: np.random.Generator, rows: int, cols: int) -> Values:
    return {"a": _positive(rng, rows, cols)}


def _repeated(rng: np.random.Generator, rows: int, cols: int) -> Values:
    return {"a": np.tile(rng.random((1, cols)) < 0.5, (rows, 1))}


def _matrices(rng: np.random.Generator, m: int, n: int, depth: int) -> Values:
    return {"a": _positive(rng, m, depth), "b": _positive(rng, depth, n)}


def _values(rng: np.random.Generator, n: int) -> Values:
    return {"values": rng.integers(0, 16, n, dtype=np.int32)}


_N = {"n": 4096}
_X = np.random.default_rng(0).uniform(0.5, 1.5, 4096).astype(np.float32)
_INDEX = np.arange(4096, dtype=np.int32)[::-1].copy()
_LONG = {"rows": 64, "cols": 2048}
_SQUARE = {"rows": 64, "cols": 64}
_TABLE: Mapping[str, tuple[Callable[..., Any], Any, dict[str, int]]] = {
    "double": (lambda x: 2 * x + 1, _vector, _N),
    "absolute": (lambda x: np.maximum(x, -x), _vector, _N),
    "root": (lambda x: np.sqrt(np.abs(x)), _vector, _N),
    "exponential": (lambda x: np.e**x, _vector, _N),
    "neighbours": (lambda x: x + np.roll(x, -1), _vector, _N),
    "in_place": (lambda x: 0.5 * x + 1, _vector, _N),
    "quadratic64": (lambda x: x * (1 + x), _doubles, _N),
    "threshold": (lambda x: x > 0.5, _vector, _N),
    "scaled": (lambda x, alpha: alpha * x, {"x": _X, "alpha": 1.5, "n": 4096}, {}),
    "weighted": (lambda x, w: x * w, {"x": _X, "w": np.ones_like(_X), "n": 4096}, {}),
    "biased": (lambda x, bias: x + bias, {"x": _X, "bias": np.zeros_like(_X), "n": 4096}, {}),
    "gather": (lambda x, index: x[index], {"x": _X, "index": _INDEX, "n": 4096}, {}),
    "row_sum": (lambda a: a.sum(axis=1), _matrix, _LONG),
    "argmax": (lambda a: a.argmax(axis=1).astype(np.int32), _matrix, _SQUARE),
    "transpose": (lambda a: a.T, _matrix, _SQUARE),
    "repeated_rows": (lambda a: 2 * a.astype(np.int32), _repeated, _SQUARE),
    "matmul": (lambda a, b: a @ b, _matrices, {"m": 64, "n": 64, "depth": 64}),
    "histogram": (lambda values: np.bincount(values, minlength=16), _values, _N),
}


def task(name: str) -> Task:
    """The task of that name."""
    reference, inputs, sizes = _TABLE[name]
    return Task(
        kernel=_FOLDER / f"{name}.cu",
        reference=reference,
        inputs=inputs,
        sizes=sizes,
        inout=("x",) if name == "in_place" else (),
        outputs={"bins": "i4[16]"} if name == "histogram" else {},
        name=name,
    )
