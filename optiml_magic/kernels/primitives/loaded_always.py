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
    asked = list[RequireDirective]()
    for access in accesses:
        last = _last(kernel, axis, access)
        if last is None:
            return None
        if _has(kernel, access, last):
            continue
        end = Speller(kernel.reading.symbols, {}).form(last + Polynomial.constant(1))
        found = room(kernel, access, end) if access.space == "global" else None
        if found is None:
            return None
        asked.append(found)
    return asked


def _has(kernel: Kernel, access: Access, last: Polynomial) -> bool:
    """Whether the text says that an array has an element, as of ``__constant__ float w[9]``."""
    array = kernel.reading.arrays.get(access.array)
    extents = [form.value if form is not None else None for form in array.extents] if array else []
    (count,) = extents if len(extents) == 1 else (None,)
    return count is not None and last.value is not None and last.value < count


def _last(kernel: Kernel, axis: Axis, access: Access) -> Polynomial | None:
    """The element of the last round, where its place grows with the rounds."""
    index, test, symbols = access.index, axis.test, kernel.reading.symbols
    if index is None or access.mode != "load":
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
    return last
