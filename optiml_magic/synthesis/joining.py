"""Arrays put together, padded, gathered and counted."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from optiml_magic.kernels.polynomial import Polynomial
from optiml_magic.synthesis.array import Trace, Traced, scattered
from optiml_magic.synthesis.graph import Map, Node, Place, Position, indexed
from optiml_magic.synthesis.indexing import wrapped
from optiml_magic.synthesis.maps import (
    cast,
    common,
    entering,
    fitted,
    full,
    mapped,
    operand,
    together,
    where,
)  # fmt: skip
from optiml_magic.synthesis.reductions import axes, without
from optiml_magic.synthesis.refusals import RefusalError
from optiml_magic.synthesis.sizes import WHOLE, Extents, constant, polynomial, quotient, remainder
from optiml_magic.synthesis.sizes import axis as here
from optiml_magic.synthesis.table import function

_INT64 = np.dtype(np.int64)
_ONE = constant(1)


@function(np.concatenate, getattr(np, "concat", None))
def concatenate(
    trace: Trace, arrays: Sequence[Any], axis: Any = 0, out: Any = None, dtype: Any = None
) -> Traced:
    if out is not None:
        raise RefusalError("`concatenate(out=)`", "assign its result to a slice")
    values = [operand(trace, x) for x in arrays]
    if axis is None:
        values = [trace.function(np.ravel, (Traced(trace, x.node),), {}) for x in values]
    (along,) = axes(0 if axis is None else axis, values[0].ndim)
    result = np.dtype(dtype) if dtype is not None else common(values)
    rest = values[0].extents
    total = constant(0)
    for value in values:
        if value.ndim != len(rest):
            raise ValueError("all the input array dimensions must match exactly")
        total = total + value.extents[along]
    shape = (*rest[:along], total, *rest[along + 1 :])
    whole = full(0, result, shape)
    start = constant(0)
    for value in values:
        own = (*rest[:along], value.extents[along], *rest[along + 1 :])
        node = fitted(trace, cast(value.node, result), own)
        at = tuple(here(k) + start if k == along else here(k) for k in range(len(shape)))
        whole = scattered(whole, at, node, "set")
        start = start + value.extents[along]
    return Traced(trace, whole)


@function(np.stack)
def stack(trace: Trace, arrays: Sequence[Any], axis: int = 0, **options: Any) -> Traced:
    values = [operand(trace, x) for x in arrays]
    rank = values[0].ndim + 1
    (along,) = axes(axis, rank)
    key = tuple(None if k == along else slice(None) for k in range(rank))
    dtype = options.pop("dtype", None) or common(values)
    thick = [Traced(trace, entering(x, np.dtype(dtype)))[key] for x in values]
    return concatenate(trace, thick, along, **options)


@function(np.vstack)
def vstack(trace: Trace, tup: Sequence[Any]) -> Traced:
    values = [operand(trace, x) for x in tup]
    return concatenate(trace, [x[None] if x.ndim == 1 else x for x in values], 0)


@function(np.hstack)
def hstack(trace: Trace, tup: Sequence[Any]) -> Traced:
    values = [operand(trace, x) for x in tup]
    return concatenate(trace, values, 0 if values[0].ndim == 1 else 1)


@function(np.pad)
def pad(
    trace: Trace,
    array: Any,
    pad_width: Any,
    mode: str = "constant",
    constant_values: Any = 0,
    **options: Any,
) -> Any:
    x = operand(trace, array)
    if options or mode not in ("constant", "edge", "reflect", "symmetric", "wrap"):
        raise RefusalError(f"`np.pad` in mode {mode!r}", "pad by constants, edges or mirrors")
    if not isinstance(constant_values, (int, float, np.generic)):
        raise RefusalError("`np.pad` with several constants", "pad one side after the other")
    shape = list(x.extents)
    at: list[Place] = []
    inside: list[Node] = []
    for k, (before, after) in enumerate(_widths(pad_width, x.ndim)):
        extent = x.extents[k]
        shape[k] = extent + polynomial(before) + polynomial(after)
        at.append(here(k) - polynomial(before))
    whole = tuple(shape)
    places = list(at)
    for k, extent in enumerate(x.extents):
        if whole[k] == extent:
            continue
        lies = _position(trace, at[k], whole)
        if mode == "constant":
            inside.append(mapped(trace, np.greater_equal, lies, 0).node)
            inside.append(mapped(trace, np.less, lies, trace.size(extent)).node)
        places[k] = _brought(trace, lies, at[k], extent, mode)
    node = indexed(x.node, tuple(places), whole)
    if not inside:
        return Traced(trace, node)
    mask = inside[0]
    for more in inside[1:]:
        mask = Map(whole, np.dtype(bool), "logical_and", (mask, more))
    outside = np.array(constant_values).astype(x.dtype)
    return where(trace, Traced(trace, mask), Traced(trace, node), outside[()])


def _position(trace: Trace, expression: Any, shape: Extents) -> Traced:
    return Traced(trace, Position(shape, _INT64, expression))


def _brought(trace: Trace, lies: Traced, at: Any, extent: Polynomial, mode: str) -> Place:
    """A place of the padded array as one of the array: by its edge, a mirror, or in a circle."""
    last = trace.size(extent - _ONE)
    if mode == "wrap":
        return remainder(at, extent)
    alone = mode == "reflect" and not trace.size(extent) > 1  # NumPy repeats it then
    if mode in ("constant", "edge") or alone:
        return mapped(trace, np.minimum, mapped(trace, np.maximum, lies, 0), last).node
    # A period of the mirrored array: there and back, with the ends once or twice.
    period = (extent - _ONE if mode == "reflect" else extent) * constant(2)
    turned = _position(trace, remainder(at, period), lies.extents)
    ends = trace.size(period - (constant(0) if mode == "reflect" else _ONE))
    return mapped(trace, np.minimum, turned, mapped(trace, np.subtract, ends, turned)).node


def _widths(given: Any, rank: int) -> list[tuple[int, int]]:
    if isinstance(given, dict):
        pairs: dict[int, Any] = {int(k) % rank: v for k, v in given.items()}
        return [_widths(pairs.get(k, 0), 1)[0] for k in range(rank)]
    if isinstance(given, np.ndarray):
        given = given.tolist()
    if isinstance(given, WHOLE):
        return [(given, given)] * rank
    if isinstance(given[0], WHOLE):
        pair = (given[0], given[-1])
        return [pair] * rank
    rows = [(row[0], row[-1]) for row in given]
    return rows * rank if len(rows) == 1 else rows


@function(np.take)
def take(
    trace: Trace, a: Any, indices: Any, axis: Any = None, out: Any = None, mode: str = "raise"
) -> Any:
    if out is not None:
        raise RefusalError("`np.take` with `out`", "write it as a subscript")
    x = operand(trace, a)
    if axis is None:
        x, axis = trace.function(np.ravel, (Traced(trace, x.node),), {}), 0
    (along,) = axes(axis, x.ndim)
    chosen: Any = operand(trace, indices) if mode != "raise" else indices
    if mode == "wrap":
        chosen = mapped(trace, np.remainder, chosen, x.shape[along])
    elif mode == "clip":
        chosen = trace.function(np.clip, (chosen, 0, x.shape[along] - 1), {})
    elif isinstance(indices, (list, tuple)):
        chosen = operand(trace, indices)
    return x[(*((slice(None),) * along), chosen)]


@function(np.take_along_axis)
def take_along_axis(trace: Trace, arr: Any, indices: Any, axis: Any = -1) -> Traced:
    x, given = operand(trace, arr), operand(trace, indices)
    if axis is None:
        x, axis = trace.function(np.ravel, (Traced(trace, x.node),), {}), 0
    (along,) = axes(axis, x.ndim)
    rest = together(trace, [without(x.extents, (along,)), without(given.extents, (along,))])
    shape = (*rest[:along], given.extents[along], *rest[along:])
    node = wrapped(trace, fitted(trace, cast(given.node, np.int64), shape), x.extents[along])
    at: list[Place] = [constant(0) if x.extents[k] == _ONE else here(k) for k in range(len(shape))]
    at[along] = node
    return Traced(trace, indexed(x.node, tuple(at), shape))


@function(np.bincount)
def bincount(trace: Trace, x: Any, weights: Any = None, minlength: Any = 0) -> Traced:
    places = operand(trace, x)
    if not isinstance(minlength, WHOLE) or minlength == 0:
        raise RefusalError(
            "`np.bincount` without `minlength` has as many results as the data say",
            "give `minlength`, above all that is counted",
        )
    if places.dtype.kind not in "iub" or places.ndim != 1:
        raise TypeError("bincount counts whole numbers of one axis")
    shape = (polynomial(minlength),)
    one = full(1, np.int64, places.extents)
    if weights is not None:
        one = fitted(trace, cast(operand(trace, weights).node, np.float64), places.extents)
    at = cast(places.node, np.int64)
    return Traced(trace, scattered(full(0, one.dtype, shape), (at,), one, "add"))


@function(np.unravel_index)
def unravel_index(trace: Trace, indices: Any, shape: Any) -> Any:
    left = operand(trace, indices)
    found: list[Any] = []
    for extent in reversed(shape[1:]):
        found.insert(0, mapped(trace, np.remainder, left, extent))
        left = mapped(trace, np.floor_divide, left, extent)
    return (left, *found)


@function(np.meshgrid)
def meshgrid(trace: Trace, *xi: Any, indexing: str = "xy", **options: Any) -> list[Traced]:
    values = [operand(trace, x) for x in xi]
    order = list(range(len(values)))
    if indexing == "xy" and len(order) > 1:
        order[0], order[1] = 1, 0
    shape = tuple(values[order.index(k)].extents[0] for k in range(len(order)))
    if options.get("sparse"):
        alone = [tuple(slice(None) if k == j else None for j in range(len(order))) for k in order]
        return [x[key] for x, key in zip(values, alone, strict=True)]
    return [Traced(trace, indexed(x.node, (here(order[k]),), shape)) for k, x in enumerate(values)]


@function(np.kron)
def kron(trace: Trace, a: Any, b: Any) -> Traced:
    sides = operand(trace, a), operand(trace, b)
    rank = max(x.ndim for x in sides)
    one, two = (x[(*([None] * (rank - x.ndim)), ...)] for x in sides)
    shape = tuple(p * q for p, q in zip(one.extents, two.extents, strict=True))
    outer = tuple(quotient(here(k), extent) for k, extent in enumerate(two.extents))
    inner = tuple(remainder(here(k), extent) for k, extent in enumerate(two.extents))
    pair = (indexed(one.node, outer, shape), indexed(two.node, inner, shape))
    return mapped(trace, np.multiply, *(Traced(trace, side) for side in pair))


@function(np.block)
def block(trace: Trace, arrays: Any) -> Any:
    def depth(part: Any) -> int:
        return 1 + depth(part[0]) if isinstance(part, list) else 0

    def rank(part: Any) -> int:
        return max(map(rank, part)) if isinstance(part, list) else operand(trace, part).ndim

    most = max(depth(arrays), rank(arrays))

    def joined(part: Any, level: int) -> Any:
        if isinstance(part, list):
            return concatenate(trace, [joined(x, level - 1) for x in part], -level)
        value = operand(trace, part)
        return value[(*([None] * (most - value.ndim)), ...)]

    return joined(arrays, depth(arrays))


@function(np.packbits)
def packbits(trace: Trace, a: Any, axis: Any = None, bitorder: str = "big") -> Any:
    x = operand(trace, a)
    if axis is None:
        x, axis = trace.function(np.ravel, (Traced(trace, x.node),), {}), 0
    (along,) = axes(axis, x.ndim)
    x = Traced(trace, cast(cast(x.node, bool), np.uint8))
    wide = [(0, 0)] * x.ndim
    wide[along] = (0, -x.shape[along] % 8)
    x = trace.function(np.pad, (x, wide), {})
    count = x.shape[along] // 8
    bits = x.reshape((*x.shape[:along], count, 8, *x.shape[along + 1 :]))
    order = range(8)[::-1] if bitorder == "big" else range(8)
    heavy = np.array([1 << k for k in order], np.uint8).reshape(8, *([1] * (x.ndim - along - 1)))
    return trace.function(np.sum, (mapped(trace, np.multiply, bits, heavy),),
                          {"axis": along + 1, "dtype": np.uint8})  # fmt: skip


@function(np.unpackbits)
def unpackbits(
    trace: Trace, a: Any, axis: Any = None, count: Any = None, bitorder: str = "big"
) -> Any:
    x = operand(trace, a)
    if axis is None:
        x, axis = trace.function(np.ravel, (Traced(trace, x.node),), {}), 0
    (along,) = axes(axis, x.ndim)
    order = range(8)[::-1] if bitorder == "big" else range(8)
    shifts = np.array(order, np.uint8).reshape(8, *([1] * (x.ndim - along - 1)))
    bits = mapped(trace, np.right_shift, trace.function(np.expand_dims, (x, along + 1), {}), shifts)
    bits = mapped(trace, np.bitwise_and, bits, np.uint8(1))
    flat = bits.reshape((*x.shape[:along], x.shape[along] * 8, *x.shape[along + 1 :]))
    return flat[(*([slice(None)] * along), slice(0, count))] if count is not None else flat
