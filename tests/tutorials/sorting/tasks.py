"""Histograms, sorting, merging, searching."""

from pathlib import Path

import numpy as np

from optiml_magic import Task

HERE = Path(__file__).parent
f4, i4, u4 = np.float32, np.int32, np.uint32


def bitonic_steps(values):
    """Runs of eight, sorted up and down in turn."""
    runs = np.sort(values.reshape(-1, 8), axis=1)
    runs[1::2] = runs[1::2, ::-1]
    return runs.ravel()


def two_sorted(rng):
    a, b = (np.sort(rng.integers(0, 500, n, dtype=i4)) for n in (700, 333))
    return {"a": a, "na": 700, "b": b, "nb": 333}


def searched(rng):
    x = np.sort(rng.uniform(0, 1, 1000)).astype(f4)
    return {"sorted": x, "queries": rng.uniform(-0.1, 1.1, 300).astype(f4), "n": 1000, "m": 300}


tasks = [
    Task(
        HERE / "histogram_global.cu",
        reference=lambda buffer: np.bincount(buffer, minlength=256).astype(u4),
        inputs=lambda rng: {"buffer": rng.integers(0, 256, 3000, np.uint8), "size": 3000},
    ),
    Task(
        HERE / "histogram_private.cu",
        reference=lambda input: np.bincount(input % 64, minlength=64).astype(u4),  # noqa: A006
        inputs=lambda rng: {"input": rng.integers(0, 2**32, 4000, u4), "num_elements": 4000},
    ),
    Task(
        HERE / "histogram_match.cu",
        reference=lambda keys: np.bincount(keys, minlength=10).astype(i4),
        inputs=lambda rng: {"keys": rng.integers(0, 10, 1001, i4), "n": 1001},
    ),
    Task(
        HERE / "bitonic_shared.cu",
        reference=lambda keys: np.sort(keys, axis=1),
        inputs=lambda rng: {"keys": rng.integers(-999, 999, (5, 256), i4), "rows": 5},
    ),
    Task(
        HERE / "bitonic_global.cu",
        reference=bitonic_steps,
        inputs=lambda rng: {"values": rng.uniform(-1, 1, 256).astype(f4)},
    ),
    Task(
        HERE / "odd_even.cu",
        reference=lambda data: np.sort(data),
        inputs=lambda rng: {"data": rng.integers(0, 99, 75, i4), "n": 75},
    ),
    Task(
        HERE / "radix_pass.cu",
        reference=lambda keys: np.sort(keys.reshape(-1, 256), axis=1).ravel(),
        inputs=lambda rng: {"keys": rng.integers(0, 256, 3 * 256, u4), "blocks": 3},
    ),
    Task(
        HERE / "merge_path.cu",
        reference=lambda a, b: np.sort(np.concatenate([a, b])),
        inputs=two_sorted,
    ),
    Task(
        HERE / "rank_sort.cu",
        reference=lambda x: np.sort(x),
        inputs=lambda rng: {"x": rng.integers(0, 50, 300) / 7, "n": 300, "TILE_": 64},
    ),
    Task(
        HERE / "binary_search.cu",
        reference=lambda sorted, queries: np.searchsorted(sorted, queries).astype(i4),  # noqa: A006
        inputs=searched,
    ),
]
