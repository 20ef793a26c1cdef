"""Normal form: the counter of a loop stands alone in its test, ``i < n - lag`` for ``i + lag < n``.

Rules that look for where a loop ends find it there.
"""

from __future__ import annotations

from optiml_magic.kernels.editing import Node, edited, text
from optiml_magic.kernels.expressions import Binary, Name, every
from optiml_magic.kernels.polynomial import Polynomial
from optiml_magic.kernels.primitives.base import Kernel, NotLegal, primitive
from optiml_magic.kernels.primitives.effects import Effects, by_ones, loops_in
from optiml_magic.kernels.primitives.naming import speller_before, type_of
from optiml_magic.kernels.spelling import Unspelled
from optiml_magic.kernels.tree import Loop

_ONE = Polynomial.constant(1)


@primitive
def solved(kernel: Kernel) -> Kernel:
    """The kernel with such tests of all loops that count up; there must be one."""
    effects, changes = Effects(kernel), dict[Node, Node]()
    for loop in loops_in(kernel.function.body):
        words = _end(kernel, loop, effects)
        if words and loop.test is not None:
            variable = kernel.axes()[loop].variable
            assert variable is not None
            own = Name(None, variable.name, variable)
            changes[loop.test] = Binary(None, "<", own, text(words))
    if not changes:
        raise NotLegal("all counters stand alone")
    return kernel.rewritten(edited(kernel.function.body, changes))


def _end(kernel: Kernel, loop: Loop, effects: Effects) -> str:
    """What the counter stays below where its test does not say so; else nothing.

    Numbers are signed and of one size, so that what is taken away may make a sum less than zero.
    """
    axis, test = kernel.axes().get(loop), loop.test
    if axis is None or not axis.exact or axis.stop is None or axis.variable is None:
        return ""
    if not isinstance(test, Binary) or test.op not in ("<", "<=", ">", ">="):
        return ""
    if axis.step != _ONE or not by_ones(axis, effects):
        return ""
    if any(isinstance(side, Name) and side.variable is axis.variable
           for side in (test.left, test.right)):  # fmt: skip
        return ""
    kinds = [
        k for e in every(test) if (k := kernel.reading.types.get(e)) is not None and e is not test
    ]
    size = type_of(kernel, axis.variable).size
    if any(not k.integral or not k.signed or k.size != size for k in kinds):
        return ""
    speller = speller_before(kernel, effects, loop)
    try:
        words = speller.form(speller.local(axis.stop))
    except Unspelled:
        return ""
    return words if effects.stays(loop, words) else ""
