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

from collections.abc import Collection, Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from optiml_magic.devices.maps import Map, changes, mapped
from optiml_magic.model.dtypes import kind

Maps = Mapping[str, Map]  # by the names of arrays

SCALES: Mapping[str, Map] = {
    "inputs x 3": Map("times", 3.0),
    "inputs x 0.01": Map("times", 0.01),
    "inputs negated": Map("times", -1.0),
    "inputs of mixed signs": Map("signs"),
    "inputs of mixed magnitudes": Map("magnitudes"),
    "inputs x 100": Map("times", 100.0),
    "inputs x 10000": Map("times", 1e4),
    "inputs x 10000, all negative": Map("below", 1e4, "f"),
}

SPARSE: Mapping[str, Map] = {
    "a third of the inputs 0": Map("thirds"),
    "inputs of few values": Map("steps", kinds="f"),
}

INTEGERS: Mapping[str, Map] = {
    "integers of both signs": Map("signs", kinds="iu"),
    "large integers": Map("large", kinds="iu"),
    "integers all alike": Map("alike", kinds="iu"),
}

# One that is written into the kernel as a constant stays.
SCALARS = "float scalars x 0.7"
FACTOR = 0.7
# Where the inputs are small, a small one is no longer lost beside them.
SCALARS_TOO: Mapping[str, tuple[Map | None, float]] = {
    "inputs x 0.01, float scalars x 0.7": (Map("times", 0.01), FACTOR),
    "float scalars x 1000": (None, 1000.0),
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
    return mapped(Map("times", factor), np.array([value]))[0]


def maps(values: Mapping[str, Any], names: Collection[str], change: Map) -> dict[str, Map]:
    """The map for each array among ``names`` that has numbers of its kinds; of structs, fields."""
    arrays = [n for n, v in values.items() if n in names and isinstance(v, np.ndarray) and v.size]
    return {
        name: replace(change, seed=at)
        for at, name in enumerate(arrays)
        if changes(change, values[name].dtype)
    }


def scaled(values: Mapping[str, Any], of: Maps) -> dict[str, Any]:
    """The values with each array changed that has a map."""
    return {n: mapped(of[n], v) if n in of else v for n, v in values.items()}
