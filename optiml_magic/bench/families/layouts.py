"""The same numbers in another order, and sums over orders that do not suit."""

from __future__ import annotations

from typing import Any

import numpy as np

from optiml_magic.bench.entry import Entry, Values, uniform
from optiml_magic.bench.floors import Floor

_LAYOUT = "zjin-lcf/HeCBench layout-cuda/main.cu"
_PERMUTE = "karpathy/llm.c dev/cuda/permute.cu"
_FIELDS = 64


def _matrix(rng: np.random.Generator, rows: int, cols: int) -> Values:
    return {"a": uniform(rng, rows, cols), "rows": rows, "cols": cols}


def _fields(rng: np.random.Generator, n: int) -> Values:
    return {**{name: uniform(rng, n) for name in ("x", "y", "z", "mass")}, "n": n}


def arrays_to_structs(x: Any, y: Any, z: Any, mass: Any) -> Any:
    return np.stack([x, y, z, mass], axis=1)


def _forest(rng: np.random.Generator, trees: int) -> Values:
    apples = rng.integers(0, 1000, (trees, _FIELDS), dtype=np.int32)
    return {"forest": apples, "trees": trees}


def _four(rng: np.random.Generator, d1: int, d2: int, d3: int, d4: int) -> Values:
    return {"in": uniform(rng, d1, d2, d3, d4), "d1": d1, "d2": d2, "d3": d3, "d4": d4}


def permute(**values: Any) -> Any:
    return values["in"].transpose(2, 0, 3, 1)


TASKS = (
    Entry(
        "transpose", "layouts", lambda a: a.T, _matrix,
        full={"rows": 8192, "cols": 4096}, small={"rows": 1024, "cols": 1024},
        checked={"rows": 132, "cols": 200},
        floor=lambda rows, cols: Floor(8 * rows * cols),
        torch=lambda _, a: a.t().contiguous(),
        libraries={"CuPy": lambda cp, a: cp.ascontiguousarray(a.T)},
    ),
    Entry(
        "arrays_to_structs", "layouts", arrays_to_structs, _fields,
        full={"n": 1 << 23}, small={"n": 1 << 16}, checked={"n": 10_003},
        floor=lambda n: Floor(32 * n),
        outputs={"particles": "f4[n, 4]"},
        torch=lambda t, x, y, z, mass: t.stack((x, y, z, mass), dim=1),
        libraries={"CuPy": lambda cp, x, y, z, mass: cp.stack((x, y, z, mass), axis=1)},
    ),
    Entry(
        "struct_sums", "layouts", lambda forest: forest.sum(axis=1).astype(np.int32), _forest,
        full={"trees": 1 << 20}, small={"trees": 1 << 13}, checked={"trees": 1001},
        floor=lambda trees: Floor(4 * (_FIELDS + 1) * trees),
        torch=lambda t, forest: forest.sum(dim=1, dtype=t.int32),
        libraries={"CUB": lambda cp, forest: forest.sum(axis=1, dtype=cp.int32)},
        source=_LAYOUT,
    ),
    Entry(
        "permute", "layouts", permute, _four,
        full={"d1": 64, "d2": 32, "d3": 128, "d4": 128},
        small={"d1": 16, "d2": 32, "d3": 32, "d4": 32},
        checked={"d1": 3, "d2": 20, "d3": 12, "d4": 36},
        floor=lambda d1, d2, d3, d4: Floor(8 * d1 * d2 * d3 * d4),
        torch=lambda _, **v: v["in"].permute(2, 0, 3, 1).contiguous(),
        libraries={"CuPy": lambda cp, **v: cp.ascontiguousarray(v["in"].transpose(2, 0, 3, 1))},
        source=_PERMUTE, opened=True,
    ),
)  # fmt: skip
