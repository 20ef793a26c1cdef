"""Each with each: bodies, distances, the nearest centre."""

from __future__ import annotations

from typing import Any

import numpy as np

from optiml_magic.bench.entry import Entry, Values, uniform
from optiml_magic.bench.floors import Floor

_ALL_PAIRS = "zjin-lcf/HeCBench all-pairs-distance-cuda/main.cu"
_KMEANS = "yuhc/gpu-rodinia cuda/kmeans/kmeans_cuda.cu"


def _bodies(rng: np.random.Generator, n: int) -> Values:
    return {"position": uniform(rng, n, 3), "mass": uniform(rng, n, low=0.5), "n": n}


def gravity(position: Any, mass: Any) -> Any:
    found = np.zeros_like(position)
    for at in range(0, len(mass), 256):
        between = position[None] - position[at : at + 256, None]
        pull = mass / ((between * between).sum(axis=2) + 0.01) ** 1.5
        found[at : at + 256] = (pull[..., None] * between).sum(axis=1)
    return found


def _gravity_torch(t: Any, position: Any, mass: Any) -> Any:
    between = position[None] - position[:, None]
    pull = mass * t.rsqrt((between * between).sum(dim=2) + 0.01) ** 3
    return (pull[..., None] * between).sum(dim=1)


def _points(rng: np.random.Generator, n: int, m: int, d: int) -> Values:
    return {"p": uniform(rng, n, d), "q": uniform(rng, m, d), "n": n, "m": m, "d": d}


def distances(p: Any, q: Any) -> Any:
    return np.sqrt(sum((p[:, None, k] - q[None, :, k]) ** 2 for k in range(p.shape[1])))


def _clusters(rng: np.random.Generator, points: int, features: int, centres: int) -> Values:
    """Whole numbers, so that sums of squares are exact and no order of adding matters."""
    feature = rng.integers(0, 64, (features, points), dtype=np.uint8).astype(np.float32)
    clusters = rng.integers(0, 64, (centres, features), dtype=np.uint8).astype(np.float32)
    return {
        "feature": feature, "clusters": clusters,
        "points": points, "features": features, "centres": centres,
    }  # fmt: skip


def kmeans_assign(feature: Any, clusters: Any) -> Any:
    squares = np.stack([((feature - c[:, None]) ** 2).sum(axis=0) for c in clusters])
    return squares.argmin(axis=0).astype(np.int32)


def _kmeans_torch(t: Any, feature: Any, clusters: Any) -> Any:
    squares = (clusters * clusters).sum(dim=1)[:, None] - 2 * (clusters @ feature)
    return squares.argmin(dim=0).to(t.int32)


def _attributes(rng: np.random.Generator, rows: int, attributes: int) -> Values:
    data = rng.integers(0, 10, (rows, attributes), dtype=np.int32)
    return {"data": data, "rows": rows, "attributes": attributes}


def hamming(data: Any) -> Any:
    return np.stack([(data != row).sum(axis=1) for row in data]).astype(np.int32)


def _hamming_torch(t: Any, data: Any) -> Any:
    """``p=0`` counts what differs; whole numbers this small are exact as floats."""
    return t.cdist(data.float(), data.float(), p=0).to(t.int32)


def _hamming_cupy(cp: Any, data: Any) -> Any:
    return (data[:, None] != data).sum(axis=2, dtype=cp.int32)


TASKS = (
    Entry(
        "gravity", "pairs", gravity, _bodies,
        full={"n": 16384}, small={"n": 512}, checked={"n": 260},
        floor=lambda n: Floor(28 * n, flops=18 * n * n, special=n * n),
        outputs={"acceleration": "f4[n, 3]"},
        torch=_gravity_torch,
    ),
    Entry(
        "distances", "pairs", distances, _points,
        full={"n": 8192, "m": 8192, "d": 64}, small={"n": 96, "m": 96, "d": 64},
        checked={"n": 68, "m": 52, "d": 20},
        # By squares of both and a product, as it is done where speed counts.
        floor=lambda n, m, d: Floor(
            4 * (n * d + m * d + n * m), flops=2 * n * m * d, special=n * m
        ),
        torch=lambda t, p, q: t.cdist(p, q),
    ),
    Entry(
        "kmeans_assign", "pairs", kmeans_assign, _clusters,
        full={"points": 1 << 22, "features": 16, "centres": 16},
        small={"points": 8192, "features": 8, "centres": 8},
        checked={"points": 1003, "features": 7, "centres": 5},
        floor=lambda points, features, centres: Floor(
            4 * points * (features + 1), flops=2 * points * features * centres
        ),
        torch=_kmeans_torch, source=_KMEANS,
    ),
    Entry(
        "hamming", "pairs", hamming, _attributes,
        full={"rows": 1024, "attributes": 4096}, small={"rows": 48, "attributes": 256},
        checked={"rows": 20, "attributes": 260},
        # A comparison and an addition for each attribute of half of the pairs.
        floor=lambda rows, attributes: Floor(
            4 * rows * (attributes + rows), flops=rows * (rows - 1) * attributes
        ),
        outputs={"distance": "i4[rows, rows]"},
        torch=_hamming_torch, libraries={"CuPy": _hamming_cupy}, source=_ALL_PAIRS,
        opened=True,
    ),
)  # fmt: skip
