"""Rounds that may be made in any order, from the last one to the first: ``for (t = n - 1; ...)``.

What all elements from ``t`` on add up to grows then from round to round.
"""

from __future__ import annotations

from dataclasses import replace

from optiml_magic.kernels.editing import edited, lines
from optiml_magic.kernels.expressions import Expr, Literal
from optiml_magic.kernels.primitives.base import Kernel, NotLegal, primitive
from optiml_magic.kernels.primitives.begun_anew import ORDER, is_steady
from optiml_magic.kernels.primitives.effects import Effects, by_ones, declared_in, loops_in
from optiml_magic.kernels.primitives.moving_ends import range_of
from optiml_magic.kernels.primitives.naming import type_of
from optiml_magic.kernels.primitives.rounds import shareable
from optiml_magic.kernels.spelling import is_one
from optiml_magic.kernels.tree import Declare, Leave, walk
from optiml_magic.kernels.types import promoted


@primitive
def backward(kernel: Kernel, at: int) -> Kernel:
    """The kernel with the rounds of the loop of this number the other way round."""
    loop, effects = loops_in(kernel.function.body)[at], Effects(kernel)
    axis = kernel.axes().get(loop)
    effects.straightforward()
    if axis is None or not axis.exact or not by_ones(axis, effects) or axis.variable is None:
        raise NotLegal("the loop does not count by one in its head", loop.line)
    kind, counter, step = type_of(kernel, axis.variable), axis.variable, axis.step
    one = range_of(loop, counter, step.value or 0) if step is not None else None
    if one is None or not (kind.integral and kind.signed and kind.size in (4, 8)):
        raise NotLegal("where the loop ends is not followed", loop.line)
    ends = [promoted(t) for e in (one.first, one.end) if (t := kernel.reading.types.get(e))]
    if len(ends) < 2 or not all(t.integral and t.signed for t in ends):
        raise NotLegal("a counter below zero is not less than an end without a sign", loop.line)
    unsteady = {*effects.changed(loop.body), *declared_in(loop)}
    if not all(is_steady(kernel, end, unsteady) for end in (one.first, one.end)):
        raise NotLegal("the ends of the loop change in it", loop.line)
    if any(isinstance(s, Leave) and s.kind != "continue" for s in walk(loop.body)):
        raise NotLegal("a round may end the loop", loop.line)
    reductions = shareable(kernel, loop, effects)
    if any(r.carried or r.op in "<>" for r in reductions):
        raise NotLegal("the order of its rounds decides what is chosen", loop.line)
    begin = loop.before
    assert isinstance(begin, Declare)
    first, last = _with(kernel, one.first, one.more), _with(kernel, one.end, one.beyond - 1)
    head = f"{begin.words}{counter.name} = {last}; {counter.name} >= {first}; --{counter.name}"
    if one.down:
        head = f"{begin.words}{counter.name} = {first}; {counter.name} <= {last}; ++{counter.name}"
    made = lines(f"for ({head}) {{\n{kernel.show_inside(loop.body)}\n}}")
    turned = kernel.rewritten(edited(kernel.function.body, {loop: made}))
    exact = all(r.exact for r in reductions)
    return turned if exact else replace(turned, arithmetic=(*turned.arithmetic, ORDER))


def _with(kernel: Kernel, end: Expr, more: int) -> str:
    """An end and a number, 1, 0 or -1."""
    if isinstance(end, Literal) and isinstance(end.value, int):
        return str(end.value + more)
    words = kernel.spelled(end)
    whole = words if is_one(words) or not more else f"({words})"
    return f"{whole} {'+' if more > 0 else '-'} 1" if more else whole
