"""P23, inline in two dimensions: a stencil computes what the one before stores for a plane.

Neighbours ask for the same elements, so that only a step that takes several items, and computes
once what these share, makes it worth while.
"""

from __future__ import annotations

from optiml_magic.kernels.editing import Node, text
from optiml_magic.kernels.expressions import Expr
from optiml_magic.kernels.polynomial import Polynomial
from optiml_magic.kernels.primitives.base import Kernel, NotLegal, primitive, where_legal
from optiml_magic.kernels.primitives.cutting import uses
from optiml_magic.kernels.primitives.effects import loops_in
from optiml_magic.kernels.primitives.grids import needed_form, room
from optiml_magic.kernels.primitives.inlined import Inlining
from optiml_magic.kernels.primitives.naming import speller_before
from optiml_magic.kernels.primitives.paired import paired
from optiml_magic.kernels.primitives.sizes import rounds
from optiml_magic.kernels.primitives.sunk import sunk
from optiml_magic.kernels.ranges import Ranges
from optiml_magic.kernels.reading import Access
from optiml_magic.kernels.spelling import Unspelled
from optiml_magic.kernels.symbols import Compare
from optiml_magic.kernels.tree import Declare, Statement, walk

_MOST = 32  # rounds of an item that whoever asks for it repeats: ours
_ALL = 128  # of them in the text of all who ask: ours


@primitive
def inlined_planes(kernel: Kernel) -> Kernel:
    """The kernel behind this one, which computes the elements of a plane that this one stores."""
    pair = paired(kernel)
    return _Planes(pair.with_first(where_legal(sunk, pair.first))).kernel()


class _Planes(Inlining):
    def _all(self) -> tuple[Polynomial, Polynomial]:
        """The index of an item in rows of a size, and how many there are; with its two bounds."""
        first, size = self.first, self.items.bound
        names = size.symbols
        if len(names) != 1 or size != Polynomial.symbol(*names):
            raise NotLegal("the length of its rows is not a single size", first.function.line)
        (self.size,) = names
        found, height = uses(first, "y"), needed_form(first, "y")
        apart = bool(found.parts or found.strides) or len(first.launch.block) != 2
        if len(first.launch.grid) != 2 or height is None or not found.whole or apart:
            raise NotLegal("its launch has no plane of items", first.function.line)
        width = first.block[1]
        assert width is not None
        row = Polynomial.symbol("threadIdx.y")
        row += Polynomial.constant(width) * Polynomial.symbol("blockIdx.y")
        self.rows = found.whole
        self.bounds = {
            room("x", first.block[0] or 1, size),
            room("y", width, height),
        }
        return row * size + self.items.index, height * size

    def _check_work(self) -> None:
        """Raise NotLegal where an item is much work, or some items are left out."""
        first, axes = self.first, self.first.axes()
        total = 1
        for part in self.items.inside:
            for loop in loops_in(part):
                inner = 1
                for own in loops_in(loop):
                    inner *= (rounds(first, axes[own]) or _MOST + 1) if own in axes else _MOST + 1
                total = max(total, inner)
        if total > _MOST:
            raise NotLegal(
                "whoever asks for an element would repeat a long loop", first.function.line
            )
        self.work = total
        for access in first.reading.accesses:
            if access.mode == "load":
                continue
            for condition in access.guard:
                for bound in condition.conjuncts():
                    known = (
                        isinstance(bound, Compare)
                        and bound.op == ">="
                        and bound.form in self.bounds
                    )
                    if not known:
                        raise NotLegal("some items of its plane are left out", access.line)

    def _check_copies(self, count: int) -> None:
        if count * self.work > _ALL:
            raise NotLegal("too many places would compute an element", self.second.function.line)

    def _computed(self, statement: Statement, access: Access, item: str) -> list[str]:
        second = self.second
        row = access.index.coefficient(self.size) if access.index is not None else None
        if access.index is None or row is None:
            raise NotLegal(f"the row of `{self.array}` that it asks for is not known", access.line)
        size = Polynomial.symbol(self.size)
        column = access.index - row * size
        if not Ranges(access.guard, second.reading.symbols).within(column, size):
            raise NotLegal(f"it may be in another row of `{self.array}`", access.line)
        speller = speller_before(second, self.effects[1], statement)
        try:
            spelled = [speller.form(speller.local(form)) for form in (row, column)]
        except Unspelled as reason:
            raise NotLegal(
                f"the place it asks for cannot be written: {reason}", access.line
            ) from reason
        line, place = f"{item}_y", f"{item}_x"
        head = f"const int {line} = {spelled[0]};\nconst {self.items.words} {place} = {spelled[1]};"
        swaps: dict[Node, Node] = {e: text(self._typed(e, line)) for e in self.rows}
        swaps |= {e: text(self._typed(e, place)) for e in self.items.swaps if isinstance(e, Expr)}
        return self._lines(item, head, self._places(place) | swaps)

    def _typed(self, expr: Expr, name: str) -> str:
        """A row or a column in the type that its place has, where no declaration says another."""
        for statement in walk(self.first.function.body):
            for variable in statement.variables if isinstance(statement, Declare) else ():
                if variable.value is expr and variable.type.base != "auto":
                    return name
        return f"(({self.first.reading.types[expr].name}){name})"
