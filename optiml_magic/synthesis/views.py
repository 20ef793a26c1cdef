"""The same elements in another arrangement."""

from __future__ import annotations

import operator
from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np

from optiml_magic.kernels.polynomial import Polynomial
from optiml_magic.synthesis.array import Trace, Traced
from optiml_magic.synthesis.evaluate import known
from optiml_magic.synthesis.graph import Node, Place, indexed
from optiml_magic.synthesis.maps import fitted, operand, together
from optiml_magic.synthesis.reductions import axes
from optiml_magic.synthesis.refusals import RefusalError
from optiml_magic.synthesis.sizes import (
    WHOLE,
    Extents,
    bare,
    constant,
    polynomial,
    quotient,
    remainder,
    within,
)  # fmt: skip
from optiml_magic.synthesis.sizes import axis as here
from optiml_magic.synthesis.table import function

_ONE = constant(1)


def arranged(x: Traced, order: Sequence[int]) -> Traced:
    """Axis k of the result is axis ``order[k]``."""
    at = tuple(here(order.index(k)) for k in range(x.ndim))
    return x.viewed(at, tuple(x.extents[k] for k in order))


@function(np.transpose, getattr(np, "permute_dims", None))
def transpose(trace: Trace, a: Any, axes: Any = None) -> Traced:
    x = operand(trace, a)
    order = list(range(x.ndim))[::-1] if axes is None else [int(k) % x.ndim for k in axes]
    if sorted(order) != list(range(x.ndim)):
        raise ValueError("axes don't match array")
    return arranged(x, order)


@function(np.swapaxes)
def swapaxes(trace: Trace, a: Any, axis1: int, axis2: int) -> Traced:
    x = operand(trace, a)
    (one,), (two,) = axes(axis1, x.ndim), axes(axis2, x.ndim)
    order = list(range(x.ndim))
    order[one], order[two] = two, one
    return arranged(x, order)


@function(np.moveaxis)
def moveaxis(trace: Trace, a: Any, source: Any, destination: Any) -> Traced:
    x = operand(trace, a)
    moved = [int(k) % x.ndim for k in (source if isinstance(source, (tuple, list)) else (source,))]
    ends = destination if isinstance(destination, (tuple, list)) else (destination,)
    order = [k for k in range(x.ndim) if k not in moved]
    for end, k in sorted(zip((int(e) % x.ndim for e in ends), moved, strict=True)):
        order.insert(end, k)
    return arranged(x, order)


@function(np.expand_dims)
def expand_dims(trace: Trace, a: Any, axis: Any) -> Any:
    x = operand(trace, a)
    new = axis if isinstance(axis, (tuple, list)) else (axis,)
    rank = x.ndim + len(new)
    places = {int(k) % rank for k in new}
    return x[tuple(None if k in places else slice(None) for k in range(rank))]


@function(np.squeeze)
def squeeze(trace: Trace, a: Any, axis: Any = None) -> Any:
    x = operand(trace, a)
    ones = {k for k, extent in enumerate(x.shape) if extent == 1}
    dropped = ones if axis is None else set(axes(axis, x.ndim))
    if dropped - ones:
        raise ValueError("cannot select an axis to squeeze out which has size not equal to one")
    return x[tuple(0 if k in dropped else slice(None) for k in range(x.ndim))]


@function(np.broadcast_arrays)
def broadcast_arrays(trace: Trace, *args: Any, subok: bool = False) -> Any:
    del subok
    values = [operand(trace, x) for x in args]
    shape = together(trace, [x.extents for x in values])
    return tuple(
        Traced(trace, fitted(trace, x.node, shape)).fixed("a broadcast array") for x in values
    )


@function(np.broadcast_shapes)
def broadcast_shapes(trace: Trace, *args: Any) -> tuple[int, ...]:
    return tuple(trace.size(extent) for extent in together(trace, [extents(x) for x in args]))


@function(np.broadcast_to)
def broadcast_to(trace: Trace, array: Any, shape: Any, subok: bool = False) -> Traced:
    del subok
    x = operand(trace, array)
    return Traced(trace, fitted(trace, x.node, extents(shape))).fixed("a broadcast array")


def extents(shape: Any) -> Extents:
    """The shape that a number, a size or a row of them means."""
    several = shape if isinstance(shape, (tuple, list)) else (shape,)
    return tuple(polynomial(operator.index(n) if not isinstance(n, WHOLE) else n) for n in several)


