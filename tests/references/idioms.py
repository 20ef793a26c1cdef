"""What researchers write: closures and classes of helpers, signals, geometry, grids, masks."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial, reduce
from typing import Any

import numpy as np

from tests.references.entry import Entry, Values, matrix, uniform, vector

Rng = np.random.Generator


@dataclass(frozen=True)
class _Scaler:
    """A helper of which the reference holds one."""

    low: float
    high: float

    def __call__(self, x: Any) -> Any:
        span = x.max(axis=1, keepdims=True) - x.min(axis=1, keepdims=True)
        return self.low + (self.high - self.low) * (x - x.min(axis=1, keepdims=True)) / span


_SCALER = _Scaler(-1.0, 1.0)


def min_max(x: Any) -> Any:
    return _SCALER.__call__(x)


def _composed(*steps: Callable[[Any], Any]) -> Callable[[Any], Any]:
    return lambda x: reduce(lambda held, step: step(held), steps, x)


_PIPELINE = _composed(np.tanh, partial(np.multiply, 2.0), lambda x: x - np.mean(x, axis=0))


def piped(x: Any) -> Any:
    return _PIPELINE(x)


def mahalanobis(x: Any, mean: Any, precision: Any) -> Any:
    apart = x - mean
    return np.sqrt(np.einsum("ni,ij,nj->n", apart, precision, apart))


def cosine(a: Any, b: Any) -> Any:
    ones = a / np.linalg.norm(a, axis=-1, keepdims=True)
    twos = b / np.linalg.norm(b, axis=-1, keepdims=True)
    return np.inner(ones, twos)


def pagerank(links: Any, rank: Any) -> Any:
    flow = links / links.sum(axis=0)
    for _ in range(3):
        rank = 0.85 * (flow @ rank) + 0.15 / rank.size
    return rank


def power_iteration(a: Any, v: Any) -> Any:
    for _ in range(3):
        v = a @ v
        v /= np.linalg.norm(v)
    return v, v @ a @ v


def matrix_cube(a: Any) -> Any:
    return np.linalg.matrix_power(a, 3)


def chain(a: Any, b: Any, c: Any) -> Any:
    return np.linalg.multi_dot([a, b, c])


def block_diagonal(a: Any, b: Any) -> Any:
    zeros = np.zeros((a.shape[0], b.shape[1]), a.dtype)
    return np.block([[a, zeros], [zeros.T, b]])


def kronecker(a: Any, b: Any) -> Any:
    return np.kron(a, b)


def toeplitz(x: Any) -> Any:
    n = x.shape[0]
    return x[np.abs(np.subtract.outer(np.arange(n), np.arange(n)))]


def circulant(x: Any, y: Any) -> Any:
    n = len(x)
    return x[(np.arange(n)[:, None] - np.arange(n)) % n] @ y


def total_variation(image: Any) -> Any:
    return np.abs(np.diff(image, axis=0)).sum() + np.abs(np.diff(image, axis=1)).sum()


def laplacian(u: Any) -> Any:
    out = np.zeros_like(u)
    out[1:-1, 1:-1] = (
        np.roll(u, 1, 0) + np.roll(u, -1, 0) + np.roll(u, 1, 1) + np.roll(u, -1, 1) - 4 * u
    )[1:-1, 1:-1]
    return out


def gradient_energy(image: Any) -> Any:
    gy, gx = np.gradient(image)
    return np.hypot(gx, gy).mean()


def smoothed(x: Any) -> Any:
    return np.convolve(x, np.ones(7, np.float32) / 7, mode="same")


def windowed(frames: Any) -> Any:
    return frames * np.hanning(frames.shape[-1])


def fourier_power(x: Any) -> Any:
    n = x.shape[-1]
    phase = 2 * np.pi * np.outer(np.arange(n), np.arange(n)) / n
    return (x @ np.cos(phase)) ** 2 + (x @ np.sin(phase)) ** 2


def zero_crossings(x: Any) -> Any:
    return np.count_nonzero(np.diff(np.signbit(x), axis=1), axis=1)


def area(x: Any, y: Any) -> Any:
    return 0.5 * np.abs(np.dot(x, np.roll(y, -1)) - np.dot(y, np.roll(x, -1)))


def integral(y: Any) -> Any:
    return np.trapezoid(y, dx=0.01, axis=-1)


def normals(a: Any, b: Any, c: Any) -> Any:
    across = np.cross(b - a, c - a)
    return across / np.linalg.norm(across, axis=1)[:, np.newaxis]


def rotated(points: Any, angle: Any) -> Any:
    c, s = np.cos(angle), np.sin(angle)
    turn = np.array([[c, -s], [s, c]])
    return points @ turn.T


def radial_mask(image: Any) -> Any:
    n, m = image.shape
    rows, cols = np.ogrid[:n, :m]
    inside = (rows - n / 2) ** 2 + (cols - m / 2) ** 2 < (min(n, m) / 3) ** 2
    return np.where(inside, image, 0)


def coordinate_map(n: Any, m: Any, x: Any) -> Any:
    grid = np.mgrid[0:n, 0:m]
    return np.sin(grid[0] / n) * np.cos(grid[1] / m) + x


def checkers(x: Any) -> Any:
    return x * (np.indices(x.shape).sum(axis=0) % 2)


def plane(x: Any) -> Any:
    return np.fromfunction(lambda row, col: 2 * row - col, x.shape) + x


def rows_centred(x: Any) -> Any:
    return np.apply_along_axis(lambda row: row - np.median(row), 1, x)


def logistic_steps(x: Any) -> Any:
    def step(value: Any) -> Any:
        for _ in range(4):
            value = 3.7 * value * (1 - value)
        return value

    return np.vectorize(step)(x)


def one_hot(labels: Any, x: Any) -> Any:
    out = np.zeros((labels.shape[0], x.shape[1]), dtype=np.float32)
    out[np.arange(labels.shape[0]), labels] = 1
    return out - x


def masked_mean(x: Any, keep: Any) -> Any:
    return np.where(keep, x, 0).sum(axis=1) / np.maximum(keep.sum(axis=1), 1)


def missing(x: Any) -> Any:
    found = np.where(x > 0.8, np.nan, x)
    return np.nanmean(found, axis=1), np.nan_to_num(found, nan=-1.0), np.isnan(found).sum()


def weighted_rows(x: Any, weights: Any) -> Any:
    return np.average(x, axis=1, weights=weights), np.var(x, axis=1, ddof=1)


def robust_scale(x: Any) -> Any:
    low, middle, high = np.percentile(x, [25, 50, 75], axis=0)
    return (x - middle) / (high - low)


def binned_levels(x: Any, edges: Any) -> Any:
    return np.digitize(x, edges), np.searchsorted(edges, x, side="right")


def edge_counts(x: Any) -> Any:
    counts, _ = np.histogram(x, bins=np.array([-1.0, -0.5, 0.0, 0.25, 1.0]))
    return counts / counts.sum()


def drawdown(prices: Any) -> Any:
    peak = np.maximum.accumulate(prices, axis=1)
    return ((peak - prices) / peak).max(axis=1)


def cumulative_returns(x: Any) -> Any:
    return np.cumprod(1 + 0.01 * x, axis=1)


def running_softmax(x: Any) -> Any:
    return np.logaddexp.accumulate(x, axis=1)


def bits(x: Any) -> Any:
    return np.packbits(x > 0, axis=1)


def hashes(keys: Any) -> Any:
    keys = keys ^ (keys >> 16)
    keys = keys * np.uint32(0x45D9F3B)
    return (keys ^ (keys >> 16)) & np.uint32(0xFF)


def ordered_pairs(major: Any, minor: Any) -> Any:
    return np.lexsort((minor, major), axis=-1)


def dithered(image: Any) -> Any:
    bayer = np.array([[0, 8, 2, 10], [12, 4, 14, 6], [3, 11, 1, 9], [15, 7, 13, 5]]) / 16
    n, m = image.shape
    return (image > np.tile(bayer, (n // 4, m // 4))).astype(np.uint8)


def polynomial_features(x: Any) -> Any:
    upper = np.triu_indices(3)
    return np.stack([x[:, i] * x[:, j] for i, j in zip(*upper, strict=True)], axis=1)


def _three(rng: Rng, n: int) -> Values:
    return {name: uniform(rng, n, 3) for name in "abc"}


def _mahalanobis(rng: Rng, n: int, d: int) -> Values:
    root = uniform(rng, d, d)
    return {
        "x": uniform(rng, n, d),
        "mean": uniform(rng, d),
        "precision": root @ root.T + np.eye(d, dtype=np.float32),
    }


def _two(rng: Rng, n: int, m: int, d: int) -> Values:
    return {"a": uniform(rng, n, d), "b": uniform(rng, m, d)}


def _links(rng: Rng, n: int) -> Values:
    return {"links": uniform(rng, n, n, low=0.1), "rank": uniform(rng, n, low=0.1)}


def _square(rng: Rng, n: int) -> Values:
    return {"a": uniform(rng, n, n), "v": uniform(rng, n, low=0.1)}


def _cube(rng: Rng, n: int) -> Values:
    return {"a": uniform(rng, n, n)}


def _chain(rng: Rng, n: int, m: int, k: int) -> Values:
    return {"a": uniform(rng, n, m), "b": uniform(rng, m, k), "c": uniform(rng, k, n)}


def _blocks(rng: Rng, n: int, m: int) -> Values:
    return {"a": uniform(rng, n, n), "b": uniform(rng, m, m)}


def _kronecker(rng: Rng, n: int, m: int) -> Values:
    return {"a": uniform(rng, n, m), "b": uniform(rng, 3, 4)}


def _pair(rng: Rng, n: int) -> Values:
    return {"x": uniform(rng, n), "y": uniform(rng, n)}


def _image(rng: Rng, n: int, m: int) -> Values:
    return {"image": uniform(rng, n, m, low=0.0)}


def _grid(rng: Rng, n: int, m: int) -> Values:
    return {"u": uniform(rng, n, m)}


def _frames(rng: Rng, n: int, m: int) -> Values:
    return {"frames": uniform(rng, n, m)}


def _samples(rng: Rng, n: int, m: int) -> Values:
    return {"y": uniform(rng, n, m)}


def _points(rng: Rng, n: int) -> Values:
    return {"points": uniform(rng, n, 2), "angle": 0.7}


def _map(rng: Rng, n: int, m: int) -> Values:
    return {"n": n, "m": m, "x": uniform(rng, n, m)}


def _share(rng: Rng, n: int, m: int) -> Values:
    return {"x": uniform(rng, n, m, low=0.1, high=0.9)}


def _labels(rng: Rng, n: int, m: int) -> Values:
    return {"labels": rng.integers(0, m, n), "x": uniform(rng, n, m)}


def _kept(rng: Rng, n: int, m: int) -> Values:
    return {"x": uniform(rng, n, m), "keep": rng.random((n, m)) < 0.6}


def _weights(rng: Rng, n: int, m: int) -> Values:
    return {"x": uniform(rng, n, m), "weights": uniform(rng, m, low=0.1)}


def _edges(rng: Rng, n: int, m: int) -> Values:
    return {"x": uniform(rng, n), "edges": np.linspace(-1, 1, m, dtype=np.float32)}


def _prices(rng: Rng, n: int, m: int) -> Values:
    return {"prices": uniform(rng, n, m, low=1.0, high=2.0)}


def _keys(rng: Rng, n: int) -> Values:
    return {"keys": rng.integers(0, 2**32, n).astype(np.uint32)}


def _order(rng: Rng, n: int, m: int) -> Values:
    return {name: rng.integers(0, 4, (n, m)).astype(np.int32) for name in ("major", "minor")}


def _fours(rng: Rng, rows: int, cols: int) -> Values:
    return {"image": uniform(rng, 4 * rows, 4 * cols, low=0.0)}


def _triples(rng: Rng, n: int) -> Values:
    return {"x": uniform(rng, n, 3)}


REFERENCES = (
    Entry("helpers", min_max, matrix, {"n": 40, "m": 60}),
    Entry("helpers", piped, matrix, {"n": 40, "m": 60}),
    Entry("helpers", rows_centred, matrix, {"n": 30, "m": 41}),
    Entry("helpers", logistic_steps, _share, {"n": 40, "m": 60}),
    Entry("linear algebra", mahalanobis, _mahalanobis, {"n": 60, "d": 12}),
    Entry("linear algebra", cosine, _two, {"n": 30, "m": 40, "d": 24}),
    Entry("linear algebra", pagerank, _links, {"n": 48}),
    Entry("linear algebra", power_iteration, _square, {"n": 40}),
    Entry("linear algebra", matrix_cube, _cube, {"n": 24}),
    Entry("linear algebra", chain, _chain, {"n": 20, "m": 30, "k": 25}),
    Entry("linear algebra", block_diagonal, _blocks, {"n": 20, "m": 30}),
    Entry("linear algebra", kronecker, _kronecker, {"n": 12, "m": 9}),
    Entry("linear algebra", toeplitz, vector, {"n": 60}),
    Entry("linear algebra", circulant, _pair, {"n": 60}),
    Entry("images", total_variation, _image, {"n": 50, "m": 60}),
    Entry("images", gradient_energy, _image, {"n": 40, "m": 50}),
    Entry("images", dithered, _fours, {"rows": 10, "cols": 12}),
    Entry("images", radial_mask, _image, {"n": 50, "m": 60}),
    Entry("stencils", laplacian, _grid, {"n": 50, "m": 60}),
    Entry("signals", smoothed, vector, {"n": 2000}),
    Entry("signals", windowed, _frames, {"n": 40, "m": 64}),
    Entry("signals", fourier_power, matrix, {"n": 20, "m": 32}),
    Entry("signals", zero_crossings, matrix, {"n": 40, "m": 90}),
    Entry("signals", integral, _samples, {"n": 40, "m": 90}),
    Entry("geometry", area, _pair, {"n": 2000}),
    Entry("geometry", normals, _three, {"n": 500}),
    Entry("geometry", rotated, _points, {"n": 800}),
    Entry("grids", coordinate_map, _map, {"n": 40, "m": 50}),
    Entry("grids", checkers, matrix, {"n": 40, "m": 50}),
    Entry("grids", plane, matrix, {"n": 40, "m": 50}),
    Entry("masks", one_hot, _labels, {"n": 60, "m": 20}),
    Entry("masks", masked_mean, _kept, {"n": 40, "m": 70}),
    Entry("masks", missing, matrix, {"n": 40, "m": 70}),
    Entry("statistics", weighted_rows, _weights, {"n": 40, "m": 70}),
    Entry("statistics", robust_scale, matrix, {"n": 41, "m": 30}),
    Entry("statistics", edge_counts, vector, {"n": 3000}),
    Entry("lookups", binned_levels, _edges, {"n": 1500, "m": 11}),
    Entry("scans", drawdown, _prices, {"n": 40, "m": 70}),
    Entry("scans", cumulative_returns, matrix, {"n": 40, "m": 70}),
    Entry("scans", running_softmax, matrix, {"n": 40, "m": 70}),
    Entry("bits", bits, matrix, {"n": 40, "m": 61}),
    Entry("bits", hashes, _keys, {"n": 3000}),
    Entry("order", ordered_pairs, _order, {"n": 30, "m": 40}),
    Entry("helpers", polynomial_features, _triples, {"n": 900}),
)
