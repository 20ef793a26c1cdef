"""Each family of functions: the graph gives what the function gives, at other sizes too."""

from __future__ import annotations

import math
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from numpy.lib.stride_tricks import sliding_window_view

from optiml_magic.synthesis.graph import Contract, Index, Map, Position, Scatter
from tests.unit.synthesis.graphs import agree

MAPS = {
    "operators": lambda x, y: (x + y) * 2 - x / y // 1 % 3,
    "powers": lambda x, y: x**2 + abs(x) ** 0.5 + y**-1 + abs(x) ** y + 2.0 ** -abs(x),
    "compare": lambda x, y: ((x > y) & ~(x == 2)) | (x != x.T.T),
    "where": lambda x, y: np.where(x > 0, x, y).astype(np.float32),
    "clip": lambda x: np.clip(x, -1, 2) + np.round(x / 3, 2) + x.clip(0),
    "special": lambda x: np.exp(-x) + np.tanh(x) + np.log1p(np.abs(x)) + np.hypot(x, 1),
    "size": lambda x, n, m: x * n / m + np.sqrt(m) + math.sqrt(n) + n**-0.5,
    "divmod": lambda x, y: np.divmod(x, y),
    "rows": lambda x, z: x * z[:, None] - z.reshape(-1, 1),
    "shift": lambda at: (at << 2) ^ (at >> 1),
    "outer": lambda x, y: np.add.outer(y, y) + np.multiply.outer(y, y),
}
REDUCTIONS = {
    "sum": lambda x: x.sum() + x.sum(axis=0).sum() + np.sum(x, axis=-1, keepdims=True),
    "extrema": lambda x: np.max(x, axis=1) - x.min(1) + np.ptp(x, axis=1),
    "statistics": lambda x: x.mean(axis=1) + x.var(axis=1) + np.std(x, axis=1, ddof=1),
    "softmax": lambda x: np.exp(x - x.max(1, keepdims=True)) / np.exp(x).sum(axis=1)[:, None],
    "argmax": lambda x: (x.argmax(axis=1), np.argmin(x), np.argmin(x, axis=0)),
    "any": lambda x: (np.any(x > 3, axis=1), (x < 9).all(), np.count_nonzero(x, axis=0)),
    "masked": lambda x: np.sum(x, where=x > 0) + np.max(x, initial=3.0, where=x < 3),
    "cumsum": lambda x: np.cumsum(x, axis=1) + x.cumsum(axis=0) + np.cumsum(x)[-1],
    "running": lambda x: np.maximum.accumulate(x, axis=1) + np.add.reduce(x, axis=0),
    "sort": lambda x: np.sort(x, axis=1)[:, ::-1] + np.argsort(x, axis=1, kind="stable"),
    "norm": lambda x: np.linalg.norm(x, axis=1) + np.linalg.norm(x) + np.nansum(x),
    "halves": lambda x: x.astype(np.float16).mean(axis=1),
}
VIEWS = {
    "slices": lambda x: x[1:-1, ::2].sum() + x[-2:] + x[::-1][:2] - x[2],
    "axes": lambda x: x.T[:, None, :].swapaxes(0, 2).squeeze(1) - x[None][0],
    "reshape": lambda x: x.reshape(-1)[::2].sum() + x.T.reshape(-1) + x.ravel(),
    "merge": lambda x: (x[:, :, None] + x[:, None]).reshape(x.shape[0] * len(x.T), -1),
    "split": lambda x, m: x.reshape(-1).reshape(-1, m) * np.repeat(x, 2, axis=1)[:, ::2],
    "windows": lambda x: sliding_window_view(x, 2, axis=1).sum(axis=-1),
    "roll": lambda x: np.roll(x, 1, axis=1) + np.roll(x, -2) + np.flip(x, 0),
    "tile": lambda x, y: np.tile(y, 2)[: len(y)] + np.tile(x, (2, 1))[len(x) :],
    "pad": lambda x: np.pad(x, 1) + np.pad(x, 1, mode="edge") + np.pad(x, (1, 1), "reflect"),
    "mirrors": lambda x: (
        np.pad(x, ((0, 0), (1, 2)), "symmetric") + np.pad(x, ((0, 0), (3, 0)), "wrap")
    ),
    "gather": lambda x, at: x[:, at] + x[0][at],
    "along": lambda x, at: np.take_along_axis(x, at[:, None], axis=1)[:, 0] + np.take(x[0], at),
    "pairs": lambda x, at, n: x[np.arange(n), at],
    "places": lambda x, at: x[:, None][..., [0, 1, -1]] * 2 + x[0, None, :2][:, :1],
    "diagonal": lambda x: np.diagonal(x, 1)[:2] + np.trace(x) + np.diag(x)[:2],
    "diff": lambda x: np.diff(x, axis=1) + np.diff(x)[:, :1],
    "split_in": lambda x: np.split(np.concatenate([x, x]), 2)[1] + np.moveaxis(x, 0, 1).T,
}
MAKING = {
    "arange": lambda x: np.arange(len(x))[:, None] * x + np.arange(2, 9, 3).sum(),
    "masks": lambda x, n, m: np.tril(x) + np.triu(x, 1) + np.eye(n, m) + np.tri(n, m, dtype=bool),
    "fill": lambda x, n, m: (
        np.full((n, m), 2.5) + np.ones_like(x) + np.zeros(m) + np.identity(m)[0]
    ),
    "linspace": lambda x, m: np.linspace(0, 1, m) + np.linspace(0.0, 2.0, m, endpoint=False) * x,
    "join": lambda x, y: np.concatenate([x, y[None], np.vstack([y, y])]) + np.stack([y, y]).sum(),
    "stack": lambda z: np.stack([z, z * 2, z + 1], axis=1),
    "diag": lambda y: np.diag(y) + np.diag(y[1:], 1),
    "list": lambda y: np.array([y.sum(), y[0], 2.0]) * np.array([1, 2, 3]),
    "grid": lambda x, n, m: np.meshgrid(np.arange(m), np.arange(n))[0] - x,
}
LOOKUPS = {
    "searchsorted": lambda x, y: (
        np.searchsorted(np.sort(y), x) + np.searchsorted(np.sort(y), x, "right")
    ),
    "digitize": lambda x: np.digitize(x, [-2, 0, 3]) + np.digitize(x, np.arange(4), right=True),
    "interp": lambda x, y: np.interp(x, np.cumsum(y), y) + np.interp(x, [0.0, 1.0], [2.0, 3.0]),
    "quantiles": lambda x: np.percentile(x, 30, axis=1) + np.quantile(x, 0.5),
    "histogram": lambda x: np.histogram(x, bins=5, range=(-3, 7))[0],
    "cov": lambda x: np.cov(x) + np.cov(x.T, rowvar=False),
}
PRODUCTS = {
    "matmul": lambda x, y: x @ x.T @ x + x @ y[:, None] @ y[None],
    "batched": lambda x: (x[None] @ np.stack([x.T, x.T * 2])).sum(axis=0),
    "dot": lambda x, y: x.dot(y) + np.inner(x, y) + np.vdot(y, y) + y @ y,
    "tensordot": lambda x: np.tensordot(x, x, axes=([0], [0])) + np.outer(x[0], x[1]),
    "einsum": lambda x, y: np.einsum("ij,kj,j->ki", x, x, y) + np.einsum("...j,...j", x, x),
    "diagonals": lambda x: np.einsum("ii->i", x @ x.T) + np.einsum("ij->i", x),
    "convolve": lambda z, y: np.convolve(z, y[:3]) + np.convolve(z, y[:2], "same").sum(),
    "kron": lambda x: np.kron(x, np.ones((2, 1))),
}


