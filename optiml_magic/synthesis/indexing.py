"""Subscripts as maps from the indices of a result to places in an array."""

from __future__ import annotations

import operator
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from optiml_magic.kernels.polynomial import Polynomial
from optiml_magic.synthesis.array import Trace, Traced, scattered
from optiml_magic.synthesis.graph import (
    Best,
    Constant,
    Index,
    Map,
    Node,
    Place,
    Position,
    Reduce,
    Sort,
    indexed,
)  # fmt: skip
from optiml_magic.synthesis.maps import cast, fitted, full, mapped, operand, together, where
from optiml_magic.synthesis.refusals import RefusalError
from optiml_magic.synthesis.sizes import (
    WHOLE,
    Extents,
    axes_of,
    axis,
    constant,
    polynomial,
    substituted,
)  # fmt: skip
from optiml_magic.synthesis.table import function


@dataclass(frozen=True)
class Selection:
    """The places of a subscript: one for each axis of the array; the shape of what it selects."""

    at: tuple[Place, ...]
    shape: Extents
    copies: bool


@function(operator.getitem)
def taken(trace: Trace, x: Traced, key: Any) -> Any:
    keys = _counted(trace, key)
    if any(_is_mask(trace, part) for part in keys):
        raise RefusalError(
            "a mask selects as many elements as the data say",
            "keep all and choose with `np.where`, or reduce with `where=`",
        )
    chosen = selected(trace, x.extents, keys)
    number = not chosen.shape and not any(part is Ellipsis for part in keys)
    if chosen.copies or number:
        return Traced(trace, indexed(x.node, chosen.at, chosen.shape))
    return x.viewed(chosen.at, chosen.shape)


@function(operator.setitem)
def assigned(trace: Trace, x: Traced, key: Any, value: Any) -> None:
    keys = _counted(trace, key)
    given = operand(trace, value)
    if any(_is_mask(trace, part) for part in keys):
        mask = operand(trace, keys[0])
        if len(keys) > 1 or mask.ndim > x.ndim or given.ndim:
            raise RefusalError(
                "it assigns to as many elements as the data say",
                "assign one number under a mask, or choose with `np.where`",
            )
        wide = (*mask.extents, *([constant(1)] * (x.ndim - mask.ndim)))
        at = tuple(axis(k) for k in range(mask.ndim))
        over = Traced(trace, indexed(mask.node, at, wide))
        x.put(where(trace, over, Traced(trace, cast(given.node, x.dtype)), x).node)
        return
    chosen = selected(trace, x.extents, keys)
    if not _apart(chosen):
        raise RefusalError(
            "it assigns at places that the data tell: equal ones have no order on a GPU",
            "add with `np.add.at`, or count with `np.bincount`",
        )
    if not given.views(x, chosen.at):
        values = fitted(trace, cast(given.node, x.dtype), chosen.shape)
        x.put(scattered(x.node, chosen.at, values, "set"))


def _apart(chosen: Selection) -> bool:
    """Whether no two indices have the same places: each axis has a place of its own."""
    own = [axes_of(place) for place in chosen.at if isinstance(place, Polynomial)]
    moving = {k for k, extent in enumerate(chosen.shape) if extent != constant(1)}
    return all(frozenset({k}) in own for k in moving)


def added(trace: Trace, ufunc: Any, x: Any, key: Any, values: Any = None) -> None:
    """``ufunc.at``."""
    if not isinstance(x, Traced) or ufunc.nin != 2:
        raise RefusalError(
            f"`np.{ufunc.__name__}.at` on a plain array",
            "make the array in the reference, by `np.zeros` for example",
        )
    chosen = selected(trace, x.extents, key if isinstance(key, tuple) else (key,))
    given = fitted(trace, cast(operand(trace, values).node, x.dtype), chosen.shape)
    x.put(scattered(x.node, chosen.at, given, ufunc.__name__))


