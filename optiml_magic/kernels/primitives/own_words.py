"""Addresses as a kernel's own text says them, where a form has a part that nothing else spells.

A row may begin where a table or a loop before has said: ``page = table[t / 16]``. Its elements are
then those of the expression that the kernel has, with another value for the counter.
"""

from __future__ import annotations

from optiml_magic.kernels.editing import text
from optiml_magic.kernels.expressions import Binary, Cast, Index, Literal, Name, Unary, every
from optiml_magic.kernels.primitives.base import Kernel
from optiml_magic.kernels.primitives.effects import Effects, declared_in
from optiml_magic.kernels.primitives.items import Items, element
from optiml_magic.kernels.spelling import Unspelled
from optiml_magic.kernels.tree import Loop, Variable

_PLAIN = (Name, Literal, Binary, Cast)


def own_words(kernel: Kernel, loop: Loop, counter: Variable, group: Items, value: str) -> str:
    """The element of a group that goes up, in the round of a loop whose counter has this value.

    Raises Unspelled where it is computed in the loop, or changes with more than its counter.
    """
    effects = Effects(kernel)
    place = element(effects, group.accesses[0])
    if group.apart > 1 or place not in effects.inside(loop.body):
        raise Unspelled("the loop does not spell the place of its elements itself")
    assert place is not None
    own = declared_in(loop) - {counter}
    moving = own | {*effects.changed(loop.body)} | effects.addressed
    for expr in every(place):
        if isinstance(expr, Name) and (
            expr.variable is None or expr.variable in moving or expr.variable.type.reference
        ):  # fmt: skip
            raise Unspelled(f"`{expr.name}` is not the same in all rounds")
        leads = isinstance(expr, Index) or (isinstance(expr, Unary) and expr.op == "*")
        if not isinstance(expr, _PLAIN) and not (expr is place and leads):
            raise Unspelled("the place of its elements is not a plain sum")
    ahead = f"({value})" if " " in value else value
    return kernel.spelled(
        place,
        {e: text(ahead) for e in every(place) if isinstance(e, Name) and e.variable is counter},
    )
