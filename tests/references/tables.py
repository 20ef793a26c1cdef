"""Maps, broadcasts, reductions, statistics and products of tables."""

from __future__ import annotations

from typing import Any

import numpy as np

from tests.references.entry import Entry, Values, matrix, pair, uniform, vector

Rng = np.random.Generator


def axpy(x: Any, y: Any) -> Any:
    return 2.5 * x + y


def polynomial(x: Any) -> Any:
    return ((0.5 * x - 1.5) * x + 2.0) * x**3 - x**-2.0 * 0.01


def sigmoid_clipped(x: Any) -> Any:
    return np.clip(1 / (1 + np.exp(-4 * x)), 0.1, 0.9)


def polar(x: Any, y: Any) -> Any:
    return np.hypot(x, y), np.arctan2(y, x)


def quantised(x: Any) -> Any:
    return np.clip(np.round(x * 127), -128, 127).astype(np.int8)


def fahrenheit(degrees: Any) -> Any:
    return np.where(degrees > 0, degrees * 9 // 5 + 32, 32 - abs(degrees) % 7)


def outer_kernel(x: Any, y: Any) -> Any:
    return np.exp(-((x[:, None] - y) ** 2))


def scaled_rows(x: Any, scale: Any, shift: Any) -> Any:
    return x * scale[:, None] + shift


def row_sums(x: Any) -> Any:
    return x.sum(axis=1)


def column_maxima(x: Any) -> Any:
    return x.max(axis=0)


def whole_mean(x: Any) -> Any:
    return x.mean()


def any_above(x: Any) -> Any:
    return (x > 0.9).any(axis=1), np.count_nonzero(x > 0.5, axis=0)


def spread(x: Any) -> Any:
    return x.max(axis=1) - x.min(axis=1), np.linalg.norm(x, axis=1)


def standardised(x: Any) -> Any:
    return (x - x.mean(axis=0)) / x.std(axis=0)


def covariance(x: Any) -> Any:
    centred = x - x.mean(axis=0)
    return centred.T @ centred / (len(x) - 1)


def correlation(x: Any, y: Any) -> Any:
    a, b = x - x.mean(), y - y.mean()
    return (a * b).sum() / np.sqrt((a * a).sum() * (b * b).sum())


def moments(x: Any) -> Any:
    mean = x.mean(axis=1)
    apart = x - mean[:, None]
    return {"mean": mean, "variance": (apart**2).mean(axis=1), "skew": (apart**3).mean(axis=1)}


def product(a: Any, b: Any) -> Any:
    return a @ b


def bilinear(x: Any, w: Any, y: Any) -> Any:
    return np.einsum("bi,ij,bj->b", x, w, y)


def gram(x: Any) -> Any:
    return np.tril(x @ x.T)


def batched(a: Any, b: Any) -> Any:
    return np.matmul(a, b).transpose(0, 2, 1)


def _scaled(rng: Rng, n: int, m: int) -> Values:
    return {"x": uniform(rng, n, m), "scale": uniform(rng, n), "shift": uniform(rng, m)}


def _degrees(rng: Rng, n: int) -> Values:
    return {"degrees": rng.integers(-90, 90, n).astype(np.int32)}


def _two(rng: Rng, n: int, m: int) -> Values:
    return {"x": uniform(rng, n), "y": uniform(rng, m)}


def _product(rng: Rng, n: int, m: int, k: int) -> Values:
    return {"a": uniform(rng, n, k), "b": uniform(rng, k, m)}


def _bilinear(rng: Rng, n: int, m: int) -> Values:
    return {"x": uniform(rng, n, m), "w": uniform(rng, m, m), "y": uniform(rng, n, m)}


def _batched(rng: Rng, count: int, n: int, k: int) -> Values:
    return {"a": uniform(rng, count, n, k), "b": uniform(rng, count, k, n)}


def _positive(rng: Rng, n: int) -> Values:
    return {"x": uniform(rng, n, low=0.5, high=2.0)}


REFERENCES = (
    Entry("maps", axpy, pair, {"n": 5000}),
    Entry("maps", polynomial, _positive, {"n": 5000}),
    Entry("maps", sigmoid_clipped, matrix, {"n": 70, "m": 90}),
    Entry("maps", polar, pair, {"n": 3000}),
    Entry("maps", quantised, matrix, {"n": 60, "m": 50}),
    Entry("maps", fahrenheit, _degrees, {"n": 3000}),
    Entry("broadcasts", outer_kernel, _two, {"n": 100, "m": 130}),
    Entry("broadcasts", scaled_rows, _scaled, {"n": 80, "m": 96}),
    Entry("reductions", row_sums, matrix, {"n": 130, "m": 257}),
    Entry("reductions", column_maxima, matrix, {"n": 257, "m": 130}),
    Entry("reductions", whole_mean, vector, {"n": 30000}),
    Entry("reductions", any_above, matrix, {"n": 65, "m": 70}),
    Entry("reductions", spread, matrix, {"n": 65, "m": 170}),
    Entry("statistics", standardised, matrix, {"n": 120, "m": 70}),
    Entry("statistics", covariance, matrix, {"n": 120, "m": 40}),
    Entry("statistics", correlation, pair, {"n": 20000}),
    Entry("statistics", moments, matrix, {"n": 90, "m": 110}),
    Entry("products", product, _product, {"n": 65, "m": 70, "k": 50}),
    Entry("products", bilinear, _bilinear, {"n": 70, "m": 30}),
    Entry("products", gram, matrix, {"n": 66, "m": 40}),
    Entry("products", batched, _batched, {"count": 3, "n": 35, "k": 20}),
)
