"""What all threads of a block have alike: numbers that do not tell one thread from another."""

from __future__ import annotations

import re
from collections.abc import Iterable

from optiml_magic.kernels.expressions import Call, Expr, Name, builtin, every
from optiml_magic.kernels.functions import LANES
from optiml_magic.kernels.primitives.base import Kernel, NotLegal
from optiml_magic.kernels.primitives.effects import Effects, loops_in
from optiml_magic.kernels.primitives.places import code, reached
from optiml_magic.kernels.reading import Axis
from optiml_magic.kernels.tree import (
    Declare,
    Evaluate,
    If,
    Leave,
    Loop,
    Statement,
    Variable,
    walk,
)

_EACH = re.compile(rf"\batomic[A-Z]|\bclock|{LANES.pattern}")


def texts(kernel: Kernel, call: Call) -> list[str]:
    """What a call says, and what the functions of the text say that it comes to."""
    called = kernel.unit.called(call.function, len(call.arguments))
    return [call.function, *(
        code(kernel.unit, function.span)
        for one in called for function in (one, *reached(kernel.unit, one))
    )]  # fmt: skip


def returns(statement: Statement) -> bool:
    """Whether a thread leaves the kernel by it."""
    return isinstance(statement, Leave) and statement.kind == "return"


class Uniform:
    """Whether all threads of a block have the same values where ``whole`` has those of one.

    ``axis`` is that of rounds which each of them has its own of.
    """

    def __init__(
        self, kernel: Kernel, effects: Effects, whole: Statement, axis: Axis | None
    ) -> None:
        self.kernel, self.effects, self.whole, body = kernel, effects, whole, kernel.function.body
        own = {v for s in walk(whole) if isinstance(s, Declare) for v in s.variables}
        around = [loop for loop in loops_in(body) if whole in set(walk(loop.body))]
        self.known = own | {v for loop in around if (v := self._counts(loop)) is not None}
        if axis is not None and axis.variable is not None:
            self.known.add(axis.variable)
        self.given = {*kernel.function.parameters} - {*effects.changed(body)}
        self.around: dict[Statement, tuple[Statement, ...]] = {}
        self._nest(body, ())

    def _nest(self, statement: Statement, around: tuple[Statement, ...]) -> None:
        self.around[statement] = around
        for inner in statement.statements:
            self._nest(inner, (*around, statement))

    def _counts(self, loop: Loop) -> Variable | None:
        """The counter of a loop around that is the same for all threads of a block."""
        axis = self.kernel.axes().get(loop)
        if axis is None or None in (axis.start, axis.step, axis.stop) or not axis.exact:
            return None
        inside = self.kernel.reading.symbols.inside
        forms = [f for f in (axis.start, axis.step, axis.stop) if f is not None]
        if any("threadIdx" in name or self._loaded(name) for f in forms for name in inside(f)):
            return None
        return axis.variable

    def _loaded(self, name: str) -> bool:
        symbol = self.kernel.reading.symbols.table.get(name)
        return symbol is not None and symbol.kind == "load"

    def check(self, scope: Statement, apart: Iterable[Statement] = ()) -> None:
        """Raise NotLegal where they do not, in the scope or where threads leave the kernel.

        What stands ``apart`` is for one thread alone.
        """
        alone = {e for statement in apart for e in self.effects.inside(statement)}
        self._all(self.effects.inside(scope) - alone, self.whole.line)
        if isinstance(self.whole, Loop) and self.whole.test is not None:
            self._all(every(self.whole.test), self.whole.line)
        for statement in walk(self.kernel.function.body):
            if isinstance(statement, If) and any(map(returns, walk(statement))):
                self._all(every(statement.test), statement.line)

    def _all(self, exprs: Iterable[Expr], line: int) -> None:
        for expr in exprs:
            called = texts(self.kernel, expr) if isinstance(expr, Call) else ()
            if builtin(expr).startswith("threadIdx") or any("threadIdx" in t for t in called):
                raise NotLegal("it asks which thread it is", line)
            if isinstance(expr, Name) and expr.variable is not None:
                self._alike(expr.variable, line)

    def _alike(self, variable: Variable, line: int) -> None:
        if variable in self.known or variable in self.given or variable.storage != "local":
            return
        if variable.array or variable.type.reference or variable in self.effects.lent:
            raise NotLegal(f"`{variable.name}` may differ from thread to thread", line)
        self.known.add(variable)  # as it is before each of its changes
        if variable.value is not None:
            self._given(variable.value, line)
        for statement in self.around:
            for expr in statement.expressions:
                if variable in self.effects.changed(Evaluate(None, statement.line, expr)):
                    self.reached(statement)
                    self._given(expr, line)

    def _given(self, value: Expr, line: int) -> None:
        """Raise NotLegal where what a local is given may be another value for each thread."""
        for expr in every(value):
            if isinstance(expr, Call) and any(map(_EACH.search, texts(self.kernel, expr))):
                raise NotLegal(
                    f"`{expr.function}` may return a different value to each thread", line
                )
        self._all(every(value), line)

    def reached(self, statement: Statement) -> None:
        """Raise NotLegal where not all threads come to a statement alike and as often."""
        for outer in (*self.around[statement], statement):
            if isinstance(outer, If | Loop):
                for expr in outer.expressions:
                    self._all(every(expr), outer.line)
            if isinstance(outer, Loop):
                for branch in walk(outer.body):
                    leaves = (isinstance(s, Leave) for s in walk(branch))
                    if isinstance(branch, If) and any(leaves):
                        self._all(every(branch.test), branch.line)
