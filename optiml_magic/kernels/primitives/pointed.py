"""Which element of an array of structures a pointer leads to, where one asks for a member of it."""

from __future__ import annotations

from dataclasses import dataclass

from optiml_magic.kernels.editing import text
from optiml_magic.kernels.expressions import Expr, Index, Member, Unary
from optiml_magic.kernels.polynomial import Polynomial
from optiml_magic.kernels.reading import Access, Reading


@dataclass(frozen=True)
class Pointed:
    """``node`` stands for the element ``at``, or for ``field`` of it where it has one."""

    node: Expr
    at: Polynomial
    field: str = ""

    def made(self, array: str, at: str) -> Expr:
        """The same by the name of its array."""
        element = text(f"{array}[{at}]")
        return Member(None, element, self.field) if self.field else element


def pointed(reading: Reading, place: Expr, access: Access) -> Pointed | None:
    """The element in ``place``, ``p->x``, ``(*p).x`` or ``p[j].x``; None where it is not known."""
    array = reading.arrays.get(access.array)
    inner = place
    while isinstance(inner, Member) and not inner.arrow:
        inner = inner.base
    match inner:
        case Member(base=pointer, field=field):
            pass
        case Index(base=pointer) | Unary(op="*", operand=pointer):
            field = ""
        case _:
            return None
    kind = reading.types.get(pointer)
    if array is None or kind is None or kind.depth != 1 or kind.pointee != array.element:
        return None
    size = array.element.size or 0
    for far in range(size if access.offset is not None else 0):  # the member within its element
        at = ((access.offset or Polynomial()) - Polynomial.constant(far)).divided(size)
        if at is not None:
            return Pointed(inner, at, field)
    return None
