"""Loads that some rounds of a loop leave out, and that all of them may do as well.

``for (j) for (i) if (inside) sum += w[j] * ...`` asks for no ``w[j]`` where nothing of its row is
inside. An array that certainly has an element for each ``j`` may be asked all the same.
"""

from __future__ import annotations

from collections.abc import Collection

from optiml_magic.kernels.expressions import Expr
from optiml_magic.kernels.polynomial import Polynomial
from optiml_magic.kernels.primitives.base import Kernel
from optiml_magic.kernels.primitives.effects import Effects
from optiml_magic.kernels.primitives.pinned import room
from optiml_magic.kernels.ranges import Ranges
from optiml_magic.kernels.reading import Access, Axis
from optiml_magic.kernels.spelling import Speller
from optiml_magic.kernels.symbols import Compare
from optiml_magic.source.directives import RequireDirective


def in_all_rounds(
    kernel: Kernel, axis: Axis, loads: Collection[Expr]
) -> list[RequireDirective] | None:
    """What arrays must have for loads in any round of a loop; None where that is not certain."""
    accesses = [access for access in kernel.reading.accesses if access.own in loads]
    if len(accesses) != len(loads):
        return None
    found = [_asked(kernel, axis, access) for access in accesses]
    asked = [one for one in found if one is not None]
    return asked if len(asked) == len(found) else None


def _asked(kernel: Kernel, axis: Axis, access: Access) -> RequireDirective | None:
    """That an array has the element of the last round, where its place grows with the rounds."""
    index, test, symbols = access.index, axis.test, kernel.reading.symbols
    if index is None or access.mode != "load" or access.space != "global":
        return None
    if not isinstance(test, Compare) or test.op != ">=":
        return None
    by, left = index.coefficient(axis.name), test.form.coefficient(axis.name)
    if by is None or by.value is None or by.value < 0 or left is None or left.value != -1:
        return None
    last = index.without([axis.name]) + by * test.form.without([axis.name])
    given = {p.name for p in kernel.function.parameters if not p.type.depth}
    sizes = given - Effects(kernel).moved
    if not last.symbols <= sizes or not Ranges((*axis.guard, test), symbols).nonnegative(index):
        return None
    return room(kernel, access, Speller(symbols, {}).form(last + Polynomial.constant(1)))
