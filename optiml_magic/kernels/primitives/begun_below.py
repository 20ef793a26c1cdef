"""A maximum of a thread's own row begins below all numbers, and not with the row's first element.

``float m = s[0]; for (k = 0; k < n; ++k) m = max(m, s[k]);`` takes the first element twice. Without
a round it would be what a local array holds before it has values.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from optiml_magic.kernels.editing import Node, edited, text
from optiml_magic.kernels.expressions import (
    Assign,
    Expr,
    Index,
    Literal,
    Name,
    Step,
    Unary,
    every,
)
from optiml_magic.kernels.primitives.base import Kernel, NotLegal, primitive
from optiml_magic.kernels.primitives.effects import Effects, is_simple, names
from optiml_magic.kernels.primitives.first_rounds import FIRST
from optiml_magic.kernels.primitives.naming import type_of
from optiml_magic.kernels.tree import Blank, Block, Declare, Loop, Statement, Variable, walk


@primitive
def begun_below(kernel: Kernel) -> Kernel:
    """The kernel whose maxima of that kind begin with minus infinity."""
    effects = Effects(kernel)
    swaps: dict[Node, Node] = {}
    for block in (s for s in walk(kernel.function.body) if isinstance(s, Block)):
        steps = [s for s in block.body if not isinstance(s, Blank)]
        for at, declared in enumerate(steps):
            match declared:
                case Declare(variables=(Variable(value=Index() as first) as most,)):
                    pass
                case _:
                    continue
            touching = [s for s in steps[at + 1 :] if most in effects.mentions(s)]
            loop = touching[0] if touching else None
            if isinstance(loop, Loop) and _seeks(kernel, effects, loop, most, first):
                before = steps[: steps.index(loop)]
                if _given(kernel, effects, before, at, loop, first):
                    swaps[first] = text("-INFINITY")
    if not swaps:
        raise NotLegal("no maximum begins with the first element of a row")
    made = kernel.rewritten(edited(kernel.function.body, swaps))
    return replace(made, arithmetic=(*made.arithmetic, FIRST))


def _seeks(kernel: Kernel, effects: Effects, loop: Loop, most: Variable, first: Index) -> bool:
    """Whether a loop from the first element on seeks the maximum, and does nothing else."""
    axis = kernel.axes().get(loop)
    array = _row(first.base)
    if axis is None or array is None or not axis.exact or not is_simple(axis, effects):
        return False
    if not isinstance(first.index, Literal) or first.index.value != 0:
        return False
    found = [r for r in kernel.reading.reductions
             if r.place == most.name and r.axes[:1] == (axis.name,)]  # fmt: skip
    if {*effects.changed(loop)} != {most} or len(found) != 1 or found[0].carried:
        return False
    if found[0].op not in ("max", ">") or not type_of(kernel, most).floating:
        return False
    match found[0].values:
        case [Index(base=base, index=Name(variable=own))]:
            return _row(base) is array and own is axis.variable
    return False


def _given(
    kernel: Kernel, effects: Effects, before: Sequence[Statement], at: int, loop: Loop,
    first: Index,
) -> bool:  # fmt: skip
    """Whether the row has values by a loop of the same rounds alone, and no others since.

    So its first element is one only where the maximum's loop has a round.
    """
    array, seeking = _row(first.base), kernel.axes()[loop]
    giving = [n for n, s in enumerate(before) if array in _stored(effects, s)]
    declared = [s for s in before if isinstance(s, Declare) and array in s.variables]
    if not declared or len(giving) != 1 or giving[0] > at:
        return False
    axis = kernel.axes().get(before[giving[0]])  # type: ignore[call-overload]
    if axis is None or not axis.exact or not is_simple(axis, effects):
        return False
    if seeking.stop is None or axis.stop != seeking.stop:
        return False
    tests = [e for a in (axis, seeking) if (e := a.node.test) is not None]
    asked = names(tests) - {axis.variable, seeking.variable}
    changed = {v for s in before[giving[0] :] for v in effects.given(s)}
    loads = any(a.node in {*every(e)} for e in tests for a in kernel.reading.accesses)
    return not loads and not asked & changed


def _stored(effects: Effects, statement: Statement) -> set[Variable | None]:
    """The arrays that a statement changes, or hands on."""
    inside = effects.inside(statement)
    given = {e.target for e in inside if isinstance(e, Assign | Step)}
    given |= {e.operand for e in inside if isinstance(e, Unary) and e.op == "&"}
    loaded = {e.base for e in inside if isinstance(e, Index) and e not in given}
    return {e.variable for e in inside if isinstance(e, Name) and e not in loaded}


def _row(base: Expr) -> Variable | None:
    """A local array that has no values as it is declared."""
    variable = base.variable if isinstance(base, Name) else None
    local = variable is not None and variable.storage == "local" and variable.array
    bare = variable is not None and variable.value is None and not variable.initial
    return variable if local and bare else None
