"""Other scales and signs of the float inputs: what a kernel made for the given values gets wrong.

A clamp shows at three times the values, a threshold at a hundredth, one beside 0 at mixed
magnitudes, a missing absolute value with the signs turned. Mixed signs let the terms of a sum
cancel, so that the rounding of inputs to a narrower type is no longer lost among equal signs; an
array whose values are all alike, which fresh inputs like it would repeat for ever, is drawn anew
there. At a hundred and ten thousand times the values an exponential overflows from whose argument
the largest was not taken off, and where all of them are negative a maximum shows that begins at 0.
Zeros show a guard that is missing, few values a tie that goes the other way. Integers of both signs
show an absolute value, large ones a product in too few bits, equal ones a count in too few.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from typing import Any

import numpy as np

from optiml_magic.devices.base import Array
from optiml_magic.model.dtypes import kind

Scale = Callable[[Array, np.random.Generator], Array]


def times(factor: float) -> Scale:
    """That many times the values."""

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
    return times(-1e4)(np.abs(array), rng)


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
    "inputs x 3": times(3.0),
    "inputs x 0.01": times(0.01),
    "inputs negated": times(-1.0),
    "inputs of mixed signs": _mixed,
    "inputs of mixed magnitudes": _magnitudes,
    "inputs x 100": times(100.0),
    "inputs x 10000": times(1e4),
    "inputs x 10000, all negative": _below_zero,
}


def _third(array: Any, rng: np.random.Generator) -> Array:
    found: Array = np.where(rng.random(array.shape) < 1 / 3, array.dtype.type(0), array)
    return found


def _steps(array: Any, rng: np.random.Generator) -> Array:
    """Multiples of half of the largest, so that many are equal."""
    del rng
    if array.dtype.kind == "c":
        same: Array = array
        return same
    half = float(np.abs(array.astype(np.float64)).max()) / 2 or 1.0
    few: Array = (np.round(array.astype(np.float64) / half) * half).astype(array.dtype)
    return few


SPARSE: Mapping[str, Scale] = {
    "a third of the inputs 0": _third,
    "inputs of few values": _steps,
}

_LARGE = 1 << 17  # whose square needs more than 32 bits, while an index of it is still affordable


def _signed(array: Any, rng: np.random.Generator) -> Array:
    if array.dtype.kind == "u":
        same: Array = array
        return same
    mixed: Array = (array * rng.choice(np.array([-1, 1], array.dtype), array.shape)).astype(
        array.dtype
    )
    return mixed


def _large(array: Any, rng: np.random.Generator) -> Array:
    high = min(_LARGE, int(np.iinfo(array.dtype).max) // 2)
    low = 0 if array.dtype.kind == "u" else -high
    found: Array = rng.integers(low, high, array.shape).astype(array.dtype)
    return found


def _alike(array: Any, rng: np.random.Generator) -> Array:
    return np.full_like(array, rng.choice(array.reshape(-1)))


INTEGERS: Mapping[str, Scale] = {
    "integers of both signs": _signed,
    "large integers": _large,
    "integers all alike": _alike,
}

# One that is written into the kernel as a constant stays.
SCALARS = "float scalars x 0.7"
FACTOR = 0.7
# Where the inputs are small, a small one is no longer lost beside them.
SCALARS_TOO: Mapping[str, tuple[float, float]] = {
    "inputs x 0.01, float scalars x 0.7": (0.01, FACTOR),
    "float scalars x 1000": (1.0, 1000.0),
}


def rescaled(
    values: Mapping[str, Any], names: Collection[str], factor: float = FACTOR
) -> dict[str, Any]:
    """The values with the float scalars among ``names`` changed; of structs, their float fields."""
    return {n: _scalar(v, factor) if n in names and _is_float(v) else v for n, v in values.items()}


def has_float_scalars(values: Mapping[str, Any], names: Collection[str]) -> bool:
    """Whether there is anything among ``names`` for ``rescaled``."""
    return any(_is_float(values.get(name)) for name in names)


def _is_float(value: Any) -> bool:
    if isinstance(value, np.void) and value.dtype.names:
        return any(kind(value.dtype[name].base) in "fc" for name in value.dtype.names)
    return isinstance(value, float) or (isinstance(value, np.generic) and kind(value.dtype) in "fc")


def _scalar(value: Any, factor: float) -> Any:
    if not isinstance(value, np.generic) or isinstance(value, float):
        return type(value)(factor * value)
    return _changed(np.array([value]), times(factor), np.random.default_rng(0), "fc")[0]


def scaled(
    values: Mapping[str, Any], names: Collection[str], scale: Scale, kinds: str = "fc"
) -> dict[str, Any]:
    """The values with the arrays among ``names`` changed that are of such a kind; floats if unsaid.

    Of structs, their fields of that kind.
    """
    rng = np.random.default_rng(len(names))
    return {
        name: _changed(value, scale, rng, kinds)
        if name in names and isinstance(value, np.ndarray)
        else value
        for name, value in values.items()
    }


def has_arrays(values: Mapping[str, Any], names: Collection[str], kinds: str = "fc") -> bool:
    """Whether there is anything among ``names`` to be scaled."""
    arrays = (v for n, v in values.items() if n in names and isinstance(v, np.ndarray))
    return any(kind(a.dtype) in kinds or a.dtype.names is not None for a in arrays)


def _changed(array: Array, scale: Scale, rng: np.random.Generator, kinds: str) -> Array:
    if array.dtype.names is not None:
        structs: Any = array.copy()
        for name in array.dtype.names:
            structs[name] = _changed(structs[name], scale, rng, kinds)
        fresh: Array = structs
        return fresh
    return scale(array, rng) if kind(array.dtype) in kinds and array.size else array
