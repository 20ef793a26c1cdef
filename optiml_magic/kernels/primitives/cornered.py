"""Rounds that begin or end at the item: ``for (j) if (j > i) f(i, j)``, pairs of items once each.

Of a block's items all make the rounds behind the last of them, and none those before the first. So
such a loop falls into rounds that all items make, without a test, and those beside the diagonal.
"""

from __future__ import annotations

from dataclasses import dataclass

from optiml_magic.kernels.expressions import Binary, Expr, Name
from optiml_magic.kernels.polynomial import Polynomial
from optiml_magic.kernels.primitives.alike import Part
from optiml_magic.kernels.primitives.base import Kernel
from optiml_magic.kernels.primitives.effects import Effects, is_counted
from optiml_magic.kernels.primitives.mapped import Mapped
from optiml_magic.kernels.symbols import Compare
from optiml_magic.kernels.tree import (
    Blank,
    Declare,
    Evaluate,
    If,
    Loop,
    Statement,
    Variable,
    body_of,
)

_ONE = Polynomial.constant(1)


@dataclass(frozen=True)
class Corner:
    """A loop that does nothing but what ``branch`` says, besides ``lets`` that all items share.

    Item ``i`` makes the rounds from ``i + offset`` on, or where it ``ends`` there, those before.
    """

    loop: Loop
    counter: Variable
    start: Expr
    stop: Expr
    lets: tuple[Statement, ...]
    branch: If
    offset: Polynomial
    ends: bool


def corner(kernel: Kernel, items: Mapped, effects: Effects, part: Part) -> Corner | None:
    """What a loop of items is, where it is such a one."""
    loop = part.loop
    axis = kernel.axes().get(loop) if loop is not None else None
    if loop is None or axis is None or not is_counted(axis, effects) or axis.step != _ONE:
        return None
    match loop.before, loop.test:
        case (
            Declare(variables=(counter,)),
            Binary(op="<", left=Name(variable=own), right=stop),
        ) if own is counter and counter.value is not None and not counter.type.depth:
            start = counter.value
        case _:
            return None
    *lets, branch = [s for s in body_of(loop.body) if not isinstance(s, Blank)] or [loop]
    if not isinstance(branch, If) or branch.other is not None or branch.before is not None:
        return None
    if not all(isinstance(s, Declare) for s in lets) or len(part.inner) != 1:
        return None
    asked = [*lets, Evaluate(None, branch.line, branch.test)]
    if effects.changed(*asked) or not all(effects.computes(s, ()) for s in asked):
        return None  # some items make more of the rounds, and some none of the tests
    found = [g for g in kernel.reading.guards if g.test is branch.test]
    condition = found[0].condition if len(found) == 1 and not found[0].exits else None
    if not isinstance(condition, Compare) or condition.op != ">=":
        return None
    by = condition.form.coefficient(axis.name)
    sign = by.value if by is not None else None
    if sign not in (1, -1) or axis.start is None:
        return None
    # The counter is what it begins with and the rounds before; the item is taken out as a whole.
    form = condition.form.without([axis.name]) - Polynomial.constant(sign) * axis.start
    offset = -Polynomial.constant(sign) * (form + Polynomial.constant(sign) * items.index)
    symbols = kernel.reading.symbols
    own_names = {"threadIdx.x", "blockIdx.x", axis.name}
    if own_names & {*symbols.inside(offset)} or not symbols.known(offset):
        return None
    ends = sign < 0
    return Corner(
        loop, counter, start, stop, tuple(lets), branch, offset + _ONE if ends else offset, ends
    )
