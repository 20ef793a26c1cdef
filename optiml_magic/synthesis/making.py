"""Arrays made of sizes and numbers alone."""

from __future__ import annotations

from typing import Any

import numpy as np

from optiml_magic.synthesis.array import Trace, Traced
from optiml_magic.synthesis.graph import Position, indexed
from optiml_magic.synthesis.maps import cast, entering, fitted, full, mapped, operand, where
from optiml_magic.synthesis.refusals import RefusalError
from optiml_magic.synthesis.sizes import WHOLE, Size, axis, constant, polynomial
from optiml_magic.synthesis.table import function
from optiml_magic.synthesis.views import extents

_INT64 = np.dtype(np.int64)


def _filled(value: float) -> Any:
    def made(trace: Trace, shape: Any, dtype: Any = None, *_: Any, **__: Any) -> Traced:
        return Traced(trace, full(value, dtype or float, extents(shape)))

    return made


def _filled_like(value: float) -> Any:
    def made(
        trace: Trace, a: Any, dtype: Any = None, *_: Any, shape: Any = None, **__: Any
    ) -> Traced:
        like = operand(trace, a)
        wanted = like.extents if shape is None else extents(shape)
        return Traced(trace, full(value, dtype or like.dtype, wanted))

    return made


function(np.zeros)(_filled(0))
function(np.empty)(_filled(0))
function(np.ones)(_filled(1))
function(np.zeros_like)(_filled_like(0))
function(np.empty_like)(_filled_like(0))
function(np.ones_like)(_filled_like(1))


@function(np.full)
def filled(trace: Trace, shape: Any, fill_value: Any, dtype: Any = None, **_: Any) -> Traced:
    value = operand(trace, fill_value)
    wanted = value.dtype if dtype is None else np.dtype(dtype)
    return Traced(trace, fitted(trace, entering(value, wanted), extents(shape)))


@function(np.full_like)
def filled_like(trace: Trace, a: Any, fill_value: Any, dtype: Any = None, **_: Any) -> Traced:
    like = operand(trace, a)
    node = entering(operand(trace, fill_value), np.dtype(dtype or like.dtype))
    return Traced(trace, fitted(trace, node, like.extents))


@function(np.array, np.asarray, np.ascontiguousarray, np.asanyarray, np.copy)
def array(
    trace: Trace, value: Any, dtype: Any = None, *, copy: Any = True, ndmin: int = 0, **_: Any
) -> Traced:
    del copy
    given = operand(trace, value)
    wanted = given.dtype if dtype is None else np.dtype(dtype)
    made: Traced = Traced(trace, entering(given, wanted))[(*([None] * (ndmin - given.ndim)), ...)]
    return made


def unchanged(trace: Trace, value: Any, dtype: Any = None, **_: Any) -> Traced:
    """``asarray``: what is an array already stays the same one."""
    if isinstance(value, Traced) and dtype in (None, value.dtype):
        return value
    return array(trace, value, dtype)


function(np.asarray, np.ascontiguousarray, np.asanyarray)(unchanged)


@function(np.arange)
def arange(
    trace: Trace, start: Any, stop: Any = None, step: Any = None, dtype: Any = None, **_: Any
) -> Traced:
    first, last = (0, start) if stop is None else (start, stop)
    by = 1 if step is None else step
    numbers = (first, last, by)
    if not all(isinstance(n, (*WHOLE, np.integer)) for n in numbers):
        if any(isinstance(n, (Size, Traced)) for n in numbers):
            raise RefusalError("`np.arange` in fractions", "scale an `np.arange` of whole numbers")
        places: Any = numbers
        return operand(trace, np.arange(*places, dtype=dtype))
    first, last, by = (n if isinstance(n, WHOLE) else int(n) for n in numbers)
    span = last - first if by > 0 else first - last
    size = by if by > 0 else -by
    count = 0 if span <= 0 else span if size == 1 else (span + size - 1) // size
    shape = (polynomial(count),)
    node = Position(shape, _INT64, polynomial(first) + axis(0) * polynomial(by))
    return Traced(trace, cast(node, dtype or _INT64))


@function(np.linspace)
def linspace(
    trace: Trace,
    start: Any,
    stop: Any,
    num: Any = 50,
    endpoint: Any = True,
    *more: Any,
    dtype: Any = None,
    **others: Any,
) -> Any:
    if any((*more, *others.values())) or operand(trace, start).ndim or operand(trace, stop).ndim:
        return NotImplemented
    places = arange(trace, num)
    step = mapped(trace, np.true_divide, mapped(trace, np.subtract, stop, start),
                  num - 1 if endpoint else num)  # fmt: skip
    spread = mapped(trace, np.add, mapped(trace, np.multiply, places, step), start)
    return Traced(trace, cast(spread.node, dtype or spread.dtype))


