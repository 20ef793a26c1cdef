"""Places in sorted tables, and what is made of them: interpolation, quantiles, histograms."""

from __future__ import annotations

from typing import Any

import numpy as np

from optiml_magic.synthesis.array import Trace, Traced, scattered
from optiml_magic.synthesis.evaluate import known
from optiml_magic.synthesis.maps import cast, full, mapped, operand, where
from optiml_magic.synthesis.reductions import axes, kept, mean, reduced
from optiml_magic.synthesis.refusals import RefusalError
from optiml_magic.synthesis.sizes import WHOLE, constant
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
    rising = searchsorted(trace, table, x, "left" if right else "right")
    if numbers is not None and np.all(np.diff(numbers) >= 0):
        return rising
    beyond = np.greater_equal if right else np.greater
    above = mapped(trace, beyond, table, operand(trace, x)[..., None])
    falling = reduced(trace, np.add, above, -1, np.int64)
    return where(trace, mapped(trace, np.greater, table[0], table[-1]), falling, rising)


@function(np.interp)
def interp(
    trace: Trace, x: Any, xp: Any, fp: Any, left: Any = None, right: Any = None, period: Any = None
) -> Any:
    if period is not None:
        return NotImplemented
    at, places, values = (
        Traced(trace, cast(operand(trace, each).node, np.float64)) for each in (x, xp, fp)
    )
    last = places.shape[0] - 1
    below = mapped(trace, np.subtract, searchsorted(trace, places, at, "right"), 1)
    below = mapped(trace, np.maximum, mapped(trace, np.minimum, below, last - 1), 0)
    above = mapped(trace, np.add, below, 1)
    run = mapped(trace, np.subtract, places[above], places[below])
    rise = mapped(trace, np.subtract, values[above], values[below])
    apart = mapped(trace, np.subtract, at, places[below])
    slope = mapped(trace, np.true_divide, rise, run)
    inner = mapped(trace, np.add, mapped(trace, np.multiply, slope, apart), values[below])
    found = where(trace, mapped(trace, np.equal, at, places[-1]), values[-1], inner)
    beyond = mapped(trace, np.greater, at, places[-1])
    found = where(trace, beyond, values[-1] if right is None else right, found)
    before = mapped(trace, np.less, at, places[0])
    return where(trace, before, values[0] if left is None else left, found)


@function(np.quantile)
def quantile(trace: Trace, a: Any, q: Any, axis: Any = None, *, keepdims: Any = False) -> Any:
    """Between two elements in proportion; several are one after the other."""
    shares = known(operand(trace, q).node)
    if shares is None or isinstance(axis, tuple):
        raise RefusalError("a quantile of several axes, or by data", "ask for one after the other")
    if shares.ndim:
        several = [quantile(trace, a, s, axis, keepdims=keepdims) for s in shares]
        return trace.function(np.stack, (several,), {})
    value = operand(trace, a)
    if operand(trace, q).weak is None and value.dtype.kind == "f":
        value = Traced(trace, cast(value.node, np.result_type(value.dtype, shares.dtype)))
    rank, q = value.ndim, shares.item()
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
    result = mapped(trace, np.add, one, more)
    if keepdims is True:
        dropped = tuple(range(rank)) if axis is None else (along,)
        return Traced(trace, kept(result.node, dropped, rank))
    return result


@function(np.percentile)
def percentile(trace: Trace, a: Any, q: Any, axis: Any = None, *, keepdims: Any = False) -> Any:
    share = mapped(trace, np.true_divide, q, 100)
    share.weak = float if operand(trace, q).weak else None
    return quantile(trace, a, share, axis, keepdims=keepdims)


@function(np.histogram)
def histogram(
    trace: Trace,
    a: Any,
    bins: Any = 10,
    range: Any = None,  # noqa: A002  # NumPy's name
    density: Any = None,
    weights: Any = None,
) -> Any:
    """Counts between edges; the last bin has its upper edge as well."""
    if isinstance(bins, WHOLE):
        if range is None:
            raise RefusalError(
                "`np.histogram` whose edges the data decide", "give a number of bins and a `range`"
            )
        edges = operand(trace, np.linspace(float(range[0]), float(range[1]), int(bins) + 1))
    elif not isinstance(bins, str):
        edges = operand(trace, bins)
    else:
        raise RefusalError(f"`np.histogram` with bins by {bins!r}", "give their edges")
    value = Traced(trace, cast(operand(trace, a).node, np.float64))
    flat = trace.function(np.reshape, (value, -1), {})
    place = searchsorted(trace, edges[1:-1], flat, "right")
    inside = mapped(
        trace, np.logical_and, mapped(trace, np.greater_equal, flat, edges[0]),
        mapped(trace, np.less_equal, flat, edges[-1]),
    )  # fmt: skip
    one = Traced(trace, cast(inside.node, np.int64))
    if weights is not None:
        heavy = operand(trace, weights)
        heavy = trace.function(np.reshape, (Traced(trace, heavy.node), -1), {})
        one = where(trace, inside, heavy, heavy.dtype.type(0))
    zeros = full(0, one.dtype, (edges.extents[0] - constant(1),))
    counts = Traced(trace, scattered(zeros, (place.node,), one.node, "add"))
    if density:
        widths = mapped(trace, np.subtract, edges[1:], edges[:-1])
        total = reduced(trace, np.add, counts)
        counts = mapped(trace, np.true_divide, mapped(trace, np.true_divide, counts, widths), total)
    return counts, edges


@function(np.cov)
def cov(
    trace: Trace, m: Any, y: Any = None, rowvar: bool = True, ddof: Any = 1, dtype: Any = None
) -> Any:
    value: Any = operand(trace, m)
    if y is not None or value.ndim != 2:
        raise RefusalError("`np.cov` of anything but a matrix", "give it two axes")
    wanted = dtype or np.result_type(value.dtype, np.float64)
    value = Traced(trace, cast((value if rowvar else value.T).node, wanted))
    apart = mapped(trace, np.subtract, value, mean(trace, value, 1, keepdims=True))
    product = trace.function(np.matmul, (apart, apart.T), {})
    return mapped(trace, np.true_divide, product, value.shape[1] - ddof)


@function(np.isin)
def isin(
    trace: Trace, element: Any, test_elements: Any, *_: Any, invert: bool = False, **__: Any
) -> Any:
    others = trace.function(np.ravel, (operand(trace, test_elements),), {})
    same = mapped(trace, np.equal, operand(trace, element)[..., None], others)
    found = reduced(trace, np.logical_or, same, -1)
    return mapped(trace, np.logical_not, found) if invert else found


def _as_many_as_data_say(name: str) -> Any:
    def refused(*_: Any, **__: Any) -> Any:
        raise RefusalError(
            f"`np.{name}` has as many results as the data say",
            "keep all and choose with `np.where`, or reduce with `where=`",
        )

    return refused


for _name in ("unique", "nonzero", "flatnonzero", "argwhere", "extract", "compress", "trim_zeros",
              "union1d", "intersect1d", "setdiff1d"):  # fmt: skip
    function(getattr(np, _name))(_as_many_as_data_say(_name))
