"""What people write as well and no kernel is made of; each with what its refusal says."""

from __future__ import annotations

from typing import Any

import numpy as np

from tests.references.entry import Entry, Values, matrix, uniform, vector

Rng = np.random.Generator


def spectrum(x: Any) -> Any:
    return np.abs(np.fft.rfft(x, axis=1))


def solved(a: Any, b: Any) -> Any:
    return np.linalg.solve(a, b)


def principal(x: Any) -> Any:
    return np.linalg.svd(x - x.mean(axis=0))[1]


def distinct(values: Any) -> Any:
    return np.unique(values)


def mean_of_positive(x: Any) -> Any:
    return x[x > 0].mean()


def halved_until_small(x: Any) -> Any:
    while np.abs(x).max() > 0.1:
        x = x / 2
    return x


def noisy(x: Any) -> Any:
    return x + 0.1 * np.random.default_rng(0).standard_normal(x.shape)


def segment_totals(x: Any, starts: Any) -> Any:
    return np.add.reduceat(x, starts)


def _system(rng: Rng, n: int) -> Values:
    return {"a": uniform(rng, n, n) + 4 * np.eye(n, dtype=np.float32), "b": uniform(rng, n)}


def _values(rng: Rng, n: int) -> Values:
    return {"values": rng.integers(0, 9, n)}


def _starts(rng: Rng, n: int, count: int) -> Values:
    return {"x": uniform(rng, n), "starts": np.sort(rng.choice(n, count, replace=False))}


REFUSED = (
    (Entry("signals", spectrum, matrix, {"n": 8, "m": 32}), "is not traced"),
    (Entry("linear algebra", solved, _system, {"n": 12}), "is not traced"),
    (Entry("linear algebra", principal, matrix, {"n": 12, "m": 5}), "is not traced"),
    (Entry("lookups", distinct, _values, {"n": 50}), "as many results as the data say"),
    (Entry("masks", mean_of_positive, vector, {"n": 50}), "as many elements as the data say"),
    (Entry("loops", halved_until_small, vector, {"n": 50}), "a branch on the values"),
    (Entry("statistics", noisy, matrix, {"n": 8, "m": 9}), "others each time"),
    (Entry("scatters", segment_totals, _starts, {"n": 90, "count": 7}), "np.add.reduceat"),
)
