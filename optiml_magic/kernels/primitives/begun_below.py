"""A maximum of a thread's own row begins below all numbers, and not with the row's first element.

``float m = s[0]; for (k = 0; k < n; ++k) m = max(m, s[k]);`` takes the first element twice. Without
a round it would be what a local array holds before it has values.
"""

from __future__ import annotations

from optiml_magic.kernels.editing import Node, edited, text
from optiml_magic.kernels.expressions import Expr, Index, Literal, Name
from optiml_magic.kernels.primitives.base import Kernel, NotLegal, primitive
from optiml_magic.kernels.primitives.effects import Effects, is_simple
from optiml_magic.kernels.primitives.naming import type_of
from optiml_magic.kernels.tree import Blank, Block, Declare, Loop, Variable, walk


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
                swaps[first] = text("-INFINITY")
    if not swaps:
        raise NotLegal("no maximum begins with the first element of a row")
    return kernel.rewritten(edited(kernel.function.body, swaps))


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


def _row(base: Expr) -> Variable | None:
    """A local array that has no values as it is declared."""
    variable = base.variable if isinstance(base, Name) else None
    local = variable is not None and variable.storage == "local" and variable.array
    bare = variable is not None and variable.value is None and not variable.initial
    return variable if local and bare else None
