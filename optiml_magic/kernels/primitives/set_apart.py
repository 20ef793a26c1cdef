"""What depends on fewer indices than its thread has becomes a local of its own.

The weight of a pixel is that of its row times that of its column; apart, each of them may be
computed where its own indices change.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from optiml_magic.kernels.editing import Node, edited, lines, text
from optiml_magic.kernels.expressions import Expr
from optiml_magic.kernels.primitives.base import Kernel, NotLegal, primitive
from optiml_magic.kernels.primitives.beforehand import works
from optiml_magic.kernels.primitives.costs import is_long
from optiml_magic.kernels.primitives.tabulated import is_value, named_after
from optiml_magic.kernels.primitives.works import Finder
from optiml_magic.kernels.tree import Block, Declare, Evaluate, If, Loop, Statement


@primitive
def set_apart(kernel: Kernel) -> Kernel:
    """Long functions of fewer indices than the launch has are locals by themselves."""
    finder, _ = works(kernel)
    body = _Apart(kernel, finder).block(kernel.function.body, frozenset(finder.launched))
    if body is None:
        raise NotLegal("no long function depends on fewer indices than its statement")
    return kernel.rewritten(body)


class _Apart:
    def __init__(self, kernel: Kernel, finder: Finder) -> None:
        self.kernel, self.finder = kernel, finder
        self.touching = {access.own for access in kernel.reading.accesses}
        self.names: list[str] = []

    def block(self, block: Block, around: frozenset[str | Loop]) -> Block | None:
        """The block with such locals; None where there is none in it."""
        made: list[Statement] = []
        changed = False
        for statement in block.body:
            before, new = self._statement(statement, around)
            made += [*before, new]
            changed = changed or bool(before) or new is not statement
        return Block(None, block.line, tuple(made), block.tail) if changed else None

    def _statement(
        self, statement: Statement, around: frozenset[str | Loop]
    ) -> tuple[list[Statement], Statement]:
        """What is to stand before a statement, and the statement."""
        match statement:
            case Block():
                return [], self.block(statement, around) or statement
            case If(before=None, then=then, other=other):
                parts = self._inner(then, around), other and self._inner(other, around)
                if parts == (then, other):
                    return [], statement
                return [], replace(statement, then=parts[0], other=parts[1], span=None)
            case Loop(body=body):
                inner = self._inner(body, around | {statement})
                return [], statement if inner is body else replace(statement, body=inner, span=None)
            case Declare() | Evaluate():
                return self._plain(statement, around)
        return [], statement

    def _inner(self, statement: Statement, around: frozenset[str | Loop]) -> Statement:
        if isinstance(statement, Block):
            return self.block(statement, around) or statement
        before, new = self._statement(statement, around)
        if not before:
            return new
        return Block(None, statement.line, (*before, new))

    def _plain(
        self, statement: Declare | Evaluate, around: frozenset[str | Loop]
    ) -> tuple[list[Statement], Statement]:
        swaps: dict[Node, Node] = {}
        known: dict[tuple[str, str], str] = {}
        whole = [v.value for v in statement.variables] if isinstance(statement, Declare) else []
        for top in statement.expressions:
            for node in self._largest(top, around):
                kind = self.kernel.reading.types.get(node)
                if kind is None or not kind.name or kind.depth or node in whole:
                    continue
                words = self.kernel.spelled(node)
                if (kind.name, words) not in known:
                    name = self.kernel.fresh(named_after(statement, node), *self.names)
                    self.names.append(name)
                    known[kind.name, words] = name
                swaps[node] = text(known[kind.name, words])
        before = [lines(f"const {kind} {n} = {words};") for (kind, words), n in known.items()]
        return [*before], edited(statement, swaps) if swaps else statement

    def _largest(self, expr: Expr, around: frozenset[str | Loop]) -> Iterator[Expr]:
        try:
            fewer = not around & {*self.finder.launched} <= self.finder.of(expr)
        except NotLegal:
            fewer = False
        if not is_long(self.kernel, expr):
            return
        if fewer and is_value(self.kernel, expr, self.touching):
            yield expr
            return
        for part in expr.parts:
            yield from self._largest(part, around)
