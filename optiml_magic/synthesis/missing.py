"""Reductions that pass over what is missing, which a NaN stands for."""

from __future__ import annotations

from typing import Any

import numpy as np

from optiml_magic.synthesis.array import Trace, Traced
from optiml_magic.synthesis.maps import cast, delivered, mapped, operand, where
from optiml_magic.synthesis.reductions import reduced
from optiml_magic.synthesis.table import function


def _filled(trace: Trace, a: Any, instead: Any) -> Traced:
    value = operand(trace, a)
    if value.dtype.kind != "f":
        return value
    return where(trace, mapped(trace, np.isnan, value), instead, value)


def _ignoring(done: Any, instead: Any) -> Any:
    """A function of what is there, where ``instead`` changes nothing."""

    def called(trace: Trace, a: Any, *more: Any, **options: Any) -> Any:
        return trace.function(done, (_filled(trace, a, instead), *more), options)

    return called


for _function, _done, _instead in (
    (np.nansum, np.sum, 0.0), (np.nanprod, np.prod, 1.0), (np.nancumsum, np.cumsum, 0.0),
    (np.nancumprod, np.cumprod, 1.0), (np.nanargmax, np.argmax, -np.inf),
    (np.nanargmin, np.argmin, np.inf),
):  # fmt: skip
    function(_function)(_ignoring(_done, _instead))


def _extreme(ufunc: Any) -> Any:
    def called(trace: Trace, a: Any, axis: Any = None, out: Any = None, **options: Any) -> Any:
        return reduced(trace, ufunc, a, axis, out=out, **options)

    return called


function(np.nanmax)(_extreme(np.fmax))
function(np.nanmin)(_extreme(np.fmin))


def _there(trace: Trace, value: Traced, axis: Any, keepdims: Any) -> Any:
    """How many are no NaN."""
    present = mapped(trace, np.logical_not, mapped(trace, np.isnan, value))
    return reduced(trace, np.add, present, axis, np.int64, keepdims=keepdims)


@function(np.nanmean)
def nanmean(
    trace: Trace,
    a: Any,
    axis: Any = None,
    dtype: Any = None,
    out: Any = None,
    keepdims: Any = False,
) -> Any:
    value = operand(trace, a)
    if value.dtype.kind != "f":
        return trace.function(np.mean, (value, axis, dtype, out, keepdims), {})
    total = reduced(trace, np.add, _filled(trace, value, 0.0), axis, dtype, keepdims=keepdims)
    quotient = mapped(trace, np.true_divide, total, _there(trace, value, axis, keepdims))
    return delivered(trace, Traced(trace, cast(quotient.node, total.dtype)), out)


@function(np.nanvar)
def nanvar(
    trace: Trace,
    a: Any,
    axis: Any = None,
    dtype: Any = None,
    out: Any = None,
    ddof: Any = 0,
    keepdims: Any = False,
) -> Any:
    value = operand(trace, a)
    if value.dtype.kind != "f":
        return trace.function(np.var, (value, axis, dtype, out, ddof, keepdims), {})
    apart = mapped(trace, np.subtract, value, nanmean(trace, value, axis, dtype, keepdims=True))
    squares = mapped(trace, np.square, _filled(trace, apart, 0.0))
    total = reduced(trace, np.add, squares, axis, keepdims=keepdims)
    count = mapped(trace, np.subtract, _there(trace, value, axis, keepdims), ddof)
    quotient = mapped(trace, np.true_divide, total, count)
    return delivered(trace, Traced(trace, cast(quotient.node, total.dtype)), out)


@function(np.nanstd)
def nanstd(trace: Trace, a: Any, *more: Any, **options: Any) -> Any:
    return mapped(trace, np.sqrt, nanvar(trace, a, *more, **options))
