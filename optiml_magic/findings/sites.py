"""One access of a kernel, and how its index moves from lane to lane."""

from __future__ import annotations

from dataclasses import dataclass
from math import gcd

from optiml_magic.kernels.expressions import Assign, Call, Expr, Index, Member, Step, Unary, every
from optiml_magic.kernels.reading import Access, Axis, Reading
from optiml_magic.kernels.symbols import MEMORY, UNKNOWN

_LANE = "threadIdx.x"


@dataclass(frozen=True, eq=False)
class Site:
    """An access, and the reading of the kernel that makes it."""

    reading: Reading
    access: Access

    @property
    def loop(self) -> Axis | None:
        """The innermost loop around it."""
        loops = self.reading.loops(self.access)
        return loops[-1] if loops else None

    @property
    def place(self) -> Expr:
        """The element as it is written."""
        node = self.access.node
        if isinstance(node, Assign | Step):
            node = node.target
        elif isinstance(node, Call) and node.arguments:
            node = node.arguments[0]
        return node.operand if isinstance(node, Unary) and node.op == "&" else node

    @property
    def apart(self) -> int | None:
        """How many elements apart neighbouring lanes are, 0 where all lanes mean the same one.

        Of an index like ``i % n * 64`` what it moves by, if it moves; None where no number says.
        """
        index, symbols = self.access.index, self.reading.symbols
        if index is None or UNKNOWN in symbols.depends(index):
            return None
        moving = {name for name in index.symbols if _LANE in symbols[name].depends}
        terms = [(m, factor) for m, factor in index.terms if moving.intersection(m)]
        if any(len(monomial) > 1 for monomial, _ in terms):
            return None
        return gcd(*(factor for _, factor in terms))

    @property
    def gathers(self) -> bool:
        """Whether the index itself is read from memory, anew in each round of a loop around it.

        A row that begins where an array says is none: its elements follow one another.
        """
        index, symbols = self.access.index, self.reading.symbols
        if index is None:  # of elements whose size is not known
            subscripts = (part.index for part in every(self.place) if isinstance(part, Index))
            return any(isinstance(part, Index) for inner in subscripts for part in every(inner))
        innermost = {MEMORY, *self.access.loops[-1:]}
        return any(innermost <= symbols[name].depends for name in symbols.inside(index))

    @property
    def of_struct(self) -> bool:
        """Whether it is a member of an element, so that the rest of the element lies in between."""
        place = self.place
        while isinstance(place, Member):
            if place.arrow or isinstance(place.base, Index | Unary):
                return True
            place = place.base
        return False
