"""Inputs for each verifying seed: the user's own first, then fresh ones like them."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from optiml_magic.devices.base import Array
from optiml_magic.errors import UsageError
from optiml_magic.model.dtypes import kind
from optiml_magic.model.task import Task
from optiml_magic.problem.libraries import Home, homes, in_numpy

Values = Mapping[str, Any]
_FLOAT = 4  # bytes


@dataclass(frozen=True)
class Border:
    """A task whose arrays are NumPy's, and the ``homes`` of those that came from other libraries.

    ``values`` are its inputs of seed 0, as ``draw`` gives them: drawing large ones again takes
    seconds.
    """

    task: Task
    homes: dict[str, Home]
    values: dict[str, Any]


def at_border(task: Task) -> Border:
    """The task with the arrays of other libraries as NumPy's."""
    given = _called(task, 0) if callable(task.inputs) else task.inputs
    values = in_numpy(given)
    if not callable(task.inputs):
        task = replace(task, inputs=values)
    return Border(task, homes(given), {**values})


def whole_numbers(values: Values) -> dict[str, int]:
    """Those of the values that are whole numbers, by name."""
    return {n: int(v) for n, v in values.items() if isinstance(v, (int, np.integer))}


def with_values(task: Task, values: Values) -> Task:
    """The task whose inputs have these as well, where they have no others."""
    given = task.inputs
    if not callable(given):
        return replace(task, inputs={**values, **given})
    return replace(task, inputs=_Filled(given, values))


@dataclass(frozen=True)
class _Filled:
    call: Callable[..., Mapping[str, Any]]
    values: Values

    def __call__(self, rng: np.random.Generator, **sizes: Any) -> Mapping[str, Any]:
        return {**self.values, **self.call(rng, **sizes)}


def draw(task: Task, seed: int, outputs: Collection[str] = ()) -> dict[str, Any]:
    """The inputs by name for one seed; seed 0 gives plain arrays as the user gave them.

    Of ``outputs`` nobody reads what they hold. Fresh arrays keep dtype, shape, the range of their
    values, and sortedness; permutations stay permutations; scalars stay.
    """
    if callable(task.inputs):
        return in_numpy(_called(task, seed))
    values = dict(task.inputs)
    if seed == 0:
        return values
    rng = np.random.default_rng(seed)
    return {
        name: like(value, rng) if _is_drawn(value) and name not in outputs else value
        for name, value in values.items()
    }


def _is_drawn(value: Any) -> bool:
    return isinstance(value, np.ndarray) and value.ndim > 0


def like(array: Array, rng: np.random.Generator, shape: tuple[int, ...] | None = None) -> Array:
    """A fresh array like ``array``, of its own shape or another; of structs, field by field."""
    return Alike(array).drawn(rng, shape)


class Alike:
    """Draws arrays like one, which may be large: what they share is looked at once."""

    def __init__(self, array: Array) -> None:
        """``array`` stays as it is meanwhile."""
        self._array = array
        self._parts: dict[str, Alike] = {}

    def drawn(self, rng: np.random.Generator, shape: tuple[int, ...] | None = None) -> Array:
        """A fresh one, of its own shape or another; of structs, field by field."""
        array = self._array
        shape = array.shape if shape is None else shape
        if array.dtype.names is not None:
            structs: Any = np.zeros(shape, array.dtype)
            for name in array.dtype.names:
                given: Any = array
                inner = given[name].shape[array.ndim :]  # of a member that is an array
                structs[name] = self._part(name, given[name]).drawn(rng, (*shape, *inner))
            fresh: Array = structs
            return fresh
        if self._is_permutation:
            drawn = rng.permutation(int(np.prod(shape))).reshape(shape)
            return (drawn + int(array.min())).astype(array.dtype)
        fresh = self.filled(rng, shape)
        if self._is_sorted and fresh.size:
            fresh.sort()
            fresh[0], fresh[-1] = (
                array[0],
                array[-1],
            )  # row offsets begin and end where the data does
        return fresh

    def _part(self, name: str, array: Array) -> Alike:
        return self._parts.setdefault(name, Alike(array))

    @cached_property
    def _is_permutation(self) -> bool:
        return _is_permutation(self._array)

    @cached_property
    def _is_sorted(self) -> bool:
        array = self._array
        orders = array.ndim == 1 and array.size > 2 and kind(array.dtype) in "iuf"
        return orders and _is_sorted(array)

    @cached_property
    def _range(self) -> tuple[float, float]:
        return _range(self._array)

    @cached_property
    def _ends(self) -> tuple[Any, Any]:
        return self._array.min(), self._array.max()

    def filled(self, rng: np.random.Generator, shape: tuple[int, ...]) -> Array:
        """One whose values are in the same range, in whatever order."""
        array, dtype = self._array, self._array.dtype
        letter = kind(dtype)
        if letter == "b":
            return rng.integers(0, 2, shape).astype(dtype)
        if not array.size or letter == "V":
            return np.resize(array, shape)
        if letter == "c":
            whole: Any = array
            real = self._part("real", whole.real).filled(rng, shape)
            imaginary = self._part("imag", whole.imag).filled(rng, shape)
            fresh = np.empty(shape, dtype)
            fresh.real, fresh.imag = real, imaginary
            return fresh
        if letter in "iu":
            least, most = self._ends
            return rng.integers(least, most, shape, dtype=dtype.type, endpoint=True)
        low, high = self._range
        width = high - low
        if not np.isfinite(width):  # a mean of the two ends, since their difference overflows
            share = rng.random(shape)
            return np.clip(low * (1 - share) + high * share, low, high).astype(dtype)
        # In place, and for floats in their own precision: arrays of 100 MB are drawn here.
        fresh = rng.random(shape, np.float32 if dtype.itemsize <= _FLOAT else np.float64)
        fresh *= width
        fresh += low
        drawn = fresh.astype(dtype, copy=False)
        return np.clip(drawn, dtype.type(low), dtype.type(high), out=drawn)


def _called(task: Task, seed: int) -> dict[str, Any]:
    assert callable(task.inputs)
    try:
        values = task.inputs(np.random.default_rng(seed), **task.sizes)
    except Exception as cause:
        call = f"inputs({', '.join(['rng', *task.sizes])})"
        raise UsageError(
            f"{call} raised {type(cause).__name__}: {cause}",
            fix="name its sizes in `sizes`, and make it return a dict of arrays and scalars",
        ) from cause
    if not isinstance(values, Mapping):
        raise UsageError(
            f"inputs returned a {type(values).__name__}",
            fix="make it return a dict of arrays and scalars by parameter name",
        )
    return {**task.sizes, **values}


def _range(array: Array) -> tuple[float, float]:
    """The least and the largest finite value."""
    low, high = float(array.min()), float(array.max())
    if not (math.isfinite(low) and math.isfinite(high)):
        finite = array[np.isfinite(array)]
        low, high = (float(finite.min()), float(finite.max())) if finite.size else (0.0, 1.0)
    return low, high


def _is_permutation(array: Array) -> bool:
    """Whether it holds all integers from 0, or from another one where they are not in order."""
    if array.ndim != 1 or array.dtype.kind not in "iu" or array.size < 3:
        return False
    least = int(array.min())
    if least and _is_sorted(array):
        return False
    return bool(np.array_equal(np.sort(array), np.arange(least, least + array.size)))


def _is_sorted(array: Array) -> bool:
    return bool(np.all(np.less_equal(array[:-1], array[1:])) and array[0] != array[-1])
