"""P2, hops: a window that goes on by several elements from item to item, in pieces of so many.

``for (k = 0; k < 200; k++) sum += x[i * 10 + k];`` adds up twenty pieces of ten elements, and the
next item all of these but one: windows of pieces slide by one, as those of elements do.
"""

from __future__ import annotations

from optiml_magic.kernels.editing import edited, lines
from optiml_magic.kernels.polynomial import Polynomial
from optiml_magic.kernels.primitives.base import Kernel, NotLegal, Refused, primitive
from optiml_magic.kernels.primitives.counted import as_counted
from optiml_magic.kernels.primitives.effects import Effects, is_simple, loops_in
from optiml_magic.kernels.primitives.grids import said_alike
from optiml_magic.kernels.primitives.naming import speller_before, type_of
from optiml_magic.kernels.reading import Axis
from optiml_magic.kernels.spelling import Unspelled
from optiml_magic.kernels.tree import body_of
from optiml_magic.source.directives import RequireDirective
from optiml_magic.source.expressions import parse_expression

_ONE = Polynomial.constant(1)


@primitive
def hopped(kernel: Kernel, at: int) -> Kernel:
    """The loop with this number as one over pieces, with one over the elements of a piece in it."""
    made = as_counted(kernel, at, is_simple)
    if isinstance(made, Refused):
        raise NotLegal(made.reason, made.line)
    loop, effects = loops_in(made.function.body)[at], Effects(made)
    axis = made.axes().get(loop)
    if axis is None or not axis.exact or not is_simple(axis, effects) or axis.variable is None:
        raise NotLegal("the loop does not count from 0 by 1", loop.line)
    if type_of(made, axis.variable).name != "int" or axis.variable in effects.lent:
        raise NotLegal("its counter is not a plain int", loop.line)
    hop = _hop(made, axis)
    rounds, asked = _pieces(made, axis, effects, hop)
    piece = made.fresh("piece")
    element = made.fresh("element", piece)
    body = "\n".join([
        f"for (int {piece} = 0; {piece} < {rounds}; ++{piece}) {{",
        f"for (int {element} = 0; {element} < {hop}; ++{element}) {{",
        f"const int {axis.variable.name} = {piece} * {hop} + {element};",
        *(made.show(s) for s in body_of(loop.body)), "}", "}",
    ])  # fmt: skip
    return made.rewritten(edited(made.function.body, {loop: (lines(body),)}), directives=asked)


def _hop(kernel: Kernel, axis: Axis) -> int:
    """How many elements the window of the next item is ahead, in all that its rounds load."""
    found = set[int | None]()
    for access in kernel.reading.accesses:
        if access.space != "global" or axis.name not in access.loops or access.index is None:
            continue
        by = access.index.coefficient(axis.name)
        if by is not None and by.terms:
            item = access.index.coefficient("threadIdx.x")
            found.add(item.value if item is not None and by == _ONE else None)
    (hop,) = found if len(found) == 1 else (None,)
    if hop is None or hop <= 1:
        raise NotLegal("its window does not go on by several elements an item", axis.line)
    return hop


def _pieces(
    kernel: Kernel, axis: Axis, effects: Effects, hop: int
) -> tuple[str, list[RequireDirective]]:
    """How many pieces a window has, and what that asks of sizes."""
    if axis.trips is not None:
        if axis.trips % hop:
            raise NotLegal(f"a window of {axis.trips} is not a multiple of {hop}", axis.line)
        return str(axis.trips // hop), []
    given = {p.name for p in kernel.function.parameters if not p.type.depth} - effects.moved
    form = axis.stop
    if form is None or not form.symbols <= given or not said_alike(kernel, sorted(form.symbols)):
        raise NotLegal("how long its window is more than sizes say", axis.line)
    try:
        words = speller_before(kernel, effects, axis.node).form(form)
    except Unspelled as reason:
        raise NotLegal(str(reason), axis.line) from None
    whole = RequireDirective(parse_expression(f"({words}) % {hop} == 0"))
    return f"({words}) / {hop}", [whole]
