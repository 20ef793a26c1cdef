"""Other scales and signs of the float inputs: what a kernel made for the given values gets wrong.

A clamp shows at three times the values, a threshold at a hundredth, a missing absolute value with
the signs turned. Mixed signs let the terms of a sum cancel, so that the rounding of inputs to a
narrower type is no longer lost among equal signs; an array whose values are all alike, which fresh
inputs like it would repeat for ever, is drawn anew there. At a hundred times the values an exponential
overflows whose largest argument was not taken off, and where all of them are negative a maximum shows
that begins at 0.
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
        return array
    return _times(-100.0)(np.abs(array), rng)


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
    "inputs x 100": _times(100.0),
    "inputs x 100, all negative": _below_zero,
}


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
