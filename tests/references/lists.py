"""Gathers, scatters, running sums, order, pairs and loops."""

from __future__ import annotations

from typing import Any

import numpy as np

from tests.references.entry import Entry, Values, matrix, uniform, vector

Rng = np.random.Generator


def looked_up(indices: Any, table: Any) -> Any:
    return table[indices] * 0.5


def nearest(x: Any, grid: Any) -> Any:
    return grid[np.argmin(abs(x[:, None] - grid), axis=1)]


def permuted(x: Any, order: Any) -> Any:
    return x[:, order]


def histogram(values: Any) -> Any:
    return np.bincount(values, minlength=64)


def segment_sums(values: Any, segments: Any, count: Any) -> Any:
    sums = np.zeros(count, np.float32)
    np.add.at(sums, segments, values)
    return sums


def weighted_counts(values: Any, weights: Any) -> Any:
    return np.bincount(values, weights=weights, minlength=32)


def running_total(x: Any) -> Any:
    return np.cumsum(x, axis=1)


def running_best(x: Any) -> Any:
    return np.maximum.accumulate(x)


def discounted(x: Any) -> Any:
    total = np.zeros(x.shape[0], np.float32)
    for step in range(5):
        total = 0.9 * total + x[:, step]
    return total


def sorted_rows(x: Any) -> Any:
    return np.sort(x, axis=1)


def top_places(x: Any) -> Any:
    return np.argsort(-x, axis=1, kind="stable")[:, :5]


def best_place(x: Any) -> Any:
    return x.argmax(axis=1), x.argmin()


def distances(a: Any, b: Any) -> Any:
    return np.sqrt(((a[:, None] - b[None]) ** 2).sum(axis=-1))


def gravity(where: Any, mass: Any) -> Any:
    apart = where[None] - where[:, None]
    near = (apart**2).sum(axis=-1) + 0.01
    return (apart * (mass / near**1.5)[..., None]).sum(axis=1)


def newton_root(x: Any) -> Any:
    guess = np.ones_like(x)
    for _ in range(12):
        guess = 0.5 * (guess + x / guess)
    return guess


def mandelbrot(re: Any, im: Any) -> Any:
    x, y = np.zeros_like(re), np.zeros_like(re)
    count = np.zeros(re.shape, np.int32)
    for _ in range(8):
        inside = x * x + y * y < 4
        x, y = np.where(inside, x * x - y * y + re, x), np.where(inside, 2 * x * y + im, y)
        count += inside
    return count


def interpolated(x: Any, places: Any, values: Any) -> Any:
    return np.interp(x, places, values)


def upper_quartile(x: Any) -> Any:
    return np.percentile(x, 75, axis=1)


def binned(x: Any) -> Any:
    counts, edges = np.histogram(x, bins=20, range=(-1, 1))
    return counts, edges


def _looked_up(rng: Rng, n: int, count: int) -> Values:
    return {"indices": rng.integers(0, count, n).astype(np.int32), "table": uniform(rng, count)}


def _grid(rng: Rng, n: int, m: int) -> Values:
    return {"x": uniform(rng, n), "grid": np.linspace(-1, 1, m, dtype=np.float32)}


def _permuted(rng: Rng, n: int, m: int) -> Values:
    return {"x": uniform(rng, n, m), "order": rng.permutation(m)}


def _values(rng: Rng, n: int) -> Values:
    return {"values": rng.integers(0, 64, n)}


def _segments(rng: Rng, n: int, count: int) -> Values:
    return {"values": uniform(rng, n), "segments": rng.integers(0, count, n)}


def _weighted(rng: Rng, n: int) -> Values:
    return {"values": rng.integers(0, 32, n), "weights": rng.uniform(0, 1, n)}


def _steps(rng: Rng, n: int) -> Values:
    return {"x": uniform(rng, n, 5)}


def _points(rng: Rng, n: int, m: int) -> Values:
    return {"a": uniform(rng, n, 3), "b": uniform(rng, m, 3)}


def _bodies(rng: Rng, n: int) -> Values:
    return {"where": uniform(rng, n, 3), "mass": uniform(rng, n, low=0.1)}


def _positive(rng: Rng, n: int) -> Values:
    return {"x": uniform(rng, n, low=0.1, high=9.0)}


def _plane(rng: Rng, n: int, m: int) -> Values:
    return {"re": uniform(rng, n, m, low=-2.0), "im": uniform(rng, n, m)}


def _curve(rng: Rng, n: int, m: int) -> Values:
    places = np.cumsum(uniform(rng, m, low=0.1, high=0.2)) - 1
    return {"x": uniform(rng, n), "places": places, "values": uniform(rng, m)}


REFERENCES = (
    Entry("gathers", looked_up, _looked_up, {"n": 3000, "count": 100}),
    Entry("gathers", nearest, _grid, {"n": 500, "m": 40}),
    Entry("gathers", permuted, _permuted, {"n": 60, "m": 70}),
    Entry("lookups", interpolated, _curve, {"n": 800, "m": 14}),
    Entry("lookups", upper_quartile, matrix, {"n": 40, "m": 60}),
    Entry("lookups", binned, vector, {"n": 3000}),
    Entry("scatters", histogram, _values, {"n": 5000}),
    Entry("scatters", segment_sums, _segments, {"n": 4000, "count": 50}),
    Entry("scatters", weighted_counts, _weighted, {"n": 3000}),
    Entry("scans", running_total, matrix, {"n": 70, "m": 100}),
    Entry("scans", running_best, vector, {"n": 3000}),
    Entry("scans", discounted, _steps, {"n": 2000}),
    Entry("order", sorted_rows, matrix, {"n": 40, "m": 60}),
    Entry("order", top_places, matrix, {"n": 40, "m": 60}),
    Entry("order", best_place, matrix, {"n": 70, "m": 80}),
    Entry("pairs", distances, _points, {"n": 60, "m": 70}),
    Entry("pairs", gravity, _bodies, {"n": 90}),
    Entry("loops", newton_root, _positive, {"n": 3000}),
    Entry("loops", mandelbrot, _plane, {"n": 40, "m": 50}),
)