def _band(trace: Trace, rows: Any, cols: Any, relation: Any, k: Any) -> Traced:
    """Whether ``column - row`` is in that relation to k, at each place of a matrix."""
    shape = (polynomial(rows), polynomial(cols))
    apart = Traced(trace, Position(shape, _INT64, axis(1) - axis(0)))
    return mapped(trace, relation, apart, k)


@function(np.tri)
def tri(trace: Trace, N: Any, M: Any = None, k: Any = 0, dtype: Any = float, **_: Any) -> Traced:  # noqa: N803
    mask = _band(trace, N, N if M is None else M, np.less_equal, k)
    return Traced(trace, cast(mask.node, dtype))


@function(np.eye)
def eye(trace: Trace, N: Any, M: Any = None, k: Any = 0, dtype: Any = float, **_: Any) -> Traced:  # noqa: N803
    mask = _band(trace, N, N if M is None else M, np.equal, k)
    return Traced(trace, cast(mask.node, dtype))


@function(np.identity)
def identity(trace: Trace, n: Any, dtype: Any = float, **_: Any) -> Traced:
    return eye(trace, n, dtype=dtype or float)


def _triangle(relation: Any) -> Any:
    def made(trace: Trace, m: Any, k: Any = 0) -> Traced:
        value = operand(trace, m)
        mask = _band(trace, value.shape[-2], value.shape[-1], relation, k)
        return where(trace, mask, value, value.dtype.type(0))

    return made


function(np.tril)(_triangle(np.less_equal))
function(np.triu)(_triangle(np.greater_equal))


def _window(*terms: float) -> Any:
    """A sum of cosines over a window, which are 1 in its middle."""

    def made(trace: Trace, M: Any) -> Any:  # noqa: N803  # NumPy's name
        if not isinstance(M, Size) or not M > 1:
            return NotImplemented
        angle = mapped(trace, np.true_divide, arange(trace, 1 - M, M, 2), M - 1)
        result: Any = terms[0]
        for k, factor in enumerate(terms[1:], start=1):
            wave = mapped(trace, np.cos, mapped(trace, np.multiply, angle, np.pi * k))
            result = mapped(trace, np.add, result, mapped(trace, np.multiply, wave, factor))
        return result

    return made


function(np.hanning)(_window(0.5, 0.5))
function(np.hamming)(_window(0.54, 0.46))
function(np.blackman)(_window(0.42, 0.5, 0.08))


class Grid:
    """``mgrid``, or ``ogrid`` where it is not dense."""

    def __init__(self, trace: Trace, *, dense: bool) -> None:
        self._trace = trace
        self._dense = dense

    def __getitem__(self, key: Any) -> Any:
        several = isinstance(key, tuple)
        rows = [self._row(part) for part in (key if several else (key,))]
        if not several:
            return rows[0]
        options = {"indexing": "ij", "sparse": not self._dense}
        made = self._trace.function(np.meshgrid, rows, options)
        return self._trace.function(np.stack, (made,), {}) if self._dense else tuple(made)

    def _row(self, part: slice) -> Any:
        start = 0 if part.start is None else part.start
        if isinstance(part.step, complex):
            return linspace(self._trace, start, part.stop, int(abs(part.step)))
        return arange(self._trace, start, part.stop, part.step)


@function(np.diagflat)
def diagflat(trace: Trace, v: Any, k: int = 0) -> Any:
    return diag(trace, trace.function(np.ravel, (v,), {}), k)


@function(np.diag)
def diag(trace: Trace, v: Any, k: int = 0) -> Any:
    value = operand(trace, v)
    if value.ndim == 2:
        return trace.function(np.diagonal, (value, k), {})
    count = value.shape[0]
    rows = count + (k if k > 0 else -k)
    made = Traced(trace, full(0, value.dtype, (polynomial(rows),) * 2))
    shift = constant(max(k, 0))
    whole = (*value.extents, *value.extents)
    along = mapped(trace, np.equal, Traced(trace, Position(whole, _INT64, axis(0) - axis(1))), 0)
    block = where(trace, along, Traced(trace, indexed(value.node, (axis(0),), whole)),
                  value.dtype.type(0))  # fmt: skip
    start, across = constant(max(-k, 0)), shift
    made.viewed((axis(0) + start, axis(1) + across), whole).put(block.node)
    return made
