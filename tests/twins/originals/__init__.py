"""Kernels as newcomers write them, each with arrays small enough to run in a moment.

The sizes are odd and differ from one another, so that an index taken for another one shows.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

_FOLDER = Path(__file__).parent
Values = dict[str, Any]
_F4, _I4 = np.float32, np.int32


@dataclass(frozen=True)
class Original:
    """A kernel program, and what it runs on.

    Attributes:
        name: of the file and of its kernel.
        make: every array and scalar by name; an output's array is there for its shape.
        inout: the arrays that it reads and writes.
    """

    name: str
    make: Callable[[np.random.Generator], Values]
    inout: tuple[str, ...] = ()

    @cached_property
    def text(self) -> str:
        return (_FOLDER / f"{self.name}.cu").read_text(encoding="utf-8")

    @property
    def values(self) -> Values:
        return self.make(np.random.default_rng(7))


def _uniform(rng: np.random.Generator, *shape: int) -> Any:
    return rng.uniform(-1.0, 1.0, shape).astype(_F4)


def _matrix(rng: np.random.Generator, *, out: tuple[int, ...] = (37, 53)) -> Values:
    return {"a": _uniform(rng, 37, 53), "rows": 37, "cols": 53, "out": np.zeros(out, _F4)}


def _image(rng: np.random.Generator) -> Values:
    return {
        "image": _uniform(rng, 37, 53),
        "out": np.zeros((37, 53), _F4),
        "width": 53,
        "height": 37,
    }


def _product(rng: np.random.Generator) -> Values:
    return {
        "a": _uniform(rng, 37, 29),
        "b": _uniform(rng, 29, 53),
        "c": np.zeros((37, 53), _F4),
        "m": 37,
        "n": 53,
        "k": 29,
    }


def _batches(rng: np.random.Generator) -> Values:
    factors = {"a": _uniform(rng, 3, 19, 19), "b": _uniform(rng, 3, 19, 19)}
    return {**factors, "c": np.zeros((3, 19, 19), _F4), "batches": 3, "n": 19}


def _softmax(rng: np.random.Generator) -> Values:
    return {"x": _uniform(rng, 37, 53), "out": np.zeros((37, 53), _F4), "rows": 37, "cols": 53}


def _layer_norm(rng: np.random.Generator) -> Values:
    return {**_softmax(rng), "gamma": _uniform(rng, 53), "beta": _uniform(rng, 53)}


def _line(rng: np.random.Generator) -> Values:
    return {"x": _uniform(rng, 301), "out": np.zeros(301, _F4), "n": 301}


def _dot(rng: np.random.Generator) -> Values:
    # Whole numbers: their sum is exact in whatever order the atomics come.
    x, y = (rng.integers(-8, 9, 301).astype(_F4) for _ in range(2))
    return {"x": x, "y": y, "out": np.zeros(1, _F4), "n": 301}


def _histogram(rng: np.random.Generator) -> Values:
    values = rng.integers(-2, 21, 301, dtype=_I4)
    return {"values": values, "bins": np.zeros(19, _I4), "n": 301, "count": 19}


def _volume(rng: np.random.Generator) -> Values:
    shape = (7, 19, 29)
    return {"u": _uniform(rng, *shape), "out": np.zeros(shape, _F4), "nx": 29, "ny": 19, "nz": 7}


def _heat(rng: np.random.Generator) -> Values:
    values = _image(rng)
    return {**values, "u": values.pop("image"), "rate": _F4(0.2)}


def _scatter(rng: np.random.Generator) -> Values:
    targets = rng.permutation(np.arange(-5, 296, dtype=_I4))
    out = np.zeros(290, _F4)
    return {"values": _uniform(rng, 301), "targets": targets, "out": out, "n": 301, "size": 290}


def _gather(rng: np.random.Generator) -> Values:
    indices = rng.integers(-3, 53, 301, dtype=_I4)
    return {"table": _uniform(rng, 53), "indices": indices, "out": np.zeros(301, _F4), "n": 301}


def _csr(rng: np.random.Generator) -> Values:
    starts = np.concatenate([[0], np.cumsum(rng.integers(0, 7, 37))]).astype(_I4)
    count = int(starts[-1])
    return {
        "starts": starts,
        "columns": rng.integers(0, 53, count, dtype=_I4),
        "values": _uniform(rng, count),
        "x": _uniform(rng, 53),
        "y": np.zeros(37, _F4),
        "rows": 37,
    }


def _bodies(rng: np.random.Generator) -> Values:
    bodies = {name: _uniform(rng, 53) for name in ("px", "py", "mass")}
    return {**bodies, "ax": np.zeros(53, _F4), "ay": np.zeros(53, _F4), "n": 53}


def _particles(rng: np.random.Generator) -> Values:
    items = np.zeros(301, np.dtype([(field, "f4") for field in ("x", "y", "z", "speed")]))
    for field in ("x", "y", "z", "speed"):
        items[field] = _uniform(rng, 301)
    return {"items": items, "energy": np.zeros(301, _F4), "n": 301}


def _grey(rng: np.random.Generator) -> Values:
    rgb = rng.integers(0, 256, (37, 53, 3), dtype=np.uint8)
    return {"rgb": rgb, "out": np.zeros((37, 53), np.uint8), "width": 53, "height": 37}


def _embedding(rng: np.random.Generator) -> Values:
    return {
        "table": _uniform(rng, 19, 37),
        "ids": rng.integers(0, 23, 53, dtype=_I4),
        "out": np.zeros((53, 37), _F4),
        "tokens": 53,
        "width": 37,
        "vocabulary": 19,
    }


def _argmin(rng: np.random.Generator) -> Values:
    values = _matrix(rng)
    del values["out"]
    return {**values, "where": np.zeros(37, _I4)}


def _downsample(rng: np.random.Generator) -> Values:
    return {
        "image": _uniform(rng, 38, 53),
        "out": np.zeros((19, 26), _F4),
        "width": 53,
        "out_width": 26,
        "out_height": 19,
    }


def _matvec(rng: np.random.Generator) -> Values:
    values = _matrix(rng)
    del values["out"]
    return {**values, "x": _uniform(rng, 53), "y": np.zeros(37, _F4)}


def _triangular(rng: np.random.Generator) -> Values:
    return {
        "lower": _uniform(rng, 53, 53),
        "x": _uniform(rng, 53),
        "y": np.zeros(53, _F4),
        "n": 53,
    }


_MAKERS: Mapping[str, Callable[[np.random.Generator], Values]] = {
    "map_square": _line,
    "saxpy": lambda rng: {
        "alpha": _F4(1.5), "x": _uniform(rng, 301), "y": _uniform(rng, 301), "n": 301
    },
    "image_brighten": lambda rng: {**_image(rng), "gain": _F4(1.75)},
    "transpose": lambda rng: _matrix(rng, out=(53, 37)),
    "matmul": _product,
    "batched_matmul": _batches,
    "row_sum": lambda rng: _matrix(rng, out=(37,)),
    "row_max": lambda rng: _matrix(rng, out=(37,)),
    "column_sum": lambda rng: _matrix(rng, out=(53,)),
    "softmax": _softmax,
    "layer_norm": _layer_norm,
    "dot": _dot,
    "histogram": _histogram,
    "stencil_1d": _line,
    "stencil_2d": _heat,
    "stencil_3d": _volume,
    "convolve_2d": lambda rng: {**_image(rng), "filter": _uniform(rng, 5, 5)},
    "gather": _gather,
    "scatter": _scatter,
    "spmv_csr": _csr,
    "row_prefix": _matrix,
    "nbody": _bodies,
    "particles": _particles,
    "grey": _grey,
    "bias_relu": lambda rng: {
        "x": _uniform(rng, 37, 53), "bias": _uniform(rng, 53), "rows": 37, "cols": 53
    },
    "embedding": _embedding,
    "row_argmin": _argmin,
    "point_lengths": lambda rng: {
        "points": _uniform(rng, 301, 3), "lengths": np.zeros(301, _F4), "n": 301
    },
    "polynomial": lambda rng: {**_line(rng), "coefficients": _uniform(rng, 8)},
    "block_sum": lambda rng: {**_line(rng), "out": np.zeros(3, _F4)},
    "matmul_tiled": _product,
    "grid_stride": lambda rng: {**_line(rng), "limit": _F4(0.5)},
    "downsample": _downsample,
    "matvec": _matvec,
    "triangular": _triangular,
    "row_normalise": _matrix,
}  # fmt: skip

_INOUT = {"saxpy": ("y",), "bias_relu": ("x",)}
ORIGINALS = tuple(Original(name, make, _INOUT.get(name, ())) for name, make in _MAKERS.items())
