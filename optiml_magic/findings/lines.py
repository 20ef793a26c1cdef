"""What stands on a line of a program, asked of its readings and of the trees they are made from.

A compiler puts an instruction on the line where its expression begins, and that of a function which
it looks through on that function's own line. Where no access begins on a line, those of the
statements over it and of what they call are meant; where the readings did not get there, what is
indexed in the text.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property

from optiml_magic.findings.sites import Site
from optiml_magic.kernels.expressions import (
    Assign,
    Call,
    Expr,
    Index,
    Member,
    Name,
    Span,
    Unary,
    Unread,
    every,
)
from optiml_magic.kernels.functions import atomic, bare
from optiml_magic.kernels.reading import Reading, Reduction
from optiml_magic.kernels.tree import Declare, Function, Loop, Statement, Variable, Verbatim
from optiml_magic.kernels.unit import Unit
from optiml_magic.model.counters import Access, Space
from optiml_magic.source.syntax import walk

_SPELLED = frozenset({"primitive_type", "type_identifier", "identifier"})


@dataclass(frozen=True, eq=False)
class _Piece:
    """A whole expression of a statement, or the value that a ``variable`` begins with."""

    span: Span
    lines: tuple[int, int]
    expression: Expr
    variable: Variable | None = None
    header: bool = False


@dataclass(frozen=True, eq=False)
class Lines:
    """The lines of one text, numbered as a compiler does."""

    unit: Unit
    readings: tuple[Reading, ...]

    def sites(self, line: int, access: Access, space: Space | None = None) -> tuple[Site, ...]:
        """The accesses of a line."""
        wanted = [
            site
            for site in self._sites
            if site.access.mode == access and space in (None, site.access.space)
        ]
        exact = tuple(site for site in wanted if site.access.line == line)
        if exact:
            return exact
        over = tuple(self._over(line))
        spans = [*(piece.span for piece in over), *(f.span for f in self._called(over))]
        return tuple(site for site in wanted if _inside(site.access.node, spans))

    def array(self, line: int, access: Access, space: Space | None = None) -> str:
        """The array that a line loads from or stores to; empty where that is not certain."""
        found = self.arrays(line, access, space)
        return found[0] if len(found) == 1 else ""

    def arrays(self, line: int, access: Access, space: Space | None = None) -> tuple[str, ...]:
        """The arrays that a line may load from or store to, each once."""
        found = [site.access.array for site in self.sites(line, access, space)]
        if not found:
            elsewhere = {site.access.array for site in self._sites if site.access.line == line}
            found = [name for name in self._indexed(line, access) if name not in elsewhere]
        return tuple(dict.fromkeys(found))

    def assigned(self, line: int) -> str:
        """The variable that a line assigns to, of several the one that a loop combines into.

        Empty where there is none, or where that does not tell. Heads of loops do not count.
        """
        names = set()
        for piece in self._over(line):
            if piece.header:
                continue
            if piece.variable is not None:
                names.add(piece.variable.name)
            names |= {
                name
                for part in every(piece.expression)
                if isinstance(part, Assign) and self._covers(part, line)
                for name in _bases(part.target)
            }
        combined = {r.place.partition("[")[0] for r in self._reductions(line)}
        told = names if len(names) == 1 else names & combined
        return next(iter(told)) if len(told) == 1 else ""

    def calls(self, line: int) -> tuple[str, ...]:
        """The functions that a line calls, by their bare names; those of the text left out."""
        return tuple(self._calls.get(line, ()))

    @property
    def first_barrier(self) -> int:
        """The first line where threads of a block wait for each other, 0 where none do."""
        barriers = (b for reading in self.readings for b in reading.barriers)
        return min((b.line for b in barriers if b.scope != "warp"), default=0)

    def first(self, access: Access, space: Space) -> int:
        """The first line with such an access, 0 where there is none."""
        found = (s.access for s in self._sites)
        return min((a.line for a in found if (a.mode, a.space) == (access, space)), default=0)

    def spells(self, *names: str) -> bool:
        """Whether the text has one of these types or names, its macros expanded."""
        wanted = {name.encode() for name in names}
        nodes = walk(self.unit.syntax.root)
        return any(node.type in _SPELLED and node.text in wanted for node in nodes)

    @cached_property
    def _sites(self) -> tuple[Site, ...]:
        return tuple(Site(reading, a) for reading in self.readings for a in reading.accesses)

    @cached_property
    def _calls(self) -> dict[int, list[str]]:
        found: dict[int, list[str]] = defaultdict(list)
        for part in (part for piece in self._pieces for part in every(piece.expression)):
            if isinstance(part, Call | Unread) and part.span is not None:
                found[self.unit.line(*part.span)] += self._foreign(part)
        return dict(found)

    @cached_property
    def _pieces(self) -> tuple[_Piece, ...]:
        return tuple(
            piece for function in self.unit.functions for piece in self._pieces_of(function.body)
        )

    def _pieces_of(self, statement: Statement, *, header: bool = False) -> Iterator[_Piece]:
        if isinstance(statement, Declare):
            for variable in statement.variables:
                values = variable.initial if variable.value is None else (variable.value,)
                for value in values:
                    yield from self._piece(variable.span, value, variable, header=header)
        elif isinstance(statement, Loop):
            if statement.before is not None:
                yield from self._pieces_of(statement.before, header=True)
            for expression in statement.expressions:
                yield from self._piece(expression.span, expression, header=True)
            yield from self._pieces_of(statement.body)
            return
        else:
            for expression in statement.expressions:
                yield from self._piece(expression.span, expression, header=header)
        inner = statement.statements
        if isinstance(statement, Verbatim):
            inner = statement.inner
            unread = Unread(statement.span, statement.reason, statement.mentions)
            yield from self._piece(statement.span, unread) if not inner else ()
        for each in inner:
            yield from self._pieces_of(each, header=header)

    def _piece(
        self, span: Span | None, expression: Expr, variable: Variable | None = None,
        *, header: bool = False,
    ) -> Iterator[_Piece]:  # fmt: skip
        if span is not None:
            yield _Piece(span, self._lines_of(span), expression, variable, header)

    def _over(self, line: int) -> Iterator[_Piece]:
        return (piece for piece in self._pieces if piece.lines[0] <= line <= piece.lines[1])

    def _lines_of(self, span: Span) -> tuple[int, int]:
        """The first and the last line; all of a macro's use where a part of one is meant."""
        end = self.unit.origin.origin(*span)[1]
        return self.unit.line(*span), bisect_right(self.unit.newlines, end - 2) + 1

    def _covers(self, part: Expr, line: int, *, beginning: bool = False) -> bool:
        if part.span is None:
            return False
        first, last = self._lines_of(part.span)
        return line == first if beginning else first <= line <= last

    def _reductions(self, line: int) -> Iterator[Reduction]:
        ranges = [piece.lines for piece in self._over(line)]
        found = (r for reading in self.readings for r in reading.reductions)
        return (r for r in found if any(a <= r.line <= b for a, b in ranges))

    def _foreign(self, part: Expr) -> Iterator[str]:
        """The function of another text that an expression calls, or may call where it is unread."""
        if isinstance(part, Call) and part.receiver is None:
            if not self.unit.called(part.function, len(part.arguments)):
                yield bare(part.function)
        elif isinstance(part, Unread):
            names = (m for m in part.mentions if isinstance(m, Name) and m.variable is None)
            yield from (bare(name.name) for name in names)

    def _called(self, pieces: Iterable[_Piece]) -> tuple[Function, ...]:
        """The functions of the text that pieces call, and those that these call."""
        found: dict[Function, None] = {}
        todo = list(pieces)
        while todo:
            for part in every(todo.pop().expression):
                named = self.unit.called(part.function, len(part.arguments)) if isinstance(
                    part, Call) else ()  # fmt: skip
                for function in named:
                    if function not in found:
                        found[function] = None
                        todo += self._pieces_of(function.body)
        return tuple(found)

    def _indexed(self, line: int, access: Access) -> Iterator[str]:
        """What a line indexes, as the text names it."""
        for piece in self._over(line):
            parts = [p for p in every(piece.expression) if self._covers(p, line, beginning=True)]
            stored = {p.target for p in parts if isinstance(p, Assign)}
            updated = {p.target for p in parts if isinstance(p, Assign) and p.op != "="}
            inner = {p.base for p in parts if isinstance(p, Index)}
            calls = (p for p in parts if isinstance(p, Call) and p.arguments)
            taken = {call.arguments[0] for call in calls if atomic(bare(call.function))}
            for part in parts:
                if access == "atomic":
                    yield from _bases(part) if part in taken else ()
                elif isinstance(part, Index) and part not in inner:
                    is_load = part not in stored or part in updated
                    if is_load if access == "load" else part in stored:
                        yield from _bases(part)


def _inside(node: Expr, spans: Iterable[Span]) -> bool:
    span = node.span
    return span is not None and any(a <= span[0] and span[1] <= b for a, b in spans)


def _bases(place: Expr) -> Iterator[str]:
    """The name of what a place is in, none or one."""
    while isinstance(place, Index | Member | Unary):
        place = place.operand if isinstance(place, Unary) else place.base
    if isinstance(place, Name):
        yield place.name
