"""Rounds that threads of a block share as neighbours, dealt out to them in turn.

``for (i = t * per; i < min((t + 1) * per, n); ++i)`` becomes ``for (i = t; i < n; i += T)``: all
threads together make the same rounds, but each of them others. It is a step of whoever goes on to
ask for nothing but what all of them find together, as ``raised`` does, and of nobody else.
"""

from __future__ import annotations

from contextlib import suppress

from optiml_magic.kernels.editing import Node, edited, text
from optiml_magic.kernels.polynomial import Polynomial
from optiml_magic.kernels.primitives.base import Kernel, NotLegal, primitive
from optiml_magic.kernels.primitives.effects import Effects
from optiml_magic.kernels.primitives.flow import ends
from optiml_magic.kernels.primitives.naming import speller_before
from optiml_magic.kernels.reading import Axis
from optiml_magic.kernels.spelling import Unspelled
from optiml_magic.kernels.symbols import Compare
from optiml_magic.kernels.tree import Declare, Evaluate

_THREAD = "threadIdx.x"
_ONE = Polynomial.constant(1)


@primitive
def dealt_in_turn(kernel: Kernel) -> Kernel:
    """The kernel whose loops over a thread's own neighbours go over every so many-th round."""
    width = kernel.block[0]
    if width is None or width == 1 or kernel.block[1:] != (1, 1):
        raise NotLegal("its blocks are no lines of a number of threads")
    effects, swaps = Effects(kernel), dict[Node, Node]()
    for loop, axis in kernel.axes().items():
        whole = _whole(kernel, axis, width) if _counts(axis, effects) else None
        before, variable = loop.before, axis.variable
        if whole is None or variable is None or not isinstance(before, Declare):
            continue
        value = before.variables[0].value
        if value is None or loop.test is None or loop.update is None:
            continue
        with suppress(Unspelled):
            speller = speller_before(kernel, effects, loop)
            first, end = (speller.form(speller.local(form)) for form in whole)
            start = _THREAD if first == "0" else f"({first}) + {_THREAD}"
            swaps |= {
                value: text(start),
                loop.test: text(f"{variable.name} < {end}"),
                loop.update: text(f"{variable.name} += {width}"),
            }
    if not swaps:
        raise NotLegal("no loop goes over neighbours of a thread's own")
    return kernel.rewritten(edited(kernel.function.body, swaps))


def _counts(axis: Axis, effects: Effects) -> bool:
    """Whether a loop counts in its head alone, and ends where that says."""
    loop, variable = axis.node, axis.variable
    declared = isinstance(loop.before, Declare) and loop.before.variables == (variable,)
    if loop.kind != "for" or variable is None or not declared:
        return False
    if not axis.exact and any(ends(loop.body)):
        return False
    tops = [Evaluate(None, loop.line, e) for e in (loop.test, loop.update) if e is not None]
    return (*effects.changed(*tops),) == (variable,) and variable not in effects.changed(loop.body)


def _whole(kernel: Kernel, axis: Axis, width: int) -> tuple[Polynomial, Polynomial] | None:
    """Where the rounds of all threads begin and end; None where each of them has others."""
    start, per = axis.start, axis.start and axis.start.coefficient(_THREAD)
    if start is None or per is None or not per.terms or axis.step != _ONE or axis.first:
        return None
    begin = start.without([_THREAD])
    stops = _stops(kernel, axis, start)
    inside = kernel.reading.symbols.inside
    if start + per not in stops or _varies(inside(begin) | inside(per)):
        return None
    others = [stop for stop in stops if stop != start + per]
    if not others:
        return begin, begin + per * Polynomial.constant(width)
    if len(others) > 1 or _varies(inside(others[0])):
        return None
    return (begin, others[0]) if _cover(kernel, per, others[0] - begin, width) else None


def _varies(names: frozenset[str]) -> bool:
    return any(name.startswith("threadIdx") for name in names)


def _stops(kernel: Kernel, axis: Axis, start: Polynomial) -> list[Polynomial]:
    """What the counter is below in each round, all of them."""
    found = list[Polynomial]()
    for part in axis.test.conjuncts():
        form = part.form if isinstance(part, Compare) and part.op == ">=" else None
        by = form.coefficient(axis.name) if form is not None else None
        if form is None or by is None or by.value != -1:
            return []
        stop = form.without([axis.name]) + start + _ONE
        name = next(iter(stop.symbols), "")
        symbol = kernel.reading.symbols.table.get(name)
        least = symbol is not None and symbol.op == "min" and stop == Polynomial.symbol(name)
        found += symbol.arguments if symbol is not None and least else [stop]
    return found


def _cover(kernel: Kernel, per: Polynomial, count: Polynomial, width: int) -> bool:
    """Whether so many rounds of each thread are all that there are, or more."""
    if per.value is not None and count.value is not None:
        return per.value * width >= count.value
    symbol = kernel.reading.symbols.table.get(next(iter(per.symbols), ""))
    if symbol is None or symbol.op != "/" or per != Polynomial.symbol(symbol.name):
        return False
    above, by = symbol.arguments
    more = (above - count).value
    return by.value == width and more is not None and more >= width - 1