def selected(trace: Trace, extents: Extents, keys: Sequence[Any]) -> Selection:
    """What a subscript selects from an array of these extents; IndexError where it cannot."""
    keys = _complete(keys, len(extents))
    arrays = {k: operand(trace, part) for k, part in enumerate(keys) if _is_array(part)}
    if arrays:  # then whole numbers are arrays as well
        arrays |= {k: operand(trace, p) for k, p in enumerate(keys) if _is_number(p)}
    wide = together(trace, [x.extents for x in arrays.values()])
    order = sorted(arrays)
    apart = [k for k in order if k - 1 not in arrays]
    first = 0 if len(apart) > 1 else sum(not _is_number(part) for part in keys[: min(order or [0])])
    shape: list[Polynomial] = []
    at: list[Place] = []
    lying: dict[int, tuple[Traced, Polynomial]] = {}
    source = iter(extents)
    for k, part in enumerate(keys):
        here = axis(len(shape) + (len(wide) if arrays and len(shape) >= first else 0))
        if part is None:
            shape.append(constant(1))
        elif k in arrays:
            lying[len(at)] = (arrays[k], next(source))
            at.append(constant(0))
        elif isinstance(part, slice):
            start, step, count = _sliced(trace.size(next(source)), part)
            at.append(polynomial(start) + here * constant(step))
            shape.append(polynomial(count))
        else:
            at.append(polynomial(_wrapped(trace.size(next(source)), part)))
    whole = (*shape[:first], *wide, *shape[first:])
    moved = tuple(axis(first + k) for k in range(len(wide)))
    for k, (values, extent) in lying.items():
        at[k] = _gathered(trace, values, extent, wide, moved, whole)
    return Selection(tuple(at), whole, bool(arrays))


def _gathered(
    trace: Trace,
    values: Traced,
    extent: Polynomial,
    wide: Extents,
    moved: tuple[Polynomial, ...],
    whole: Extents,
) -> Place:
    """Where an axis is read, by values that are broadcast to ``wide``, in terms of all indices."""
    if values.dtype.kind not in "iu":
        raise IndexError("only integers are subscripts")
    node = fitted(trace, cast(values.node, np.int64), wide)
    if isinstance(node, Position):
        if not axes_of(node.expression):
            return polynomial(_wrapped(trace.size(extent), trace.size(node.expression)))
        least = substituted(node.expression, {f"${k}": constant(0) for k in range(len(wide))})
        rises = all(
            factor > 0 for m, factor in node.expression.terms if any(s[0] == "$" for s in m)
        )
        quotients = any("//" in symbol for symbol in node.expression.symbols)
        if rises and not quotients and trace.size(least) >= 0:
            return substituted(node.expression, {f"${k}": p for k, p in enumerate(moved)})
    if values.dtype.kind == "i":
        node = wrapped(trace, node, extent)
    return indexed(node, moved, whole)


def wrapped(trace: Trace, places: Node, extent: Polynomial) -> Node:
    """Negative places count from the end, where there may be any."""
    if never_negative(places):
        return places
    within = Traced(trace, places)
    end = Traced(trace, Position((), places.dtype, extent))
    below = Map(places.shape, np.dtype(bool), "less", (places, full(0, np.int64, places.shape)))
    return where(trace, Traced(trace, below), mapped(trace, np.add, within, end), within).node


