"""Normal form: the counter of a loop stands alone in its test, ``i < n - lag`` for ``i + lag < n``.

Of two ends it is the lesser, ``i < min(a + w, n)`` for ``i < a + w && i < n``. Rules that look for
where a loop ends find it there.
"""

from __future__ import annotations

from optiml_magic.kernels.editing import Node, edited, text
from optiml_magic.kernels.expressions import Binary, Name, every
from optiml_magic.kernels.polynomial import Polynomial
from optiml_magic.kernels.primitives.base import Kernel, NotLegal, primitive
from optiml_magic.kernels.primitives.effects import Effects, by_ones, loops_in
from optiml_magic.kernels.primitives.mapped import split_test
from optiml_magic.kernels.primitives.naming import speller_before, type_of
from optiml_magic.kernels.spelling import Unspelled
from optiml_magic.kernels.symbols import Compare
from optiml_magic.kernels.tree import Loop

_ONE = Polynomial.constant(1)
_INT = 4  # bytes


@primitive
def solved(kernel: Kernel) -> Kernel:
    """The kernel with such tests of all loops that count up; there must be one."""
    effects, changes = Effects(kernel), dict[Node, Node]()
    for loop in loops_in(kernel.function.body):
        words = _end(kernel, loop, effects) or _least(kernel, loop, effects)
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
    if not _of_one_size(kernel, test, type_of(kernel, axis.variable).size):
        return ""
    return _spelled(kernel, loop, effects, axis.stop)


def _least(kernel: Kernel, loop: Loop, effects: Effects) -> str:
    """The lesser of the ends that a test of several comparisons asks for; else nothing."""
    axis, test = kernel.axes().get(loop), loop.test
    parts = [*split_test(test, "&&")] if test is not None and loop.kind != "do" else []
    if axis is None or axis.variable is None or axis.start is None or axis.step != _ONE:
        return ""
    asked = [*axis.test.conjuncts()]
    if not 1 < len(parts) == len(asked) or axis.variable in effects.lent:
        return ""
    ends = list[str]()
    for part, said in zip(parts, asked, strict=True):
        by = said.form.coefficient(axis.name) if isinstance(said, Compare) else None
        if not isinstance(said, Compare) or said.op != ">=" or by != -_ONE:
            return ""
        if not isinstance(part, Binary) or not _of_one_size(kernel, part, _INT):
            return ""
        end = said.form.without([axis.name]) + axis.start + _ONE
        ends.append(_spelled(kernel, loop, effects, end))
    if not all(ends) or type_of(kernel, axis.variable).size != _INT:
        return ""
    least, *others = dict.fromkeys(ends)
    for other in others:
        least = f"min({least}, {other})"
    return least


def _of_one_size(kernel: Kernel, test: Binary, size: int | None) -> bool:
    """Whether what a test compares is made of signed whole numbers of this many bytes."""
    if test.op not in ("<", "<=", ">", ">="):
        return False
    types = kernel.reading.types
    kinds = [k for e in every(test) if e is not test and (k := types.get(e)) is not None]
    return all(k.integral and k.signed and k.size == size for k in kinds)


def _spelled(kernel: Kernel, loop: Loop, effects: Effects, end: Polynomial) -> str:
    """An end in words that mean the same in all rounds; else nothing."""
    speller = speller_before(kernel, effects, loop)
    try:
        words = speller.form(speller.local(end))
    except Unspelled:
        return ""
    return words if effects.stays(loop, words) else ""
