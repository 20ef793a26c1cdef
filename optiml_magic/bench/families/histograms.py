"""Counts and sums at places that the data tell."""

from __future__ import annotations

from typing import Any

import numpy as np

from optiml_magic.bench.entry import Entry, Values, uniform
from optiml_magic.bench.floors import Floor


def _skewed(rng: np.random.Generator, n: int) -> Values:
    """Bytes of which small ones are many, as in text or images: the larger half is a sixteenth."""
    data = rng.integers(0, 256, n, dtype=np.uint8) & rng.integers(0, 256, n, dtype=np.uint8)
    return {"data": data & rng.integers(0, 256, n, dtype=np.uint8) | data >> 4, "n": n}


def byte_histogram(data: Any) -> Any:
    return np.bincount(data, minlength=256).astype(np.int32)


def _segments(rng: np.random.Generator, n: int, count: int) -> Values:
    segments = rng.integers(0, count, n, dtype=np.int32)
    return {"values": uniform(rng, n, low=0.0), "segments": segments, "n": n, "count": count}


def segment_sums(values: Any, segments: Any, count: Any) -> Any:
    return np.bincount(segments, weights=values, minlength=int(count))


def _segment_sums_torch(t: Any, values: Any, segments: Any, count: Any) -> Any:
    sums = t.zeros(int(count), dtype=values.dtype, device=values.device)
    return sums.index_add_(0, segments, values)


TASKS = (
    Entry(
        "byte_histogram", "histograms", byte_histogram, _skewed,
        full={"n": 1 << 27}, small={"n": 1 << 16}, checked={"n": 20_003},
        floor=lambda n: Floor(n + 1024),
        outputs={"bins": "i4[256]"},
        torch=lambda t, data: t.bincount(data, minlength=256).to(t.int32),
        libraries={
            "CUB": lambda cp, data: cp.histogram(data, bins=256, range=(0, 256))[0],
            "CuPy": lambda cp, data: cp.bincount(data, minlength=256),
        },
    ),
    Entry(
        "segment_sums", "histograms", segment_sums, _segments,
        full={"n": 1 << 25, "count": 4096}, small={"n": 1 << 15, "count": 64},
        checked={"n": 10_003, "count": 100},
        floor=lambda n, count: Floor(8 * n + 4 * count, flops=n),
        outputs={"sums": "f4[count]"},
        torch=_segment_sums_torch,
        libraries={
            "CuPy": lambda cp, values, segments, count: cp.bincount(
                segments, weights=values, minlength=int(count)
            )
        },
    ),
)  # fmt: skip
