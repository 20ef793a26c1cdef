"""Sums along each axis and over all."""

from __future__ import annotations

from typing import Any

import numpy as np

from optiml_magic.bench.entry import Entry, Values, uniform
from optiml_magic.bench.floors import Floor

_DAMAGE = "zjin-lcf/HeCBench damage-cuda/main.cu"
_BIAS = "karpathy/llm.c dev/cuda/matmul_backward_bias.cu"
_BONDS = 256


def _matrix(rng: np.random.Generator, rows: int, cols: int) -> Values:
    return {"a": uniform(rng, rows, cols, low=0.0), "rows": rows, "cols": cols}


def _vectors(rng: np.random.Generator, n: int) -> Values:
    x, y = (uniform(rng, n, low=0.0) for _ in range(2))
    return {"x": x, "y": y, "n": n}


def _bonds(rng: np.random.Generator, particles: int) -> Values:
    bonds = rng.integers(-1, 3, (particles, _BONDS), dtype=np.int32)
    family = np.full(particles, _BONDS, np.int32)
    return {"bonds": bonds, "family": family, "particles": particles}


def bond_damage(bonds: Any, family: Any) -> Any:
    intact = (bonds != -1).sum(axis=1)
    return {"intact": intact.astype(np.int32), "damage": 1.0 - intact / family}


def _bond_damage_torch(t: Any, bonds: Any, family: Any) -> Any:
    intact = (bonds != -1).sum(dim=1, dtype=t.int32)
    return intact, 1.0 - intact.double() / family


def _gradient(rng: np.random.Generator, N: int, OC: int) -> Values:  # noqa: N803  # the kernel's names
    return {"dout": uniform(rng, N, OC, low=0.0), "N": N, "OC": OC}


TASKS = (
    Entry(
        "row_norms", "reductions", lambda a: np.sqrt((a * a).sum(axis=1)), _matrix,
        full={"rows": 65536, "cols": 1024}, small={"rows": 512, "cols": 256},
        checked={"rows": 132, "cols": 260},
        floor=lambda rows, cols: Floor(4 * rows * (cols + 1), flops=2 * rows * cols, special=rows),
        torch=lambda t, a: t.linalg.vector_norm(a, dim=1),
        libraries={
            "CUB": lambda cp, a: cp.sqrt((a * a).sum(axis=1)),
            "CuPy": lambda cp, a: cp.linalg.norm(a, axis=1),
        },
    ),
    Entry(
        "column_means", "reductions", lambda a: a.mean(axis=0), _matrix,
        full={"rows": 65536, "cols": 1024}, small={"rows": 512, "cols": 256},
        checked={"rows": 260, "cols": 132},
        floor=lambda rows, cols: Floor(4 * cols * (rows + 1), flops=rows * cols),
        torch=lambda _, a: a.mean(dim=0),
        libraries={"CuPy": lambda _, a: a.mean(axis=0)},
    ),
    Entry(
        "dot", "reductions", lambda x, y: np.array([x @ y]), _vectors,
        full={"n": 1 << 25}, small={"n": 1 << 15}, checked={"n": 10_003},
        floor=lambda n: Floor(8 * n + 4, flops=2 * n),
        outputs={"out": "f4[1]"},
        torch=lambda t, x, y: t.dot(x, y).reshape(1),
        libraries={"cuBLAS": lambda cp, x, y: cp.dot(x, y).reshape(1)},
    ),
    Entry(
        "bond_damage", "reductions", bond_damage, _bonds,
        full={"particles": 1 << 18}, small={"particles": 512}, checked={"particles": 65},
        floor=lambda particles: Floor((4 * _BONDS + 16) * particles),
        torch=_bond_damage_torch, source=_DAMAGE, opened=True,
    ),
    Entry(
        "bias_grad", "reductions", lambda dout: dout.sum(axis=0), _gradient,
        full={"N": 16384, "OC": 3072}, small={"N": 1024, "OC": 96}, checked={"N": 516, "OC": 36},
        floor=lambda N, OC: Floor(4 * OC * (N + 1), flops=N * OC),  # noqa: N803
        torch=lambda _, dout: dout.sum(dim=0),
        libraries={"CuPy": lambda _, dout: dout.sum(axis=0)},
        source=_BIAS, opened=True,
    ),
)  # fmt: skip
