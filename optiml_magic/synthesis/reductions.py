"""What makes one number of many: sums, extrema, statistics; running sums; order."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from optiml_magic.synthesis.array import Trace, Traced
from optiml_magic.synthesis.graph import Best, Node, Reduce, Scan, Sort, indexed
from optiml_magic.synthesis.maps import cast, delivered, fitted, mapped, operand, where
from optiml_magic.synthesis.refusals import RefusalError
from optiml_magic.synthesis.sizes import Extents, constant
from optiml_magic.synthesis.sizes import axis as here
from optiml_magic.synthesis.table import function

_OF_NUMPY = {
    np.sum: np.add, np.prod: np.multiply, np.max: np.maximum, np.min: np.minimum,
    np.amax: np.maximum, np.amin: np.minimum, np.any: np.logical_or, np.all: np.logical_and,
}  # fmt: skip
_ABSENT: Any = getattr(np, "_NoValue", None)


def axes(axis_: Any, rank: int) -> tuple[int, ...]:
    """The axes meant by ``axis=``, ascending; AxisError where there is none such."""
    if axis_ is None:
        return tuple(range(rank))
    several = axis_ if isinstance(axis_, tuple) else (axis_,)
    for each in several:
        if not -rank <= each < rank:
            raise np.exceptions.AxisError(int(each), rank)
    return tuple(sorted(int(each) % rank for each in several))


def without(shape: Extents, dropped: Sequence[int]) -> Extents:
    """A shape that lacks some axes."""
    return tuple(extent for k, extent in enumerate(shape) if k not in dropped)


def kept(node: Node, dropped: Sequence[int], rank: int) -> Node:
    """A result with its reduced axes again, of extent 1."""
    shape, at = [], []
    left = iter(node.shape)
    for k in range(rank):
        if k in dropped:
            shape.append(constant(1))
        else:
            shape.append(next(left))
            at.append(here(k))
    return indexed(node, tuple(at), tuple(shape))


def reduced(
    trace: Trace,
    ufunc: Any,
    x: Any,
    axis: Any = None,
    dtype: Any = None,
    out: Any = None,
    **options: Any,
) -> Any:
    """``ufunc.reduce``; the options are ``keepdims``, ``initial`` and ``where``."""
    mask, initial = options.get("where", True), options.get("initial", _ABSENT)
    value = operand(trace, x)
    chosen = axes(axis, value.ndim)
    result = ufunc.reduce(np.ones(1, value.dtype), dtype=dtype).dtype
    source = value.node
    if mask is not True:
        source = _masked(trace, ufunc, value, mask, initial).node
    # `logical_or` of numbers asks of each whether it is zero, as the conversion does.
    node: Node = cast(source, result)
    if chosen:
        node = Reduce(without(value.extents, chosen), result, ufunc.__name__, node, chosen)
    done = Traced(trace, node)
    if initial is not _ABSENT and initial is not None:
        done = Traced(trace, cast(mapped(trace, ufunc, done, initial).node, result))
    if options.get("keepdims") is True:
        done = Traced(trace, kept(done.node, chosen, value.ndim))
    return delivered(trace, done, out)


def _masked(trace: Trace, ufunc: Any, value: Traced, mask: Any, initial: Any) -> Traced:
    neutral = ufunc.identity
    if neutral is None:
        if initial in (_ABSENT, None):
            raise ValueError(f"reduction {ufunc.__name__} has no identity: `initial` is missing")
        neutral = initial
    return where(trace, mask, value, np.array(neutral).astype(value.dtype))


def _entry(ufunc: Any) -> Any:
    def called(trace: Trace, a: Any, axis: Any = None, *more: Any, **options: Any) -> Any:
        names = ("dtype", "out") if ufunc in (np.add, np.multiply) else ("out",)
        given = {**options, **dict(zip(names, more, strict=False))}
        return reduced(trace, ufunc, a, axis, **given)

    return called


for _function, _ufunc in _OF_NUMPY.items():
    function(_function)(_entry(_ufunc))


def _count(trace: Trace, value: Traced, chosen: Sequence[int]) -> int:
    count = 1
    for k in chosen:
        count = count * trace.size(value.extents[k])
    return count


@function(np.mean)
def mean(
    trace: Trace,
    a: Any,
    axis: Any = None,
    dtype: Any = None,
    out: Any = None,
    keepdims: Any = False,
    *,
    where: Any = True,
) -> Any:
    value = operand(trace, a)
    inner, result = _precision(value, dtype)
    total = reduced(trace, np.add, value, axis, inner, keepdims=keepdims, where=where)
    count: Any = _count(trace, value, axes(axis, value.ndim))
    if where is not True:
        chosen = Traced(trace, fitted(trace, operand(trace, where).node, value.extents))
        count = reduced(trace, np.add, chosen, axis, np.int64, keepdims=keepdims)
    quotient = mapped(trace, np.true_divide, total, count)
    return delivered(trace, Traced(trace, cast(quotient.node, result)), out)


def _precision(value: Traced, dtype: Any) -> tuple[Any, Any]:
    """What a mean is computed in, and what it is given as: halves are added as floats."""
    result = np.mean(np.ones(1, value.dtype), dtype=dtype).dtype
    return (np.dtype(np.float32) if result == np.float16 else result), result


@function(np.var)
def var(
    trace: Trace,
    a: Any,
    axis: Any = None,
    dtype: Any = None,
    out: Any = None,
    ddof: Any = 0,
    keepdims: Any = False,
    **options: Any,
) -> Any:
    if set(options) - {"correction"}:
        raise RefusalError("`var` with a mask or a mean", "write the sum of squares out")
    value = operand(trace, a)
    inner, result = _precision(value, dtype)
    chosen = axes(axis, value.ndim)
    wide = Traced(trace, cast(value.node, inner))
    middle = mean(trace, wide, axis, keepdims=True)
    apart = mapped(trace, np.subtract, wide, middle)
    total = reduced(trace, np.add, mapped(trace, np.square, apart), axis, keepdims=keepdims)
    count = _count(trace, value, chosen) - options.get("correction", ddof)
    quotient = mapped(trace, np.true_divide, total, count)
    return delivered(trace, Traced(trace, cast(quotient.node, result)), out)


@function(np.std)
def std(trace: Trace, a: Any, *more: Any, **options: Any) -> Any:
    return mapped(trace, np.sqrt, var(trace, a, *more, **options))


@function(np.ptp)
def ptp(trace: Trace, a: Any, axis: Any = None, out: Any = None, keepdims: Any = False) -> Any:
    high, low = (reduced(trace, f, a, axis, keepdims=keepdims) for f in (np.maximum, np.minimum))
    return delivered(trace, mapped(trace, np.subtract, high, low), out)


@function(np.count_nonzero)
def count_nonzero(trace: Trace, a: Any, axis: Any = None, *, keepdims: Any = False) -> Any:
    apart = Traced(trace, cast(operand(trace, a).node, bool))
    return reduced(trace, np.add, apart, axis, np.int64, keepdims=keepdims)


def _best(operation: str) -> Any:
    def called(
        trace: Trace, a: Any, axis: Any = None, out: Any = None, *, keepdims: Any = False
    ) -> Any:
        value = operand(trace, a)
        rank = value.ndim
        if axis is None:
            value = trace.function(np.reshape, (Traced(trace, value.node), -1), {})
        (along,) = axes(0 if axis is None else axis, value.ndim)
        shape = without(value.extents, (along,))
        done: Node = Best(shape, np.dtype(np.int64), operation, value.node, along)
        if keepdims is True:
            done = kept(done, tuple(range(rank)) if axis is None else (along,), rank)
        return delivered(trace, Traced(trace, done), out)

    return called


function(np.argmax)(_best("argmax"))
function(np.argmin)(_best("argmin"))


def accumulated(
    trace: Trace, ufunc: Any, x: Any, axis: Any = 0, dtype: Any = None, out: Any = None
) -> Any:
    """``ufunc.accumulate``."""
    value = operand(trace, x)
    (along,) = axes(axis, value.ndim)
    result = ufunc.accumulate(np.ones(1, value.dtype), dtype=dtype).dtype
    node = Scan(value.extents, result, ufunc.__name__, cast(value.node, result), along)
    return delivered(trace, Traced(trace, node), out)


def _running(ufunc: Any) -> Any:
    def called(trace: Trace, a: Any, axis: Any = None, dtype: Any = None, out: Any = None) -> Any:
        value = operand(trace, a)
        if axis is None:
            value = trace.function(np.reshape, (Traced(trace, value.node), -1), {})
        return accumulated(trace, ufunc, value, 0 if axis is None else axis, dtype, out)

    return called


function(np.cumsum)(_running(np.add))
function(np.cumprod)(_running(np.multiply))


def _sorted(*, places: bool) -> Any:
    def called(trace: Trace, a: Any, axis: Any = -1, **options: Any) -> Any:
        if options.get("order") is not None:
            raise RefusalError("`sort(order=)`", "sort numbers alone")
        value = operand(trace, a)
        if axis is None:
            value = trace.function(np.reshape, (Traced(trace, value.node), -1), {})
        (along,) = axes(-1 if axis is None else axis, value.ndim)
        dtype = np.dtype(np.int64) if places else value.dtype
        return Traced(trace, Sort(value.extents, dtype, value.node, along, places))

    return called


function(np.sort)(_sorted(places=False))
function(np.argsort)(_sorted(places=True))


def _parted(done: Any) -> Any:
    """Sorted wholly, which is one of the orders that a partition may have."""

    def called(trace: Trace, a: Any, kth: Any, axis: Any = -1, *_: Any, **__: Any) -> Any:
        del kth
        return trace.function(done, (a, axis), {})

    return called


function(np.partition)(_parted(np.sort))
function(np.argpartition)(_parted(np.argsort))


@function(np.lexsort)
def lexsort(trace: Trace, keys: Any, axis: Any = -1) -> Any:
    """By the last key, equal ones by the one before: one stable order after the other."""
    first, *rest = (operand(trace, key) for key in keys)
    order = trace.function(np.argsort, (first, axis), {})
    for key in rest:
        by = trace.function(np.take_along_axis, (key, order, axis), {})
        finer = trace.function(np.argsort, (by, axis), {})
        order = trace.function(np.take_along_axis, (order, finer, axis), {})
    return order


@function(np.median)
def median(trace: Trace, a: Any, axis: Any = None, *, keepdims: Any = False) -> Any:
    value = operand(trace, a)
    rank, flat = value.ndim, axis is None
    if flat:
        value = trace.function(np.reshape, (Traced(trace, value.node), -1), {})
    (along,) = axes(0 if flat else axis, value.ndim)
    ordered: Any = trace.function(np.sort, (value, along), {})
    count, before = value.shape[along], (slice(None),) * along
    # Of an odd number both are the one in the middle.
    pair = [ordered[(*before, place)] for place in ((count - 1) // 2, count // 2)]
    result = mean(trace, trace.function(np.stack, (pair,), {}), 0)
    if keepdims is True:
        dropped = tuple(range(rank)) if flat else (along,)
        return Traced(trace, kept(result.node, dropped, rank))
    return result


@function(np.average)
def average(trace: Trace, a: Any, axis: Any = None, weights: Any = None) -> Any:
    value = operand(trace, a)
    if weights is None:
        return mean(trace, value, axis)
    heavy: Any = operand(trace, weights)
    if heavy.ndim != value.ndim:
        (along,) = axes(axis, value.ndim)
        heavy = heavy[(slice(None), *([None] * (value.ndim - 1 - along)))]
    heavy = Traced(trace, fitted(trace, heavy.node, value.extents))
    dtype = np.average(np.ones(1, value.dtype), weights=np.ones(1, heavy.dtype)).dtype
    sums = mapped(trace, np.multiply, value, heavy, dtype=dtype)
    total = reduced(trace, np.add, sums, axis)
    return mapped(trace, np.true_divide, total, reduced(trace, np.add, heavy, axis, dtype))


@function(np.linalg.norm)
def norm(
    trace: Trace,
    x: Any,
    ord: Any = None,  # noqa: A002  # NumPy's name
    axis: Any = None,
    keepdims: Any = False,
) -> Any:
    value = operand(trace, x)
    if isinstance(axis, tuple) or ord not in (None, 2) or (ord and axis is None and value.ndim > 1):
        return NotImplemented
    if value.dtype.kind != "f":
        value = Traced(trace, cast(value.node, np.float64))
    total = reduced(trace, np.add, mapped(trace, np.square, value), axis, keepdims=keepdims)
    return mapped(trace, np.sqrt, total)
