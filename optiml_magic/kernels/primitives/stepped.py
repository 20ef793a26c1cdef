"""P14: an item's index taken apart once a vector; within it, row and column are stepped.

A division by a size that the compiler does not know is some twenty instructions.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass

from optiml_magic.kernels.editing import Node, text
from optiml_magic.kernels.expressions import Binary, Expr, Literal, Name
from optiml_magic.kernels.polynomial import Polynomial
from optiml_magic.kernels.primitives.base import Kernel
from optiml_magic.kernels.primitives.effects import Effects
from optiml_magic.kernels.primitives.mapped import Mapped
from optiml_magic.kernels.primitives.places import axis_of, bare
from optiml_magic.kernels.tree import expressions


@dataclass(frozen=True)
class _Cut:
    """What an index is divided by, in type ``kind``.

    It holds ``whole`` vectors, or else a vector may reach into the next row; ``test`` is what that
    asks of the size, where nothing else does.
    """

    size: str
    kind: str
    whole: bool
    test: str
    row: str
    column: str
    over: str


class Stepped:
    """Quotients and rests of the items' index, by the sizes that are parameters."""

    def __init__(
        self, kernel: Kernel, items: Mapped, whole: Sequence[Polynomial], width: int
    ) -> None:
        self.items = items
        self.swaps: dict[Node, Node] = {}
        self._cuts: dict[tuple[str, str], _Cut] = {}
        self._places: list[tuple[Expr, str, _Cut]] = []
        effects = Effects(kernel)
        self.holding = {
            v for v in effects.lasting if v.value is not None and axis_of(kernel, v.value) == "x"
        }
        sizes = {p.name for p in kernel.function.parameters if not p.type.depth}
        sizes -= effects.moved
        certain = {str(form) for form in whole}
        given = kernel.facts.scalars if kernel.facts is not None else {}
        for expr in (e for s in items.inside for e in expressions(s)):
            if not isinstance(expr, Binary) or expr.op not in ("/", "%"):
                continue
            kind = kernel.reading.types.get(expr)
            size, number = _spelled(expr.right, sizes, given)
            if not size or kind is None or not kind.integral or not self._is_index(expr.left):
                continue
            fits = size in certain or number % width == 0
            if not fits and size.isdigit():  # a compiler multiplies by its inverse
                continue
            if not fits and size in given and number < width:  # it would never be taken
                continue
            cut = self._cuts.get((size, kind.name))
            if cut is None:
                names = [n for c in self._cuts.values() for n in (c.row, c.column, c.over)]
                fresh = [kernel.fresh(f"{items.name}_{word}", *names)
                         for word in ("row", "column", "over")]  # fmt: skip
                test = f"{size} % {width} == 0" if fits else f"{size} >= {width}"
                test = "" if size in certain or size.isdigit() else test
                cut = _Cut(size, kind.name, fits, test, *fresh)
                self._cuts[size, kind.name] = cut
            self._places.append((expr, expr.op, cut))

    def _is_index(self, expr: Expr) -> bool:
        plain = bare(expr)
        if plain is not expr:  # its value may be another one in that type
            return False
        if isinstance(plain, Name) and plain.variable in self.holding:
            return True
        return plain in self.items.swaps

    def exchanged(self, item: str) -> dict[Node, Node]:
        """What stands for each in the ``item``-th of a vector."""
        found: dict[Node, Node] = {}
        for expr, op, cut in self._places:
            column = f"{cut.column} + {item}"
            if op == "/":
                found[expr] = text(cut.row if cut.whole else f"({cut.row} + {cut.over})")
            elif cut.whole:
                found[expr] = text(f"({column})")
            else:
                found[expr] = text(f"({column} - ({cut.over} ? {cut.size} : 0))")
        return found

    def before(self, body: str, first: str) -> list[str]:
        """The lines in front of a vector's items, where what is done for each asks for them."""
        found = []
        for cut in self._asked(body):
            found.append(f"const {cut.kind} {cut.row} = {first} / {cut.size};")
            found.append(f"const {cut.kind} {cut.column} = {first} - {cut.row} * {cut.size};")
        return found

    def each(self, body: str, item: str) -> list[str]:
        """The lines in front of what is done for an item."""
        return [
            f"const bool {cut.over} = {cut.column} + {item} >= {cut.size};"
            for cut in self._asked(body) if not cut.whole
        ]  # fmt: skip

    def tests(self, body: str) -> list[str]:
        """What must hold of the sizes."""
        return [cut.test for cut in self._asked(body) if cut.test]

    def _asked(self, body: str) -> Iterator[_Cut]:
        for cut in self._cuts.values():
            if re.search(rf"\b({cut.row}|{cut.column}|{cut.over})\b", body):
                yield cut


def _spelled(by: Expr, sizes: Collection[str], given: Mapping[str, int | float]) -> tuple[str, int]:
    """A divisor in words, and as a number where that is known, else 1; empty for any other."""
    match by:
        case Name(name=name) if name in sizes:
            return name, int(given.get(name, 1))
        case Literal(value=int(number)) if number > 0:
            return str(number), number
    return "", 1
