"""Rows of a window by a name of their own, so that who sums them up sees which is which.

``if (y + j >= 0 && y + j < h) ... a[(y + j) * w + x]`` tests and loads the same row, and so does a
loop over the rows that there are, ``for (j = max(y - r, 0); j <= min(y + r, h - 1); j++)``. Either
becomes ``int row = y + j; if (row >= 0 && row < h) ... a[row * w + x]``, a local that is certainly
within a plane wherever it is asked for.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from optiml_magic.kernels.combining import same
from optiml_magic.kernels.editing import Node, edited, lines, text
from optiml_magic.kernels.expressions import Binary, Expr, Literal, Name, every
from optiml_magic.kernels.primitives.base import Kernel, NotLegal, primitive
from optiml_magic.kernels.primitives.effects import (
    Effects,
    is_counted,
    loops_in,
    names,
    parted,
)
from optiml_magic.kernels.primitives.mapped import split_test
from optiml_magic.kernels.primitives.pinned import Scalars
from optiml_magic.kernels.spelling import Speller
from optiml_magic.kernels.tree import Block, Declare, If, Loop, Statement, Variable

_ORDERS = frozenset({"<", "<=", ">", ">="})


@primitive
def named_rows(kernel: Kernel) -> Kernel:
    """The first loop around another one with a name for the row that it tests or counts."""
    naming = _Naming(kernel)
    for loop in loops_in(kernel.function.body):
        if loops_in(loop.body):
            body = naming.counted(loop) or naming.tested(loop)
            if body is not None:
                made = replace(loop, body=body, span=None, lead=None)
                return kernel.rewritten(edited(kernel.function.body, {loop: made}))
    raise NotLegal("no loop around another one tests or counts a row that has no name")


class _Naming:
    def __init__(self, kernel: Kernel) -> None:
        self.kernel, self.effects, self.axes = kernel, Effects(kernel), kernel.axes()
        self.scalars = Scalars(self.effects.moved)
        self.name = kernel.fresh("row")

    def counted(self, loop: Loop) -> Block | None:
        """The body of a loop whose head says that its counter is within a plane."""
        axis = self.axes.get(loop)
        if axis is None or axis.variable is None or not is_counted(axis, self.effects):
            return None
        counter, up = axis.variable, axis.step is not None and (axis.step.value or 0) > 0
        if not up or not self._is_steady(counter, loop.body) or counter.value is None:
            return None
        positive, _ = self.scalars.ends(counter.value)
        assert loop.test is not None  # of a loop that counts
        count = self.scalars.below(loop.test, counter)
        if not positive or count is None or self._names(loop, counter):
            return None
        size = Speller(self.kernel.reading.symbols, {}).form(count)
        swaps = self._swaps(loop.body, Name(None, counter.name, counter))
        row = text(self.name)
        low, high = (
            Binary(None, ">=", row, Literal(None, "0", 0)),
            Binary(None, "<", row, text(size)),
        )
        test = Binary(None, "&&", low, high)
        inner = edited(loop.body, swaps)
        then = inner if isinstance(inner, Block) else Block(None, loop.line, (inner,))
        branch = If(None, loop.line, test, then)
        return Block(None, loop.line, (lines(f"int {self.name} = {counter.name};"), branch))

    def tested(self, loop: Loop) -> Block | None:
        """The body of a loop that tests by itself whether a row is within a plane."""
        own = [*parted(loop.body)]
        declared = {v for s in own if isinstance(s, Declare) for v in s.variables}
        axis = self.axes.get(loop)
        moving = declared | ({axis.variable} if axis is not None and axis.variable else set())
        for statement in own:
            if not isinstance(statement, If) or statement.before is not None or statement.other:
                continue
            for row in self._tested(statement, moving - declared, moving):
                words = self.kernel.spelled(row)
                swaps = self._swaps(statement, row)
                left = (edited(s, swaps) if s is statement else s for s in own)
                named = lines(f"int {self.name} = {words};")
                at = own.index(statement)
                made = [*left]
                return Block(None, loop.line, (*made[:at], named, *made[at:]))
        return None

    def _tested(self, branch: If, counters: set[Variable], moving: set[Variable]) -> Iterator[Expr]:
        """What a branch tests to be 0 or more, where it has no name and moves with the rounds."""
        for part in split_test(branch.test, "&&"):
            if not isinstance(part, Binary) or part.op not in _ORDERS:
                continue
            for row, bound in ((part.left, part.right), (part.right, part.left)):
                plain = isinstance(row, Binary) or (
                    isinstance(row, Name) and row.variable in counters
                )
                kind = self.kernel.reading.types.get(row)
                whole = kind is not None and kind.name == "int" and not kind.depth
                if not plain or not whole or not isinstance(bound, Literal) or bound.value != 0:
                    continue
                asked = names([row])
                if asked & moving and all(self._is_steady(v, branch) for v in asked):
                    yield from [row] if self._is_plain(row) else []

    def _is_plain(self, row: Expr) -> bool:
        """Whether it may be asked for anywhere: sums and products of locals and sizes alone."""
        for part in every(row):
            match part:
                case Literal() | Name(variable=Variable()) | Binary(op="+" | "-" | "*"):
                    pass
                case _:
                    return False
        return True

    def _is_steady(self, variable: Variable, inside: Statement) -> bool:
        plain = variable.type.base in ("int", "const int") and not variable.type.depth
        lent = variable in self.effects.lent or variable.type.reference or variable.array
        return plain and not lent and variable not in self.effects.changed(inside)

    def _names(self, loop: Loop, counter: Variable) -> bool:
        """Whether a local is the counter already."""
        return any(
            isinstance(v.value, Name) and v.value.variable is counter
            for s in parted(loop.body) if isinstance(s, Declare) for v in s.variables
        )  # fmt: skip

    def _swaps(self, inside: Statement, row: Expr) -> dict[Node, Node]:
        """A row by its name wherever it is asked for."""
        whole = text(self.name)
        return {e: whole for e in self.effects.inside(inside) if same(e, row)}