_TABLE = np.array([1.0, 2.0, 4.0, 8.0])


def _attention(x: Any) -> Any:
    scores = x @ x.T / math.sqrt(x.shape[-1])
    scores = np.where(np.triu(np.ones((len(x), len(x)), dtype=bool), 1), -np.inf, scores)
    powers = np.exp(scores - scores.max(-1, keepdims=True))
    powers /= powers.sum(-1, keepdims=True)
    return powers @ x


def _relaxed(x: Any) -> Any:
    for _ in range(3):
        new = x.copy()
        new[1:-1, 1:-1] = (x[:-2, 1:-1] + x[2:, 1:-1] + x[1:-1, :-2] + x[1:-1, 2:]) / 4
        x = new
    return x


def _pooled(x: Any, n: int, m: int) -> Any:
    return x[: n // 2 * 2, : m // 2 * 2].reshape(n // 2, 2, m // 2, 2).max(axis=(1, 3))


def _shifted(x: Any, at: Any) -> Any:
    total = np.zeros(x.shape, dtype=float)
    for by in np.array([-1, 0, 1]):
        total += np.roll(x, by, axis=0) * _TABLE[at % 4][:, None] * _TABLE[1]
    return total + np.float32(x.sum()) + x.astype(int)[0]


MORE = {
    "select": lambda x: np.select([x < 0, x < 3], [x * 0, x], 9.0),
    "average": lambda x, y: np.average(x, axis=1, weights=y) + np.average(x),
    "median": lambda x: np.median(x) + np.median(x.astype(np.float32)),
}


def _writes(x: Any, y: Any) -> Any:
    out = np.zeros_like(x)
    out[1:, 0] = x[1:, 0] * 2
    out[:, 1:] += y[1:]
    top = out[0]
    top -= 1
    out[out < 0] = 7
    np.multiply(out, 2, out=out)
    out.reshape(-1)[:2] = 5
    return out, top


def _aliases(x: Any) -> Any:
    same, other = x, x.copy()
    same += 1
    other *= 3
    return x + other, same.T[0]


def _counts(at: Any, z: Any, m: int) -> Any:
    places = at % m
    sums = np.zeros(m)
    np.add.at(sums, places, z)
    return np.bincount(places, minlength=m), np.bincount(places, z, m), sums


def _numbers(x: Any) -> Any:
    total = x.sum()
    before = total
    total += 1
    return total - before, total


def _loops(x: Any, y: Any) -> Any:
    total = 0
    for k in range(0, len(y), 8):
        total = total + x[:, k]
    for row in np.eye(2):
        total = total * row.sum()
    return total


def _halved(x: Any) -> Any:
    half = x.shape[1] // 2
    return x[:, :half] + x[:, half : 2 * half]


WRITES = {
    f.__name__: f
    for f in (
        _attention,
        _relaxed,
        _pooled,
        _shifted,
        _writes,
        _aliases,
        _counts,
        _numbers,
        _loops,
        _halved,
    )
}
PARTIAL = ("diagonal", "median")  # the shorter side decides, and whether a count is even
ALL = MORE | MAPS | REDUCTIONS | VIEWS | MAKING | LOOKUPS | PRODUCTS | WRITES


@pytest.mark.parametrize("name", ALL)
def test_a_graph_gives_what_the_function_gives(name: str) -> None:
    agree(ALL[name], everywhere=name not in PARTIAL)


@pytest.mark.parametrize("dtype", [np.float32, np.float16, np.int32, np.uint8, ml_dtypes.bfloat16])
@pytest.mark.parametrize("name", ["operators", "compare", "where", "sum", "fill", "matmul", "list"])
def test_dtypes_are_those_of_numpy(name: str, dtype: Any) -> None:
    agree(ALL[name], dtype)


def test_views_of_views_are_one_map() -> None:
    graph = agree(lambda x: x.T[::2][:, None][:, 0, 1:].reshape(-1))
    (index,) = [node for node in graph.nodes if isinstance(node, Index)]
    assert not isinstance(index.source, Index)


def test_a_reshape_there_and_back_is_nothing() -> None:
    graph = agree(lambda x: x.reshape(-1).reshape(x.shape))
    assert len(graph.nodes) == 1


def test_products_are_contractions_and_masks_positions() -> None:
    graph = agree(lambda x, y: np.where(np.tri(*x.shape, dtype=bool), x, 0) @ y)
    kinds = {type(node) for node in graph.nodes}
    assert {Contract, Position, Map} <= kinds
    assert Scatter not in kinds