@function(np.reshape)
def reshape(trace: Trace, a: Any, shape: Any, order: str = "C", *, copy: Any = None) -> Any:
    if order == "F":
        x = transpose(trace, a)
        back = tuple(reversed(shape)) if isinstance(shape, (tuple, list)) else shape
        return transpose(trace, reshape(trace, Traced(trace, x.node), back))
    x = operand(trace, a)
    wanted = list(shape) if isinstance(shape, (tuple, list)) else [shape]
    total = x.size
    known = 1
    for n in wanted:
        known = known * (1 if _open(n) else n)
    wanted = [total // known if _open(n) else n for n in wanted]
    new = extents(tuple(wanted))
    at = _regrouped(trace, x.extents, new)
    if x.owns and copy is not True:
        return x.viewed(at, new)
    return Traced(trace, indexed(x.node, at, new)).fixed("what may be a copy, reshaped")


def _open(extent: Any) -> bool:
    return type(extent) is int and extent == -1


@function(np.ravel)
def ravel(trace: Trace, a: Any, order: str = "C") -> Any:
    return reshape(trace, a, -1, order)


def _regrouped(trace: Trace, old: Extents, new: Extents) -> tuple[Polynomial, ...]:
    """Where each axis of the old shape is read, by the indices of the new one.

    Axes are taken together until their products agree; within such a group the flat place is split
    by quotients, which are gone where a group has one old axis.
    """
    at = [constant(0)] * len(old)
    sources = [k for k, extent in enumerate(old) if extent != _ONE]
    targets = [k for k, extent in enumerate(new) if extent != _ONE]
    while sources and targets:
        mine, theirs = [sources.pop(0)], [targets.pop(0)]
        one, two = old[mine[0]], new[theirs[0]]
        while one != two:
            left, right = trace.size(one), trace.size(two)
            if bare(left) < bare(right) and sources:
                mine.append(sources.pop(0))
                one = one * old[mine[-1]]
            elif bare(right) < bare(left) and targets:
                theirs.append(targets.pop(0))
                two = two * new[theirs[-1]]
            elif left == right:
                break
            else:
                raise ValueError(f"cannot reshape {_spelled(old)} into {_spelled(new)}")
        _split(at, [old[k] for k in mine], mine, _flat([new[k] for k in theirs], theirs), new)
    for k, shape in [(k, old) for k in sources] + [(k, new) for k in targets]:
        if trace.size(shape[k]) != 1:
            raise ValueError(f"cannot reshape {_spelled(old)} into {_spelled(new)}")
    return tuple(at)


def _flat(shape: Sequence[Polynomial], along: Sequence[int]) -> Polynomial:
    place = constant(0)
    for extent, k in zip(shape, along, strict=True):
        place = place * extent + here(k)
    return place


def _split(
    at: list[Polynomial],
    shape: Sequence[Polynomial],
    along: Sequence[int],
    place: Polynomial,
    new: Extents,
) -> None:
    for extent, k in reversed(list(zip(shape[1:], along[1:], strict=True))):
        at[k] = within(remainder(place, extent), new)
        place = within(quotient(place, extent), new)
    at[along[0]] = place


def _spelled(shape: Extents) -> str:
    return f"[{', '.join(map(str, shape))}]"


@function(np.flip)
def flip(trace: Trace, m: Any, axis: Any = None) -> Any:
    x = operand(trace, m)
    turned = axes(axis, x.ndim)
    return x[tuple(slice(None, None, -1 if k in turned else None) for k in range(x.ndim))]


@function(np.roll)
def roll(trace: Trace, a: Any, shift: Any, axis: Any = None) -> Any:
    x = operand(trace, a)
    if axis is None:
        flat = roll(trace, reshape(trace, Traced(trace, x.node), -1), shift, 0)
        return reshape(trace, flat, x.shape)
    shifts = shift if isinstance(shift, (tuple, list)) else (shift,)
    along = axis if isinstance(axis, (tuple, list)) else (axis,)
    at = list(_identity(x.ndim))
    for by, k in zip(shifts, along, strict=True):
        (j,) = axes(k, x.ndim)
        at[j] = remainder(at[j] - polynomial(by), x.extents[j])
    return Traced(trace, indexed(x.node, tuple(at), x.extents))


def _identity(rank: int) -> tuple[Polynomial, ...]:
    return tuple(here(k) for k in range(rank))


@function(np.repeat)
def repeat(trace: Trace, a: Any, repeats: Any, axis: Any = None) -> Any:
    x = operand(trace, a)
    if axis is None:
        return repeat(trace, reshape(trace, Traced(trace, x.node), -1), repeats, 0)
    (along,) = axes(axis, x.ndim)
    if not isinstance(repeats, WHOLE):
        counts = known(operand(trace, repeats).node)
        if counts is None:
            raise RefusalError("`np.repeat` as often as the data say", "repeat all equally often")
        if counts.size > 1:
            places = np.repeat(np.arange(int(x.shape[along])), counts)
            return trace.function(np.take, (x, places, along), {})
        repeats = int(counts.item())
    at, shape = list(_identity(x.ndim)), list(x.extents)
    at[along] = quotient(at[along], polynomial(repeats))
    shape[along] = shape[along] * polynomial(repeats)
    return Traced(trace, indexed(x.node, tuple(at), tuple(shape)))


@function(np.tile)
def tile(trace: Trace, A: Any, reps: Any) -> Any:  # noqa: N803  # NumPy's name
    x = operand(trace, A)
    times = reps if isinstance(reps, (tuple, list)) else (reps,)
    rank = max(len(times), x.ndim)
    x = x[(*([None] * (rank - x.ndim)), ...)]
    counts = (*([1] * (rank - len(times))), *times)
    at = tuple(remainder(here(k), extent) for k, extent in enumerate(x.extents))
    shape = tuple(e * polynomial(n) for e, n in zip(x.extents, counts, strict=True))
    return Traced(trace, indexed(x.node, at, shape))


@function(np.lib.stride_tricks.sliding_window_view)
def sliding_window_view(
    trace: Trace, x: Any, window_shape: Any, axis: Any = None, **options: Any
) -> Traced:
    del options
    value = operand(trace, x)
    window = window_shape if isinstance(window_shape, (tuple, list)) else (window_shape,)
    along = range(value.ndim) if axis is None else axis
    order = [
        k % value.ndim for k in (along if isinstance(along, (tuple, list, range)) else (along,))
    ]
    at, shape = list(_identity(value.ndim)), list(value.extents)
    for j, (width, k) in enumerate(zip(window, order, strict=True)):
        if not width >= 0 or not width <= trace.size(shape[k]):
            raise ValueError("window shape cannot be larger than input array shape")
        shape[k] = shape[k] - polynomial(width) + _ONE
        at[k] = at[k] + here(value.ndim + j)
    whole = (*shape, *(polynomial(width) for width in window))
    return Traced(trace, indexed(value.node, tuple(at), whole)).fixed("windows of an array")


@function(np.diagonal)
def diagonal(trace: Trace, a: Any, offset: int = 0, axis1: int = 0, axis2: int = 1) -> Traced:
    x = operand(trace, a)
    (one,), (two,) = axes(axis1, x.ndim), axes(axis2, x.ndim)
    rows, cols = trace.size(x.extents[one]), trace.size(x.extents[two])
    down, right = (-offset, 0) if offset < 0 else (0, offset)
    rows, cols = rows - down, cols - right
    count = min(rows, cols)
    rest = [k for k in range(x.ndim) if k not in (one, two)]
    at: list[Place] = [constant(0)] * x.ndim
    for j, k in enumerate(rest):
        at[k] = here(j)
    at[one] = here(len(rest)) + polynomial(down)
    at[two] = here(len(rest)) + polynomial(right)
    shape = (*(x.extents[k] for k in rest), polynomial(max(0, count)))
    node: Node = indexed(x.node, tuple(at), shape)
    return Traced(trace, node).fixed("a diagonal")


def _parts(
    trace: Trace, ary: Any, sections: Any, axis: int = 0, *, equal: bool = True
) -> list[Any]:
    x = operand(trace, ary)
    (along,) = axes(axis, x.ndim)
    extent = x.shape[along]
    before = (slice(None),) * along
    if isinstance(sections, WHOLE):
        width = extent // sections
        rest = extent - width * sections
        if rest == 0:
            rest = 0
        elif equal:
            raise ValueError("array split does not result in an equal division")
        cuts = [width * k + min(k, int(rest)) for k in range(1, int(sections))]
    else:
        cuts = list(sections)
    ends = zip([0, *cuts], [*cuts, extent], strict=True)
    return [x[(*before, slice(start, stop))] for start, stop in ends]


function(np.split)(_parts)
function(np.array_split)(partial(_parts, equal=False))
