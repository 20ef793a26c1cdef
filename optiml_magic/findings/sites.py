"""One access of a kernel, and how its index moves from lane to lane."""

from __future__ import annotations

from dataclasses import dataclass
from math import gcd

from optiml_magic.kernels.expressions import (
    Assign,
    Binary,
    Call,
    Expr,
    Index,
    Member,
    Name,
    Step,
    Unary,
    every,
)
from optiml_magic.kernels.reading import Access, Axis, Reading
from optiml_magic.kernels.symbols import MEMORY, UNKNOWN
from optiml_magic.kernels.tree import expressions

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

    @property
    def begins_anew(self) -> bool:
        """Whether it is summed up in a range that grows or shrinks from round to round around it.

        What it loads is the same in those rounds, but for where the range begins and ends.
        """
        loops, index = self.reading.loops(self.access), self.access.index
        if index is None:
            return False
        inside = self.reading.symbols.inside
        summed = {name for r in self.reading.reductions for name in r.axes[:1]}
        for at, outer in enumerate(loops):
            inner, rest = loops[at + 1 :], index
            for axis in inner:
                by = index.coefficient(axis.name)
                rest = rest - by * axis.start if by is not None and axis.start is not None else rest
            ends = [form for axis in inner for form in (axis.start, axis.stop) if form is not None]
            moves = any(outer.name in inside(form) for form in ends)
            if moves and outer.name not in inside(rest) and inner[-1].name in summed:
                return True
        return False

    @property
    def is_compared(self) -> bool:
        """Whether a loop counts how often it is the same whole number as another element."""
        loop = self.loop
        counted = {n for r in self.reading.reductions if r.type.integral for n in r.axes[:1]}
        if loop is None or loop.name not in counted or not self.access.element.integral:
            return False
        return any(
            isinstance(part, Binary) and part.op in ("==", "!=")
            and self.access.node in every(part)
            and all(any(isinstance(e, Index) for e in every(s)) for s in (part.left, part.right))
            for part in expressions(loop.node.body)
        )  # fmt: skip

    @property
    def is_searched(self) -> bool:
        """Whether each round of a loop looks for something by halves, in which it is the middle."""
        loops, place = self.reading.loops(self.access), self.place
        if len(loops) < 2 or not isinstance(place, Index) or not isinstance(place.index, Name):
            return False
        node = loops[-1].node
        ends = {e.variable for e in every(node.test) if isinstance(e, Name)} if node.test else set()
        return any(
            isinstance(part, Binary) and part.op in ("/", ">>")
            and len(ends.intersection(e.variable for e in every(part) if isinstance(e, Name))) > 1
            for part in expressions(node.body)
        )  # fmt: skip