def never_negative(node: Node) -> bool:
    """Whether a node is below zero nowhere, whatever the data are."""
    match node:
        case Constant():
            return bool(np.all(node.value >= 0))
        case Best() | Sort(places=True):
            return True
        case Index():
            return never_negative(node.source)
        case Reduce(operation="add" | "maximum" | "minimum") if node.dtype == np.int64:
            return never_negative(node.source)
        case Map(operation="cast", arguments=(inner,)):
            fits = inner.dtype.kind == "i" and inner.dtype.itemsize <= node.dtype.itemsize
            return inner.dtype.kind in "bu" or (fits and never_negative(inner))
        case Map(operation="maximum" | "bitwise_and"):
            return any(map(never_negative, node.arguments))
        case Map(operation="minimum" | "floor_divide" | "right_shift"):
            return all(map(never_negative, node.arguments))
        case Map(operation="add") if node.dtype == np.int64:
            return all(map(never_negative, node.arguments))
        case Map(operation="absolute"):
            return node.dtype.itemsize >= 4  # the least number is outside of any array
        case Map(operation="remainder"):
            return never_negative(node.arguments[1])
        case Map(operation="where"):
            return all(map(never_negative, node.arguments[1:]))
        case Position():
            return not axes_of(node.expression) and all(f > 0 for _, f in node.expression.terms)
    return False


def _complete(keys: Sequence[Any], rank: int) -> tuple[Any, ...]:
    """With a full slice for each axis that the subscript says nothing of."""
    named = sum(part is not None and part is not Ellipsis for part in keys)
    if named > rank:
        raise IndexError(f"too many subscripts: {named} of an array of {rank} axes")
    rest = [slice(None)] * (rank - named)
    dots = [k for k, part in enumerate(keys) if part is Ellipsis]
    if not dots:
        return (*keys, *rest)
    return (*keys[: dots[0]], *rest, *keys[dots[0] + 1 :])


def _is_number(part: Any) -> bool:
    return isinstance(part, (*WHOLE, np.integer)) and not isinstance(part, (bool, np.bool_))


def _is_array(part: Any) -> bool:
    return isinstance(part, (Traced, np.ndarray, list))


def _counted(trace: Trace, key: Any) -> tuple[Any, ...]:
    """The parts of a subscript, with masks that are known as the places where they hold."""
    parts: list[Any] = []
    for part in key if isinstance(key, tuple) else (key,):
        held = operand(trace, part).numbers() if _is_mask(trace, part) else None
        parts += [part] if held is None or not held.ndim else np.nonzero(held)
    return tuple(parts)


def _is_mask(trace: Trace, part: Any) -> bool:
    return isinstance(part, (bool, np.bool_)) or (
        _is_array(part) and operand(trace, part).dtype.kind == "b"
    )


def _wrapped(extent: int, at: Any) -> int:
    """A subscript that may count from the end; IndexError beyond the axis."""
    if not _is_number(at):
        raise RefusalError(f"a subscript of type {type(at).__name__}", "use numbers and slices")
    number = at if isinstance(at, WHOLE) else int(at)
    if number < 0:
        number = number + extent
    if not number >= 0 or not number < extent:
        raise IndexError(f"subscript {at} is out of bounds for {extent} elements")
    return number


def _sliced(extent: int, part: slice) -> tuple[int, int, int]:
    """Where a slice starts, its step and its count, as ``slice.indices`` of sizes."""
    step = 1 if part.step is None else int(part.step)
    if step == 0:
        raise ValueError("slice step cannot be zero")
    low, high = (0, extent) if step > 0 else (-1, extent - 1)
    start = (low if step > 0 else high) if part.start is None else _end(part.start, extent, step)
    stop = (high if step > 0 else low) if part.stop is None else _end(part.stop, extent, step)
    span = stop - start if step > 0 else start - stop
    if part.start is None and part.stop is None:
        size = abs(step)
        return start, step, extent if size == 1 else (extent + size - 1) // size
    if span <= 0:
        return 0, step, 0
    return start, step, span if abs(step) == 1 else (span + abs(step) - 1) // abs(step)


def _end(at: Any, extent: int, step: int) -> int:
    """An end of a slice, clipped to the axis."""
    if not _is_number(at):
        at = operator.index(at)
    number: int = at if isinstance(at, WHOLE) else int(at)
    low, high = (0, extent) if step > 0 else (-1, extent - 1)
    if number < 0:
        number = number + extent
    if number < low:
        return low
    return min(number, high)
