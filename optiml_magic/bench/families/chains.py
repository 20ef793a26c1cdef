"""Several kernels in a row, with what passes between them in memory."""

from __future__ import annotations

from typing import Any

import numpy as np

from optiml_magic.bench.entry import Entry, Values, uniform
from optiml_magic.bench.floors import Floor

_2MM = "PolyBench-GPU CUDA/2MM"
_COVAR = "PolyBench-GPU CUDA/COVAR"
_PATHFINDER = "yuhc/gpu-rodinia cuda/pathfinder/pathfinder.cu"
_LAUNCHES = 3  # of pathfinder


def _table(rng: np.random.Generator, rows: int, cols: int) -> Values:
    return {"x": uniform(rng, rows, cols), "rows": rows, "cols": cols}


def _standardise_torch(t: Any, x: Any) -> Any:
    return (x - x.mean(dim=0)) / t.std(x, dim=0, correction=0)


def _biased(rng: np.random.Generator, rows: int, cols: int) -> Values:
    more = {"bias": uniform(rng, cols), "scale": uniform(rng, rows)}
    return {**_table(rng, rows, cols), **more}


def _matrices(rng: np.random.Generator, ni: int, nj: int, nk: int, nl: int) -> Values:
    sizes = {"ni": ni, "nj": nj, "nk": nk, "nl": nl}
    made = {"a": uniform(rng, ni, nk), "b": uniform(rng, nk, nj), "d": uniform(rng, nj, nl)}
    return {**made, **sizes}


def _samples(rng: np.random.Generator, m: int, n: int) -> Values:
    return {"data": uniform(rng, n, m), "m": m, "n": n}


def covariance(data: Any) -> Any:
    centred = data - data.mean(axis=0)
    return {"data": centred, "symmat": centred.T @ centred}


def _covariance_peer(data: Any) -> Any:
    centred = data - data.mean(0)
    return centred, centred.T @ centred


def _wall(rng: np.random.Generator, cols: int, rows: int) -> Values:
    wall = rng.integers(0, 10, (rows, cols), dtype=np.int32)
    height = -(-(rows - 1) // _LAUNCHES)
    return {"wall": wall, "cols": cols, "rows": rows, "pyramid_height": height}


def _cheapest(xp: Any, wall: Any) -> Any:
    cost = wall[0]
    for row in wall[1:]:
        least = cost.copy()
        least[1:] = xp.minimum(least[1:], cost[:-1])
        least[:-1] = xp.minimum(least[:-1], cost[1:])
        cost = least + row
    return cost


def pathfinder(wall: Any) -> Any:
    return _cheapest(np, wall)


def _pathfinder_torch(t: Any, wall: Any) -> Any:
    cost = wall[0]
    for k in range(1, len(wall)):
        left, right = t.cat((cost[:1], cost[:-1])), t.cat((cost[1:], cost[-1:]))
        cost = t.minimum(t.minimum(left, right), cost) + wall[k]
    return cost


TASKS = (
    Entry(
        "standardise", "chains", lambda x: (x - x.mean(axis=0)) / x.std(axis=0), _table,
        full={"rows": 32768, "cols": 1024}, small={"rows": 256, "cols": 128},
        checked={"rows": 260, "cols": 68},
        floor=lambda rows, cols: Floor(8 * rows * cols, flops=5 * rows * cols),
        torch=_standardise_torch,
        libraries={"CuPy": lambda _, x: (x - x.mean(axis=0)) / x.std(axis=0)},
    ),
    Entry(
        "bias_relu_scale", "chains",
        lambda x, bias, scale: np.maximum(x + bias, 0) * scale[:, None], _biased,
        full={"rows": 32768, "cols": 1024}, small={"rows": 256, "cols": 256},
        checked={"rows": 132, "cols": 68},
        floor=lambda rows, cols: Floor(4 * (2 * rows * cols + rows + cols), flops=3 * rows * cols),
        torch=lambda t, x, bias, scale: t.relu(x + bias) * scale[:, None],
        libraries={
            "CuPy": lambda cp, x, bias, scale: cp.maximum(x + bias, cp.float32(0)) * scale[:, None]
        },
    ),
    Entry(
        "two_products", "chains", lambda a, b, d: a @ b @ d, _matrices,
        full={"ni": 2048, "nj": 2048, "nk": 2048, "nl": 2048},
        small={"ni": 64, "nj": 64, "nk": 64, "nl": 64},
        checked={"ni": 36, "nj": 52, "nk": 68, "nl": 44},
        floor=lambda ni, nj, nk, nl: Floor(
            4 * (ni * nk + nk * nj + nj * nl + ni * nl), flops=2 * ni * nj * (nk + nl)
        ),
        torch=lambda _, a, b, d: a @ b @ d, libraries={"cuBLAS": lambda _, a, b, d: a @ b @ d},
        source=_2MM,
    ),
    Entry(
        "covariance", "chains", covariance, _samples,
        full={"m": 1024, "n": 1024}, small={"m": 48, "n": 64}, checked={"m": 20, "n": 36},
        # Half of the products, since the result is symmetric.
        floor=lambda m, n: Floor(4 * (2 * n * m + m * m), flops=m * (m + 1) * n),
        outputs={"symmat": "f4[m, m]"},
        torch=lambda _, data: _covariance_peer(data),
        libraries={"cuBLAS": lambda _, data: _covariance_peer(data)},
        source=_COVAR, opened=True,
    ),
    Entry(
        "pathfinder", "chains", pathfinder, _wall,
        full={"cols": 1 << 20, "rows": 61}, small={"cols": 1024, "rows": 31},
        checked={"cols": 1003, "rows": 12},
        # Two comparisons and an addition a cell.
        floor=lambda cols, rows: Floor(4 * cols * (rows + 1), flops=3 * cols * (rows - 1)),
        outputs={"best": "i4[cols]"},
        torch=_pathfinder_torch, libraries={"CuPy": _cheapest}, source=_PATHFINDER,
    ),
)  # fmt: skip
