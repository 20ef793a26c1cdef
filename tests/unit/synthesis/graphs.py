"""References traced, and their graphs computed beside them at several sizes."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from optiml_magic.synthesis.evaluate import evaluated
from optiml_magic.synthesis.graph import Graph
from optiml_magic.synthesis.refusals import Refused
from optiml_magic.synthesis.shapes import fitted
from optiml_magic.synthesis.tracing import traced

SIZES = ({"n": 6, "m": 4}, {"n": 9, "m": 3}, {"n": 4, "m": 7})


def values(sizes: Mapping[str, int], dtype: Any = np.float64, seed: int = 0) -> dict[str, Any]:
    """A matrix, a row, a column of its own dtype, and places along the rows."""
    rng = np.random.default_rng(seed)
    n, m = sizes["n"], sizes["m"]
    return {
        "x": rng.integers(-4, 9, (n, m)).astype(dtype),
        "y": rng.integers(1, 6, m).astype(dtype),
        "z": rng.integers(1, 9, n).astype(np.float32),
        "at": rng.integers(-m, m, n).astype(np.int32),
        "n": n,
        "m": m,
    }


def graph_of(reference: Callable[..., Any], dtype: Any = np.float64) -> Graph | Refused:
    samples = [(sizes, _named(reference, values(sizes, dtype))) for sizes in SIZES]
    shapes = fitted(samples)
    assert isinstance(shapes, dict)
    return traced(reference, samples[0][1], SIZES[0], shapes)


def agree(
    reference: Callable[..., Any], dtype: Any = np.float64, *, everywhere: bool = True
) -> Graph:
    """The graph, once it gave what the function gives at each size that it is for."""
    graph = graph_of(reference, dtype)
    assert isinstance(graph, Graph), graph
    for k, sizes in enumerate(SIZES):
        given = _named(reference, values(sizes, dtype, seed=k))
        found = evaluated(graph, given, sizes)
        if isinstance(found, tuple):
            assert k
            assert not everywhere, found
            continue
        with np.errstate(all="ignore"):
            answer = reference(
                **{name: np.copy(v) if np.ndim(v) else v for name, v in given.items()}
            )
        several = answer if isinstance(answer, tuple) else (answer,)
        assert len(several) == len(found)
        for wanted, got in zip(map(np.asarray, several), found.values(), strict=True):
            assert got.dtype == wanted.dtype
            assert got.shape == wanted.shape
            loose = 2e-3 if wanted.dtype.itemsize == 2 else 1e-5
            largest = max(1.0, float(abs(wanted.astype(float)).max()))
            np.testing.assert_allclose(
                got.astype(float), wanted.astype(float), rtol=loose, atol=loose * largest
            )
    return graph


def _named(reference: Callable[..., Any], given: dict[str, Any]) -> dict[str, Any]:
    code = reference.__code__
    return {name: given[name] for name in code.co_varnames[: code.co_argcount]}
