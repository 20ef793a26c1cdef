"""Other scales and signs of the float inputs: what a kernel made for the given values gets wrong.

A clamp shows at three times the values, a threshold at a hundredth, one beside 0 at mixed
magnitudes, a missing absolute value with the signs turned. Mixed signs let the terms of a sum
cancel, so that the rounding of inputs to a narrower type is no longer lost among equal signs; an
array whose values are all alike, which fresh inputs like it would repeat for ever, is drawn anew
there. At a hundred and ten thousand times the values an exponential overflows from whose argument
the largest was not taken off, and where all of them are negative a maximum shows that begins at 0.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from typing import Any

import numpy as np

from optiml_magic.devices.base import Array
from optiml_magic.model.dtypes import kind

Scale = Callable[[Array, np.random.Generator], Array]


def _times(factor: float) -> Scale:
    def scaled(array: Any, rng: np.random.Generator) -> Array:
        del rng
        with np.errstate(over="ignore"):
            product: Array = (array * array.dtype.type(factor)).astype(array.dtype)
        return product

    return scaled


def _below_zero(array: Any, rng: np.random.Generator) -> Array:
    if array.dtype.kind == "c":
        same: Array = array
        return same
    return _times(-1e4)(np.abs(array), rng)


def _magnitudes(array: Any, rng: np.random.Generator) -> Array:
    factors = 10.0 ** rng.uniform(-4.0, 0.0, array.shape)
    small: Array = (array * factors.astype(array.dtype)).astype(array.dtype)
    return small


def _mixed(array: Array, rng: np.random.Generator) -> Array:
    if array.size and bool(np.all(array == array.reshape(-1)[0])):
        return rng.uniform(-1.0, 1.0, array.shape).astype(array.dtype)
    signs = rng.choice(np.array([-1.0, 1.0]), array.shape)
    mixed: Array = (array * signs.astype(array.dtype)).astype(array.dtype)
    return mixed


SCALES: Mapping[str, Scale] = {
    "inputs x 3": _times(3.0),
    "inputs x 0.01": _times(0.01),
    "inputs negated": _times(-1.0),
    "inputs of mixed signs": _mixed,
    "inputs of mixed magnitudes": _magnitudes,
    "inputs x 100": _times(100.0),
    "inputs x 10000": _times(1e4),
    "inputs x 10000, all negative": _below_zero,
}


SCALARS = "float scalars x 0.7"  # one that is written into the kernel as a constant stays
_FACTOR = 0.7


def rescaled(values: Mapping[str, Any], names: Collection[str]) -> dict[str, Any]:
    """The values with the float scalars among ``names`` changed; of structs, their float fields."""
    return {n: _scalar(v) if n in names and _is_float(v) else v for n, v in values.items()}


def has_float_scalars(values: Mapping[str, Any], names: Collection[str]) -> bool:
    """Whether there is anything among ``names`` for ``rescaled``."""
    return any(_is_float(values.get(name)) for name in names)


def _is_float(value: Any) -> bool:
    if isinstance(value, np.void) and value.dtype.names:
        return any(kind(value.dtype[name].base) in "fc" for name in value.dtype.names)
    return isinstance(value, float) or (isinstance(value, np.generic) and kind(value.dtype) in "fc")


def _scalar(value: Any) -> Any:
    if not isinstance(value, np.generic) or isinstance(value, float):
        return type(value)(_FACTOR * value)
    return _changed(np.array([value]), _times(_FACTOR), np.random.default_rng(0))[0]


def scaled(values: Mapping[str, Any], names: Collection[str], scale: Scale) -> dict[str, Any]:
    """The values with the float arrays among ``names`` changed; of structs, their float fields."""
    rng = np.random.default_rng(len(names))
    return {
        name: _changed(value, scale, rng)
        if name in names and isinstance(value, np.ndarray)
        else value
        for name, value in values.items()
    }


def has_floats(values: Mapping[str, Any], names: Collection[str]) -> bool:
    """Whether there is anything among ``names`` to be scaled."""
    arrays = (v for n, v in values.items() if n in names and isinstance(v, np.ndarray))
    return any(kind(a.dtype) in "fc" or a.dtype.names is not None for a in arrays)


def _changed(array: Array, scale: Scale, rng: np.random.Generator) -> Array:
    if array.dtype.names is not None:
        structs: Any = array.copy()
        for name in array.dtype.names:
            structs[name] = _changed(structs[name], scale, rng)
        fresh: Array = structs
        return fresh
    return scale(array, rng) if kind(array.dtype) in "fc" and array.size else array
