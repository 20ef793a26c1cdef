"""Where the numbers lie that one round of a loop over items loads, stores and keeps."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, field

from optiml_magic.kernels.editing import Node, edited, text
from optiml_magic.kernels.expressions import (
    Binary,
    Expr,
    Index,
    Literal,
    Member,
    Name,
    Unary,
    every,
)
from optiml_magic.kernels.primitives.base import Kernel, NotLegal
from optiml_magic.kernels.primitives.pair_values import Value, constant
from optiml_magic.kernels.tree import Evaluate, Variable
from optiml_magic.kernels.types import CType, named

LANES = "xyzw"


@dataclass(frozen=True)
class Stored:
    """A number that a round leaves in a local array: its row, how far behind the item's first.

    Items are ``step`` numbers apart.
    """

    variable: Variable
    row: str
    at: int
    step: int = 1


class Left(Exception):  # noqa: N818  # it says what happened
    """A round is left, or the loop that it is one of."""

    def __init__(self, kind: str) -> None:
        super().__init__(kind)
        self.kind = kind


@dataclass(eq=False)
class Places(ABC):
    """Elements of rows, each a number behind the item that ``counter`` counts, and ``own`` locals.

    ``arrays`` have a row of items each. A vector is known by its lanes: they are indices behind
    those of its array.
    """

    kernel: Kernel
    counter: Variable
    arrays: frozenset[Variable]
    own: set[Variable] = field(default_factory=set, init=False)

    @abstractmethod
    def value(self, expr: Expr) -> Value:
        """What an expression is in this round."""

    def kind(self, variable: Variable) -> CType:
        return named(variable.type.base, self.kernel.unit.aliases)

    def lanes(self, variable: Variable) -> int:
        kind = self.kind(variable)
        return kind.lanes if kind.kind == "vector" else 1

    def numbers(self, expr: Expr) -> tuple[Expr, ...]:
        """Those of a vector, or a number itself."""
        variable, _, lane = chain(expr)
        if variable is None or lane or self.lanes(variable) == 1:
            return (expr,)
        return tuple(Member(None, expr, own) for own in LANES[: self.lanes(variable)])

    def chained(self, expr: Expr) -> tuple[Variable | None, tuple[Expr, ...], int | None]:
        """Of which variable a number is an element, its indices, and which lane of a vector."""
        variable, indices, lane = chain(expr)
        if variable is None:
            return None, (), None
        part = LANES.find(lane) if lane else None
        count = self.lanes(variable)
        if (count > 1) != (part is not None) or not 0 <= (part or 0) < count:
            raise NotLegal(f"`{variable.name}` is asked for what is not one of its numbers")
        return variable, indices, part

    def constants(self, indices: tuple[Expr, ...], part: int | None) -> tuple[int, ...]:
        found = [constant(self.value(index)) for index in indices]
        if any(one is None for one in found):
            raise NotLegal("an index depends on what is loaded")
        lane = () if part is None else (part,)
        return (*(one for one in found if one is not None), *lane)

    def place(
        self, variable: Variable, indices: tuple[Expr, ...], part: int | None
    ) -> tuple[str, int, int]:
        """The row of a number, how far it lies behind the item's first, and how far items do."""
        *rows, last = indices
        step, at = self._along(last)
        if step < 1:
            raise NotLegal("items do not follow each other in a row")
        lanes = self.lanes(variable)
        row = "".join(f"[{self._spelled(row)}]" for row in rows)
        return row, at * lanes + (part or 0), step * lanes

    def _along(self, expr: Expr) -> tuple[int, int]:
        match expr:
            case Name(variable=variable) if variable is self.counter:
                return 1, 0
            case Binary(op="+" | "-" as op, left=left, right=right):
                (a, b), (c, d) = self._along(left), self._along(right)
                sign = 1 if op == "+" else -1
                return a + sign * c, b + sign * d
            case Binary(op="*", left=left, right=right):
                (a, b), (c, d) = self._along(left), self._along(right)
                if not (a and c):
                    return a * d + b * c, b * d
        known = constant(self.value(expr))
        if known is None:
            raise NotLegal("an index depends on what is loaded")
        return 0, known

    def _spelled(self, expr: Expr) -> str:
        """A row, with the counters of loops that are written out as numbers."""
        swaps: dict[Node, Node] = {}
        for part in every(expr):
            if isinstance(part, Name):
                if part.variable is self.counter or part.variable in self.arrays:
                    raise NotLegal("the row of an element is another for each item")
                if part.variable in self.own:
                    known = constant(self.value(part))
                    if known is None:
                        raise NotLegal("an index depends on what is loaded")
                    swaps[part] = text(str(known) if known >= 0 else f"({known})")
            elif not isinstance(part, Literal | Binary | Unary):
                raise NotLegal("where a row lies is not read")
        shown = self.kernel.show(Evaluate(None, 0, edited(expr, swaps)) if swaps else Evaluate(
            None, 0, expr
        ))  # fmt: skip
        return shown.strip().removesuffix(";")


def chain(expr: Expr) -> tuple[Variable | None, tuple[Expr, ...], str]:
    """Of which variable an expression is an element, its indices, and the lane that it asks for."""
    indices: list[Expr] = []
    lane = ""
    if isinstance(expr, Member):
        if expr.arrow or len(expr.field) != 1:
            return None, (), ""
        lane, expr = expr.field, expr.base
    while isinstance(expr, Index):
        indices.insert(0, expr.index)
        expr = expr.base
    return expr.variable if isinstance(expr, Name) else None, tuple(indices), lane
