"""The tasks of the pairs, with sizes for the emulated device and for a card."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from optiml_magic.model.task import Task
from optiml_magic.testing.findings import Pair

Values = dict[str, Any]
Sizes = dict[str, int]


def _uniform(rng: np.random.Generator, *shape: int) -> np.ndarray[Any, np.dtype[np.float32]]:
    return rng.uniform(0.5, 0.9, shape).astype(np.float32)


def _vector(rng: np.random.Generator, n: int) -> Values:
    return {"x": _uniform(rng, n)}


def _longer(rng: np.random.Generator, n: int) -> Values:
    return {"x": _uniform(rng, n + 1)}


def _matrix(rng: np.random.Generator, rows: int, cols: int) -> Values:
    return {"a": _uniform(rng, rows, cols)}


def _matrices(rng: np.random.Generator, m: int, n: int, depth: int) -> Values:
    return {"a": _uniform(rng, m, depth), "b": _uniform(rng, depth, n)}


def _halves(rng: np.random.Generator, m: int, n: int, depth: int) -> Values:
    found = _matrices(rng, m, n, depth)
    return {name: array.astype(np.float16) for name, array in found.items()}


def _filter(rng: np.random.Generator, n: int) -> Values:
    return {"x": _uniform(rng, n + 15), "w": _uniform(rng, 16)}


def _values(rng: np.random.Generator, n: int) -> Values:
    return {"values": rng.integers(0, 16, n, dtype=np.int32)}


def _divided(rng: np.random.Generator, n: int) -> Values:
    return {"x": _uniform(rng, n), "d": np.float32(rng.uniform(1.5, 2.5))}


def _rotated(rng: np.random.Generator, n: int) -> Values:
    return {"x": _uniform(rng, 16, n), "shift": np.int32(rng.integers(1, 16))}


def _columns(rng: np.random.Generator, n: int) -> Values:
    return {"x": _uniform(rng, 112, n)}


def _filters(x: Any) -> Any:
    states = [np.zeros_like(x) for _ in range(8)]
    for at in range(160):
        value = x + at
        for number in range(8):
            value = states[number] = 0.5 * states[number] + 0.5 * value
    return states[-1]


def _ways(x: Any) -> Any:
    even, odd = x[0::2].copy(), x[1::2].copy()
    for _ in range(64):
        even = 0.5 * even * even + 0.1
        odd = 0.75 * odd + 0.25
    return np.stack([even, odd], axis=1).reshape(-1)


_TABLE: Mapping[str, tuple[Callable[..., Any], Callable[..., Values], Sizes, Sizes]] = {
    "scale": (lambda x: 2 * x + 1, _vector, {"n": 1 << 18}, {"n": 1 << 20}),
    "scale_many": (lambda x: 2 * x + 1, _vector, {"n": 1 << 20}, {"n": 1 << 24}),
    "scale_all": (lambda x: 2 * x + 1, _vector, {"n": 1 << 21}, {"n": 1 << 26}),
    "scale_few": (lambda x: 2 * x + 1, _vector, {"n": 4096}, {"n": 4096}),
    "scale_matrix": (lambda a: 2 * a, _matrix, {"rows": 512, "cols": 512},
                     {"rows": 4096, "cols": 4096}),
    "shifted": (lambda x: 2 * x[1:], _longer, {"n": 1 << 18}, {"n": 1 << 22}),
    "far_sum": (lambda x: x + np.roll(x, -(x.size // 2)), _vector, {"n": 1 << 21}, {"n": 1 << 25}),
    "transpose": (lambda a: a.T, _matrix, {"rows": 512, "cols": 512},
                  {"rows": 4096, "cols": 4096}),
    "scan": (lambda a: a.cumsum(axis=1), _matrix, {"rows": 264, "cols": 1024},
             {"rows": 4096, "cols": 1024}),
    "matmul": (lambda a, b: a @ b, _matrices, {"m": 128, "n": 128, "depth": 128},
               {"m": 1024, "n": 1024, "depth": 1024}),
    "half_matmul": (lambda a, b: a @ b, _halves, {"m": 128, "n": 128, "depth": 128},
                    {"m": 1024, "n": 1024, "depth": 1024}),
    "filter": (lambda x, w: np.convolve(x, w[::-1], "valid"), _filter, {"n": 1 << 17},
               {"n": 1 << 22}),
    "histogram": (lambda values: np.bincount(values, minlength=16), _values, {"n": 1 << 18},
                  {"n": 1 << 22}),
    "ways": (_ways, _vector, {"n": 1 << 18}, {"n": 1 << 22}),
    "divided": (lambda x, d: 32 * x / d + 496 / d, _divided, {"n": 1 << 18}, {"n": 1 << 22}),
    "rotated": (lambda x, shift: np.roll(x, -int(shift), axis=0), _rotated, {"n": 1 << 15},
                {"n": 1 << 18}),
    "weighted": (lambda x: x * x.sum(axis=0), _columns, {"n": 1 << 13}, {"n": 1 << 16}),
    "filters": (_filters, _vector, {"n": 1 << 16}, {"n": 1 << 18}),
    "series_few": (lambda x: 0.5 / (1 - x), _vector, {"n": 4096}, {"n": 4096}),
    "series": (lambda x: 0.5 / (1 - x), _vector, {"n": 45056}, {"n": 1 << 20}),
    "series_tail": (lambda x: 0.5 / (1 - x), _vector, {"n": 45056}, {"n": 297_216}),
}  # fmt: skip
TASKS = tuple(_TABLE)


def task(found: Pair, family: str) -> Task:
    """The task of a pair with the faulty kernel, in the sizes of a family of devices."""
    reference, inputs, emulated, card = _TABLE[found.task]
    return Task(
        kernel=found.faulty,
        reference=reference,
        inputs=inputs,
        sizes=card if family == "cuda" else emulated,
        outputs={"bins": "i4[16]"} if found.task == "histogram" else {},
        name=found.name,
    )
