"""P3, blocks in a line: ``blockIdx.y * gridDim.x + blockIdx.x`` of a grid of two axes, as one axis.

A second axis was a way around the 65,535 blocks that a grid could once have along the first. Where
a kernel asks for nothing but a block's number in the whole grid, a launch of all blocks along x
numbers them alike, in the same order.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from optiml_magic.kernels.editing import Node, edited
from optiml_magic.kernels.expressions import Binary, Cast, Expr, Member, Name, builtin, every
from optiml_magic.kernels.primitives.axes import every_place_read
from optiml_magic.kernels.primitives.base import Kernel, NotLegal, primitive
from optiml_magic.kernels.primitives.effects import Effects
from optiml_magic.kernels.primitives.places import bare, chain, own_text_only, tops
from optiml_magic.kernels.primitives.sizes import with_grid
from optiml_magic.kernels.tree import Declare, Variable, walk
from optiml_magic.source.expressions import Number, parse_expression

#: What stands for the blocks before those of a block's row, and for its place in that, by rows or
#: by columns.
_ORDERS = (("blockIdx.y", "gridDim.x", "blockIdx.x"), ("blockIdx.x", "gridDim.y", "blockIdx.y"))
_ALL = ("gridDim.x", "gridDim.y")
_ASKED = frozenset({*_ORDERS[0], *_ORDERS[1], "blockIdx.z", "gridDim.z"})
_FIRST = Member(None, Name(None, "blockIdx"), "x")


@primitive
def lined(kernel: Kernel) -> Kernel:
    """The kernel with a grid of one axis; it numbers the blocks of two."""
    if len(kernel.launch.grid) != 2 or kernel.launch.grid[1].tree == Number(1):
        raise NotLegal("its grid does not have two axes")
    own_text_only(kernel)
    every_place_read(kernel)
    found = (_Lines(kernel, *order).swaps() for order in _ORDERS)
    swaps = next((one for one in found if one is not None), None)
    if swaps is None:
        raise NotLegal("it asks for more than the number of a block in the whole grid")
    across, down = kernel.launch.grid
    launch = replace(kernel.launch, grid=(parse_expression(f"({across}) * ({down})"),))
    return with_grid(kernel.rewritten(edited(kernel.function.body, swaps), launch=launch))


class _Lines:
    def __init__(self, kernel: Kernel, row: str, width: str, place: str) -> None:
        self.kernel, self.place = kernel, place
        self.row = (row, width)
        changing = Effects(kernel).changing
        declared = [
            v for s in walk(kernel.function.body) if isinstance(s, Declare) for v in s.variables
        ]
        #: Locals that are such a number and stay it: ``int by = blockIdx.y;``.
        self.called: dict[Variable, str] = {
            v: found for v in declared
            if v.value is not None and v not in changing and not v.type.reference
            and (found := builtin(bare(v.value))) in _ASKED
        }  # fmt: skip

    def swaps(self) -> dict[Node, Node] | None:
        """Sums without the row of blocks, and numbers of all blocks as those along x.

        None where it asks for something else.
        """
        found, seen = dict[Node, Node](), set[Expr]()
        for expr in tops(self.kernel.function.body):
            stack = [expr]
            while stack:
                each = stack.pop()
                made = self._number(each) or self._all(each)
                if made is None:
                    stack += each.parts
                    continue
                found[each] = made
                seen |= {e for e in every(each) if self._asked(e)}
        asked = {e for expr in tops(self.kernel.function.body) for e in every(expr)}
        own = {e for v in self.called if v.value is not None for e in every(v.value)}
        numbered = any(self._asked(e) == self.place for e in seen)
        return found if numbered and not any(self._asked(e) for e in asked - seen - own) else None

    def _asked(self, expr: Expr) -> str:
        if isinstance(expr, Name) and expr.variable is not None:
            return self.called.get(expr.variable, "")
        name = builtin(expr)
        return name if name in _ASKED else ""

    def _number(self, expr: Expr) -> Expr | None:
        """``y * gridDim.x * w + x * w + rest`` without its first term."""
        terms = [*chain(expr, "+")]
        for row in terms:
            left = self._beside(row, self.row)
            for place in terms:
                if left is None or place is row or self._beside(place, (self.place,)) != left:
                    continue
                rest = [t for t in terms if t is not row]
                if any(self._asked(e) for t in rest if t is not place for e in every(t)):
                    return None
                swaps: dict[Node, Node] = {
                    e: _FIRST for e in every(place) if self._asked(e) == self.place
                }
                joined = _joined([edited(t, swaps) for t in rest], "+")
                kind = self.kernel.reading.types.get(expr)
                if kind is None or not self._alike(expr, place):
                    return None
                return Cast(None, kind.name, joined) if kind.signed else joined
        return None

    def _alike(self, *both: Expr) -> bool:
        """Whether what is left of a sum counts as far as the sum did."""
        sizes = {(t.size, t.integral) for e in both if (t := self.kernel.reading.types.get(e))}
        return len(sizes) == 1

    def _all(self, expr: Expr) -> Expr | None:
        """``gridDim.x * gridDim.y * w`` without its second factor."""
        factors = [*chain(expr, "*")]
        if self._beside(expr, _ALL) is None:
            return None
        return _joined([f for f in factors if self._asked(bare(f)) != "gridDim.y"], "*")

    def _beside(self, expr: Expr, wanted: Sequence[str]) -> list[str] | None:
        """What else is in a product of these, as text; None where it is another."""
        factors = [(self._asked(bare(f)), f) for f in chain(expr, "*")]
        if sorted(name for name, _ in factors if name) != sorted(wanted):
            return None
        others = [f for name, f in factors if not name]
        if any(self._asked(e) for f in others for e in every(f)):
            return None
        return sorted(self.kernel.spelled(bare(f)) for f in others)


def _joined(parts: list[Expr], op: str) -> Expr:
    made, *more = parts
    for part in more:
        made = Binary(None, op, made, part)
    return made
