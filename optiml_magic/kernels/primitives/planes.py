"""How a kernel takes its one index apart by one size, and what it does for a row and a column."""

from __future__ import annotations

import re

from optiml_magic.kernels.editing import Node, lines, text
from optiml_magic.kernels.expressions import Binary, Expr, Name
from optiml_magic.kernels.polynomial import Polynomial
from optiml_magic.kernels.primitives.base import Kernel, NotLegal
from optiml_magic.kernels.primitives.effects import Effects
from optiml_magic.kernels.primitives.mapped import Mapped, mapped
from optiml_magic.kernels.primitives.naming import LocalSpeller
from optiml_magic.kernels.primitives.places import bare
from optiml_magic.kernels.tree import Leave, expressions, walk


class Plane:
    """How a kernel takes its one index apart. Raises NotLegal where it does not in one way."""

    def __init__(self, kernel: Kernel) -> None:
        self.old = kernel
        self.effects = Effects(kernel)
        if len(kernel.launch.grid) > 1 or kernel.block[1:] != (1, 1):
            raise NotLegal("its launch has several axes")
        self.items = items = mapped(kernel, self.effects)
        given = {p.name for p in kernel.function.parameters if not p.type.depth}
        given -= self.effects.moved
        self.places = [(e, e.op, e.right.name) for e in self._inside()
                       if isinstance(e, Binary) and e.op in ("/", "%")
                       and isinstance(e.right, Name) and e.right.name in given
                       and self._is_index(e.left)]  # fmt: skip
        sizes = {size for _, _, size in self.places}
        if len(sizes) != 1:
            raise NotLegal("its index is not taken apart by one size")
        (self.columns,) = sizes
        rows = items.bound.over(Polynomial.symbol(self.columns))
        if rows is None or not rows.terms or not rows.symbols <= given:
            raise NotLegal("how many items there are is not a number of whole rows")
        self.rows = rows
        self.column = kernel.fresh(f"{items.name}_column")
        self.row = kernel.fresh(f"{items.name}_row")

    def _inside(self) -> list[Expr]:
        return [e for s in self.items.inside for e in expressions(s)]

    def _is_index(self, expr: Expr) -> bool:
        held = isinstance(expr, Name) and expr.variable is not None
        same = held and expr.variable is self.items.holding  # type: ignore[attr-defined]
        return same or (bare(expr) is expr and expr in self.items.swaps)

    def spelled(self, form: Polynomial) -> str:
        speller = LocalSpeller(self.old.reading.symbols, {}, moved=self.effects.moved)
        speller.kernel = self.old
        words = speller.form(form)
        return f"({words})" if " " in words else words

    def tests(self) -> list[str]:
        """What else must hold for all items."""
        shown = (self.old.spelled(test)
                 for test in self.items.tests)  # fmt: skip
        return [f"({words})" for words in shown]

    def inside(self, row: str, column: str) -> list[str]:
        """What is done for an item of this row and column, within a loop over items."""
        swaps: dict[Node, Node] = dict(self.items.swaps)
        swaps |= ends(self.items)
        swaps |= {e: text(row if op == "/" else column) for e, op, _ in self.places}
        shown = [self.old.show(s, swaps) for s in self.items.inside]
        if not any(re.search(rf"\b{self.items.name}\b", s) for s in shown):
            return shown
        whole = f"const {self.items.words} {self.items.name} = {row} * {self.columns} + {column};"
        return [whole, *shown]


def ends(items: Mapped) -> dict[Node, Node]:
    """Where an item is left before its end, the loop goes on with the next."""
    return {
        s: lines("continue;") for inside in items.inside for s in walk(inside)
        if isinstance(s, Leave) and s.kind == "return"
    }  # fmt: skip
