"""P17, within: what adds nothing for threads that a guard turns away moves into the guard.

``float v = 0; if (i < n) v = f(i); atomicAdd(&sum, v);`` becomes ``if (i < n) { v = f(i);
atomicAdd(&sum, v); }``. So a block is written that adds up what its threads have: those beyond the
last item bring zeros. Within the guard, it says how many items there are, and others may take them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from optiml_magic.kernels.editing import edited
from optiml_magic.kernels.expressions import (
    Assign,
    Binary,
    Choice,
    Expr,
    Literal,
    Name,
    Unary,
    builtin,
    every,
)
from optiml_magic.kernels.primitives.base import Kernel, NotLegal, Refused, primitive
from optiml_magic.kernels.primitives.effects import Effects
from optiml_magic.kernels.primitives.updates import updated
from optiml_magic.kernels.primitives.zeros import is_zero
from optiml_magic.kernels.tree import (
    Block,
    Declare,
    Evaluate,
    If,
    Statement,
    Variable,
    expressions,
    walk,
)

_ZERO = Literal(None, "0", 0)
_BUILTINS = frozenset({"threadIdx", "blockIdx", "blockDim", "gridDim"})
_Lets = dict[Variable, Expr | None]


@primitive
def within(kernel: Kernel) -> Kernel:
    """The kernel with what adds zeros behind a guard moved into it."""
    found = _Within(kernel)
    body = kernel.function.body
    lets: _Lets = {}
    for at, statement in enumerate(body.body):
        rest = body.body[at + 1 :]
        test = found.test(statement)
        if test is not None and found.adds(rest) and found.idle((statement, *rest), test, lets):
            inside = (*found.opened(statement, test, rest), *rest)
            branch = If(None, statement.line, test, Block(None, statement.line, inside))
            return kernel.rewritten(replace(body, body=(*body.body[:at], branch)))
        found.follow(statement, None, lets)
    raise NotLegal("no guard stands before what adds zeros")


class _Within:
    def __init__(self, kernel: Kernel) -> None:
        self.kernel = kernel
        self.effects = Effects(kernel)
        self.effects.straightforward()
        sums = [one for one in updated(kernel) if not isinstance(one, Refused) and one.op == "+"]
        self.updates = {update.statement: update.value for one in sums for update in one.updates}
        self.counts = {name for size in kernel.launch.grid[:1] for name in size.names}

    def test(self, statement: Statement) -> Expr | None:
        """What a statement does something under, which is the same wherever it is asked."""
        match statement:
            case If(test=test, other=None, before=None, constant=False):
                found = test
            case Declare(variables=(Variable(value=Choice(test=test)),)):
                found = test
            case _:
                return None
        return found if all(map(self._lasts, every(found))) else None

    def adds(self, rest: Sequence[Statement]) -> bool:
        """Whether something is added up there, for all threads."""
        return any(statement in self.updates for statement in rest)

    def idle(
        self, statements: Sequence[Statement], test: Expr, lets: Mapping[Variable, Expr | None]
    ) -> bool:
        """Whether statements do nothing for a thread for which ``test`` fails."""
        own = dict(lets)
        for statement in statements:
            if statement in self.updates:
                if not self._nothing(self.updates[statement], own):
                    return False
            elif not self._same(statement, test):
                local = isinstance(statement, Declare) or self._assigns(statement)
                touched = any(a.mode != "load" for a in self.effects.accesses(statement))
                if not local or touched or self.effects.kept(statement):
                    return False
                self.follow(statement, test, own)
        return True

    def follow(self, statement: Statement, test: Expr | None, lets: _Lets) -> None:
        """Which locals are zero behind a statement, where ``test`` fails."""
        before = dict(lets)
        for variable in self.effects.changed(statement):
            lets[variable] = None
        match statement:
            case Declare(variables=variables):
                for variable in variables:
                    plain = not variable.array and not variable.type.reference
                    value = variable.value if plain else None
                    if (
                        isinstance(value, Choice)
                        and test is not None
                        and self._equal(value.test, test)
                    ):
                        value = value.other
                    lets[variable] = _ZERO if value and self._nothing(value, lets) else None
            case Evaluate(
                expression=Assign(op="=", target=Name(variable=Variable() as v), value=value)
            ):
                lets[v] = _ZERO if self._nothing(value, before) else None

    def opened(
        self, statement: Statement, test: Expr, rest: Sequence[Statement]
    ) -> tuple[Statement, ...]:
        """What a statement does where ``test`` holds."""
        if isinstance(statement, If):
            then = statement.then.body if isinstance(statement.then, Block) else (statement.then,)
            declared = {v.name for s in then if isinstance(s, Declare) for v in s.variables}
            used = {e.name for s in rest for e in expressions(s) if isinstance(e, Name)}
            used |= {
                v.name for s in rest for i in walk(s) if isinstance(i, Declare) for v in i.variables
            }
            return then if not declared & used else (statement.then,)
        chosen = [e for e in expressions(statement) if isinstance(e, Choice) and e.test is test]
        return (edited(statement, {e: edited(e.then, {}) for e in chosen}),)

    def _assigns(self, statement: Statement) -> bool:
        expr = statement.expression if isinstance(statement, Evaluate) else None
        return isinstance(expr, Assign) and isinstance(expr.target, Name)

    def _same(self, statement: Statement, test: Expr) -> bool:
        own = statement.test if isinstance(statement, If) and self.test(statement) else None
        return own is not None and self._equal(own, test)

    def _equal(self, one: Expr, other: Expr) -> bool:
        return one is other or self._shown(one) == self._shown(other)

    def _shown(self, expr: Expr) -> str:
        return self.kernel.show(Evaluate(None, 0, expr))

    def _nothing(self, value: Expr, lets: _Lets) -> bool:
        """Zero, also as a share of what the launch has blocks for, so that there is some."""
        if isinstance(value, Binary) and value.op == "/":
            by = value.right
            some = (
                bool(by.value)
                if isinstance(by, Literal)
                else (isinstance(by, Name) and by.name in self.counts - self.effects.moved)
            )
            return some and self._nothing(value.left, lets)
        return is_zero(value, set(), lets)

    def _lasts(self, e: Expr) -> bool:
        if builtin(e) or isinstance(e, Binary | Literal):
            return True
        if isinstance(e, Unary):
            return e.op in "!-+~"
        if not isinstance(e, Name):
            return False
        variable = e.variable
        if variable is None:
            return e.name in self.kernel.program.values or e.name in _BUILTINS
        given = variable.storage == "parameter" and variable.name not in self.effects.moved
        return given or variable in self.effects.lasting
