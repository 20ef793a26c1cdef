"""Known kernels with their references: what tests, benchmarks and the demo run.

Each is a ``.cu`` file beside this one and an entry below. Sizes can be changed with
``dataclasses.replace(task, sizes=...)``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from optiml_magic.model.task import Task

_FOLDER = Path(__file__).parent
Values = dict[str, Any]


def _uniform(rng: np.random.Generator, *shape: int) -> np.ndarray[Any, np.dtype[np.float32]]:
    return rng.uniform(-1.0, 1.0, shape).astype(np.float32)


def _saxpy_inputs(rng: np.random.Generator, n: int) -> Values:
    return {"alpha": np.float32(1.5), "x": _uniform(rng, n), "y": _uniform(rng, n)}


def _matrix(rng: np.random.Generator, rows: int, cols: int) -> Values:
    return {"a": _uniform(rng, rows, cols)}


def _matrices(rng: np.random.Generator, m: int, n: int, k: int) -> Values:
    return {"a": _uniform(rng, m, k), "b": _uniform(rng, k, n)}


def _bytes_of_text(rng: np.random.Generator, n: int) -> Values:
    return {"values": rng.integers(0, 256, n, dtype=np.int32)}


def _logits(rng: np.random.Generator, rows: int, cols: int) -> Values:
    return {"x": 4 * _uniform(rng, rows, cols)}


def saxpy(alpha: Any, x: Any, y: Any) -> Any:
    return alpha * x + y


def transpose(a: Any) -> Any:
    return a.T


def matmul(a: Any, b: Any) -> Any:
    return a @ b


def row_sum(a: Any) -> Any:
    return a.sum(axis=1)


def histogram(values: Any) -> Any:
    return np.bincount(values, minlength=256)


def softmax(x: Any) -> Any:
    exponentials = np.exp(x - x.max(axis=1, keepdims=True))
    return exponentials / exponentials.sum(axis=1, keepdims=True)


_Inputs = Callable[..., Values]
_TABLE: Mapping[str, tuple[Callable[..., Any], _Inputs, dict[str, int]]] = {
    "saxpy": (saxpy, _saxpy_inputs, {"n": 1 << 20}),
    "transpose_naive": (transpose, _matrix, {"rows": 1024, "cols": 1024}),
    "transpose_tiled": (transpose, _matrix, {"rows": 1024, "cols": 1024}),
    "matmul_naive": (matmul, _matrices, {"m": 256, "n": 256, "k": 256}),
    "matmul_tiled": (matmul, _matrices, {"m": 256, "n": 256, "k": 256}),
    "row_sum": (row_sum, _matrix, {"rows": 1024, "cols": 1024}),
    "row_sum_naive": (row_sum, _matrix, {"rows": 4096, "cols": 512}),
    "histogram": (histogram, _bytes_of_text, {"n": 1 << 18}),
    "softmax": (softmax, _logits, {"rows": 512, "cols": 1000}),
}
NAMES = tuple(_TABLE)
DEMO = ("transpose_naive", "matmul_naive", "row_sum_naive")


def known_task(name: str, **sizes: int) -> Task:
    """The task of that name, with some of its sizes changed."""
    reference, inputs, default = _TABLE[name]
    return Task(
        kernel=_FOLDER / f"{name}.cu",
        reference=reference,
        inputs=inputs,
        sizes={**default, **sizes},
        outputs={"bins": "i4[256]"} if name == "histogram" else {},
        name=name,
    )
