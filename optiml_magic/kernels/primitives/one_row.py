"""P9, one row: a table of which each round of a loop fills a row from the one before is one row.

``for (i) for (j) d[i][j] = f(d[i - 1][j], d[i][j - 1], d[i - 1][j - 1])`` keeps all rows, though
nobody asks for more than the last. In place ``d[j]`` is of the row before until it gets its new
value; what lay above, and above to the left, are locals. The same of two rows in turn, of which one
is ``d[i & 1]``, and of a row that is copied into another one behind each round.
"""

from __future__ import annotations

from dataclasses import replace

from optiml_magic.kernels.editing import Node, edited, lines, text
from optiml_magic.kernels.expressions import Index, Name
from optiml_magic.kernels.primitives.base import Kernel, NotLegal, primitive
from optiml_magic.kernels.primitives.effects import Effects, declared_in, names, parted
from optiml_magic.kernels.primitives.tables import Table, tables
from optiml_magic.kernels.tree import Block, Declare, Loop, Statement, body_of, walk

_Changes = dict[Node, "Node | tuple[Statement, ...] | None"]


@primitive
def one_row(kernel: Kernel) -> Kernel:
    """The kernel with each such table as a row."""
    found = next(tables(kernel), None)
    if found is None:
        raise NotLegal("no local array is filled row by row")
    made = _Row(kernel, found).kernel()
    more = one_row(made)
    return more if isinstance(more, Kernel) else made


class _Row:
    def __init__(self, kernel: Kernel, found: Table) -> None:
        self.old, self.found = kernel, found
        name = found.arrays[0].name
        self.row = kernel.fresh(f"{name}_row")
        self.above = kernel.fresh(f"{name}_above")
        self.corner = kernel.fresh(f"{name}_left_above")

    def kernel(self) -> Kernel:
        found = self.found
        changes: _Changes = {
            e: text(f"{self.row}[{self.old.spelled(e.index)}]") for e in found.others
        }
        for e, far in found.old.items():
            old = f"{self.row}[{self.old.spelled(e.index)}]" if far > 0 else self.above
            changes[e] = text(self.corner if far < 0 else old)
        changes |= self._declarations()
        changes |= self._column(changes)
        changes[found.outer.node] = self._outer(changes)
        return self.old.rewritten(edited(self.old.function.body, changes))

    def _outer(self, changes: _Changes) -> Loop:
        found, kind = self.found, self.found.arrays[0].type.base
        inner, body = found.inner.node, body_of(found.outer.node.body)
        corner = -1 in found.old.values()
        made: list[Statement] = []
        if corner:
            made.append(lines(f"{kind} {self.corner} = {self.row}[{self._left()}];"))
        if found.column is not None:
            stored = found.stores[0].base
            assert isinstance(stored, Index)
            given = self._given(self.old.spelled(stored.index))
            made.append(lines(f"{self.row}[{self._left()}] = {given};"))
        for part in body:
            if part is inner:
                made.append(self._rounds(inner, changes, corner))
            elif part is not found.copy:
                made.append(edited(part, changes))
        return _with_body(found.outer.node, made)

    def _rounds(self, inner: Loop, changes: _Changes, corner: bool) -> Loop:
        """The rounds of a row, which keep what they find above."""
        made: list[Statement] = [edited(s, changes) for s in body_of(inner.body)]
        if corner or 0 in self.found.old.values():
            place = self.old.spelled(self.found.stores[0].index)
            kind = self.found.arrays[0].type.base
            made.insert(0, lines(f"const {kind} {self.above} = {self.row}[{place}];"))
        if corner:
            made.append(lines(f"{self.corner} = {self.above};"))
        return _with_body(inner, made)

    def _declarations(self) -> _Changes:
        """The row in the place of its array; that of a copy goes."""
        arrays, made = self.found.arrays, _Changes()
        for statement in walk(self.old.function.body):
            if not isinstance(statement, Declare) or not {*statement.variables} & {*arrays}:
                continue
            parts: list[Statement] = []
            for part in parted(Block(None, statement.line, (statement,))):
                own = part.variables[0] if isinstance(part, Declare) else None
                if own is arrays[0]:
                    extent = arrays[0].extents[-1]
                    assert extent is not None
                    words = f"{own.type.base} {self.row}[{self.old.spelled(extent)}];"
                    parts.append(lines(words))
                elif own not in arrays:
                    parts.append(part)
            made[statement] = tuple(parts)
        return made

    def _column(self, changes: _Changes) -> _Changes:
        """The loop in front without what it stored to the first element of each row."""
        column = self.found.column
        if column is None:
            return {}
        rest = [edited(s, changes) for s in body_of(column.loop.body) if s is not column.statement]
        made: list[Statement] = [_with_body(column.loop, rest)] if rest else []
        if column.begin:
            given = self._given(str(self.found.begin.value))
            made.insert(0, lines(f"{self.row}[{self._left()}] = {given};"))
        return {column.loop: tuple(made)}

    def _left(self) -> str:
        """The column in front of the first of a row, in words that hold ahead of it."""
        first, own = self.found.first, declared_in(self.found.outer.node.body)
        if first.value is not None:
            return str(first.value - 1)
        for e in self.found.ahead:
            if not names([e.index]) & own:
                return self.old.spelled(e.index)
        raise NotLegal("where a row begins is not a number", self.found.inner.line)

    def _given(self, row: str) -> str:
        column = self.found.column
        assert column is not None
        swaps: dict[Node, Node] = {
            e: text(row) for e in Effects(self.old).inside(column.statement)
            if isinstance(e, Name) and e.variable is column.counter
        }  # fmt: skip
        return self.old.spelled(column.value, swaps)


def _with_body(loop: Loop, statements: list[Statement]) -> Loop:
    return replace(loop, body=Block(None, loop.line, tuple(statements)), span=None, head=None)
