"""Places in sorted tables, and what is made of them: interpolation, quantiles, histograms."""

from __future__ import annotations

from typing import Any

import numpy as np

from optiml_magic.synthesis.array import Trace, Traced, scattered
from optiml_magic.synthesis.evaluate import known
from optiml_magic.synthesis.maps import cast, full, mapped, operand, where
from optiml_magic.synthesis.reductions import axes, mean, reduced
from optiml_magic.synthesis.refusals import RefusalError
from optiml_magic.synthesis.sizes import constant
from optiml_magic.synthesis.table import function


@function(np.searchsorted)
def searchsorted(trace: Trace, a: Any, v: Any, side: str = "left") -> Any:
    """How many come before; each element is compared with all of the table."""
    table, values = operand(trace, a), operand(trace, v)
    before = np.less if side == "left" else np.less_equal
    smaller = mapped(trace, before, table, values[..., None])
    return reduced(trace, np.add, smaller, -1, np.int64)


@function(np.digitize)
def digitize(trace: Trace, x: Any, bins: Any, right: bool = False) -> Any:
    table = operand(trace, bins)
    numbers = known(table.node)
    if numbers is None or np.any(np.diff(numbers) < 0):
        raise RefusalError(
            "`np.digitize` into bins that may fall", "Use `np.searchsorted` of bins that rise."
        )
    return searchsorted(trace, table, x, "left" if right else "right")


@function(np.interp)
def interp(trace: Trace, x: Any, xp: Any, fp: Any) -> Any:
    at, places, values = (
        Traced(trace, cast(operand(trace, each).node, np.float64)) for each in (x, xp, fp)
    )
    last = places.shape[0] - 1
    below = mapped(trace, np.subtract, searchsorted(trace, places, at, "right"), 1)
    below = mapped(trace, np.minimum, mapped(trace, np.maximum, below, 0), last - 1)
    above = mapped(trace, np.add, below, 1)
    run = mapped(trace, np.subtract, places[above], places[below])
    rise = mapped(trace, np.subtract, values[above], values[below])
    apart = mapped(trace, np.subtract, at, places[below])
    slope = mapped(trace, np.true_divide, rise, run)
    inner = mapped(trace, np.add, mapped(trace, np.multiply, slope, apart), values[below])
    right = where(trace, mapped(trace, np.greater_equal, at, places[-1]), values[-1], inner)
    return where(trace, mapped(trace, np.less, at, places[0]), values[0], right)


@function(np.quantile)
def quantile(trace: Trace, a: Any, q: Any, axis: Any = None) -> Any:
    """One quantile, between two elements in proportion."""
    if not isinstance(q, (int, float)) or isinstance(axis, tuple):
        raise RefusalError("several quantiles, or axes, at once", "Ask for one after the other.")
    value = operand(trace, a)
    if axis is None:
        value = trace.function(np.reshape, (Traced(trace, value.node), -1), {})
    (along,) = axes(0 if axis is None else axis, value.ndim)
    ordered: Any = trace.function(np.moveaxis, (trace.function(np.sort, (value, along), {}), along,
                                                -1), {})  # fmt: skip
    last = value.shape[along] - 1
    place = mapped(trace, np.multiply, last, float(q))
    low = mapped(trace, np.floor, place)
    first = Traced(trace, cast(low.node, np.int64))
    second = mapped(trace, np.minimum, mapped(trace, np.add, first, 1), last)
    share = Traced(trace, cast(mapped(trace, np.subtract, place, low).node, ordered.dtype))
    one, two = ordered[..., first], ordered[..., second]
    more = mapped(trace, np.multiply, mapped(trace, np.subtract, two, one), share)
    return mapped(trace, np.add, one, more)


@function(np.percentile)
def percentile(trace: Trace, a: Any, q: Any, axis: Any = None) -> Any:
    return quantile(trace, a, q / 100 if isinstance(q, (int, float)) else q, axis)


@function(np.histogram)
def histogram(trace: Trace, a: Any, bins: Any = 10, range: Any = None) -> Any:  # noqa: A002
    """Counts between edges that are known; the last bin has its upper edge as well."""
    if not isinstance(bins, int) or range is None:
        raise RefusalError(
            "`np.histogram` whose edges the data decide", "Give a number of bins and a `range`."
        )
    low, high = map(float, range)
    edges = np.linspace(low, high, bins + 1)
    value = Traced(trace, cast(operand(trace, a).node, np.float64))
    flat = trace.function(np.reshape, (value, -1), {})
    place = searchsorted(trace, edges[1:-1], flat, "right")
    inside = mapped(
        trace, np.logical_and, mapped(trace, np.greater_equal, flat, low),
        mapped(trace, np.less_equal, flat, high),
    )  # fmt: skip
    one = cast(inside.node, np.int64)
    zeros = full(0, np.int64, (constant(bins),))
    return Traced(trace, scattered(zeros, (place.node,), one, "add")), operand(trace, edges)


@function(np.cov)
def cov(trace: Trace, m: Any, rowvar: bool = True) -> Any:
    value: Any = operand(trace, m)
    if value.ndim != 2:
        raise RefusalError("`np.cov` of anything but a matrix", "Give it two axes.")
    value = Traced(trace, cast((value if rowvar else value.T).node, np.float64))
    apart = mapped(trace, np.subtract, value, mean(trace, value, 1, keepdims=True))
    product = trace.function(np.matmul, (apart, apart.T), {})
    return mapped(trace, np.true_divide, product, value.shape[1] - 1)
