"""What a loop changes from round to round, read from its text before it is followed."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from optiml_magic.kernels import groups
from optiml_magic.kernels.combining import same
from optiml_magic.kernels.expressions import (
    Assign,
    Binary,
    Braces,
    Call,
    Choice,
    Expr,
    Lambda,
    Member,
    Name,
    Step,
    Unary,
    Unread,
    every,
)
from optiml_magic.kernels.methods import OBJECT
from optiml_magic.kernels.tree import (
    Block,
    Declare,
    Evaluate,
    If,
    Leave,
    Loop,
    Statement,
    Variable,
    Verbatim,
    walk,
)

MayChange = Callable[[Call, int], bool]


@dataclass(frozen=True)
class Change:
    """``variable op= value``; ``value`` None is one, ``op`` ``?`` is anything.

    ``always`` says that each round makes it once, or once in each round of the loops that it is
    ``within``; ``early`` that it stands in the body, where a ``continue`` may come before it.
    """

    variable: Variable
    op: str
    value: Expr | None
    always: bool
    early: bool
    within: tuple[Loop, ...] = ()


class _Collector:
    def __init__(self, may_change: MayChange) -> None:
        self.may_change = may_change
        self.found: dict[Variable, list[Change]] = {}
        self.declared: set[Variable] = set()
        self.aliases: dict[Variable, Variable] = {}
        self.closures: set[Lambda] = set()
        self.early = True
        self.within: tuple[Loop, ...] = ()

    def add(self, target: Expr, op: str, value: Expr | None, *, always: bool) -> None:
        whole = isinstance(target, Name)
        while isinstance(target, Member) and not target.arrow:
            target = target.base
        if isinstance(target, Name) and target.variable is not None:
            variable = self.aliases.get(target.variable, target.variable)
            spelled = op if whole else "?"
            change = Change(variable, spelled, value, always, self.early, self.within)
            self.found.setdefault(variable, []).append(change)

    def statement(self, statement: Statement, *, always: bool) -> None:
        if isinstance(statement, Block):
            for inner in statement.body:
                self.statement(inner, always=always)
            return
        if isinstance(statement, Verbatim):
            for inner in statement.inner:
                self.statement(inner, always=False)
            for mention in statement.mentions:
                if not statement.inner or isinstance(mention, Unread):
                    self.add(mention, "?", None, always=False)
            return
        if isinstance(statement, Declare):
            self.declared |= set(statement.variables)
            for variable in statement.variables:
                self._refer(variable)
        own = always and isinstance(statement, Declare | Evaluate)
        for expression in statement.expressions:
            # The test of a branch is evaluated in every round, what is inside is not.
            self.expression(expression, always=own or (always and isinstance(statement, If)))
        counted = always and isinstance(statement, Loop) and _goes_through(statement)
        for inner in statement.statements:
            outer = self.within
            if counted and isinstance(statement, Loop) and inner is statement.body:
                self.within = (*outer, statement)
            self.statement(inner, always=self.within is not outer)
            self.within = outer

    def _refer(self, variable: Variable) -> None:
        """A reference stands for what it is bound to; to a member of it any change is a change."""
        target = variable.value
        if not variable.type.reference or target is None:
            return
        whole = isinstance(target, Name)
        while isinstance(target, Member) and not target.arrow:
            target = target.base
        if isinstance(target, Name) and target.variable is not None:
            self.aliases[variable] = self.aliases.get(target.variable, target.variable)
            if not whole:
                self.add(target, "?", None, always=False)
        elif isinstance(target, Choice):
            for part in every(target):
                self.add(part, "?", None, always=False)

    def expression(self, expression: Expr, *, always: bool) -> None:
        if isinstance(expression, Assign):
            self._assign(expression, always=always)
        elif isinstance(expression, Step):
            self.add(expression.target, expression.op[0], None, always=always)
        elif isinstance(expression, Unary) and expression.op == "&":
            self.add(expression.operand, "?", None, always=False)
        elif isinstance(expression, Unread):
            for mention in expression.mentions:
                self.add(mention, "?", None, always=False)
        elif isinstance(expression, Call):
            for at, argument in enumerate(expression.arguments):
                if isinstance(argument, Name | Member) and self.may_change(expression, at):
                    self.add(argument, "?", None, always=False)
            own, called = expression.receiver, expression.callee
            asks = expression.function in groups.ASKING
            if isinstance(own, Name) and not asks and self.may_change(expression, OBJECT):
                self.add(own, "?", None, always=False)
            held = isinstance(called, Name) and _has_state(called.variable)
            if isinstance(called, Name) and held and self.may_change(expression, OBJECT):
                self.add(called, "?", None, always=False)
        elif isinstance(expression, Lambda):
            self._may_run(expression)
        elif isinstance(expression, Name) and (run := closure_of(expression.variable)) is not None:
            self._may_run(run)
        for at, part in enumerate(expression.parts):
            lazy = isinstance(expression, Choice) or (
                isinstance(expression, Binary) and expression.op in ("&&", "||")
            )
            self.expression(part, always=always and not (lazy and at))

    def _may_run(self, closure: Lambda) -> None:
        """What a lambda changes, wherever it is called."""
        if closure in self.closures:
            return
        self.closures.add(closure)
        self.declared |= {*closure.function.parameters}
        self.statement(closure.function.body, always=False)

    def _assign(self, expression: Assign, *, always: bool) -> None:
        op, value = expression.op[:-1], expression.value
        if not op:
            op, value = _relative(expression.target, value)
        self.add(expression.target, op, value, always=always)


def _relative(target: Expr, value: Expr) -> tuple[str, Expr]:
    """``v = v + e`` as ``v += e``; ``?`` for what is not of this kind."""
    if isinstance(value, Binary) and value.op in ("+", "-", "*", "/", "<<", ">>"):
        if same(value.left, target):
            return value.op, value.right
        if same(value.right, target) and value.op in "+*":
            return value.op, value.left
    return "?", value


def closure_of(held: Variable | None) -> Lambda | None:
    """The lambda that a local holds, or that of another local which it is a copy of."""
    while held is not None and isinstance(held.value, Name):
        held = held.value.variable
    return held.value if held is not None and isinstance(held.value, Lambda) else None


def _has_state(called: Variable | None) -> bool:
    """Whether what is called is an object of the function's own, which a call may change."""
    if called is None or called.storage != "local" or called.type.const:
        return False
    return called.type.base != "auto" or isinstance(called.value, Call | Braces)


def changes(
    statements: Iterable[Statement], may_change: MayChange, before: Iterable[Expr] = (),
    after: Iterable[Expr] = (),
) -> dict[Variable, list[Change]]:  # fmt: skip
    """The locals that these change, those declared among them left out.

    ``before`` and ``after`` are evaluated in every round: the test of a loop and its update.
    """
    collector = _Collector(may_change)
    for statement in statements:
        collector.statement(statement, always=True)
    collector.early = False
    for expression in (*before, *after):
        collector.expression(expression, always=True)
    return {v: c for v, c in collector.found.items() if v not in collector.declared}


def _goes_through(loop: Loop) -> bool:
    """Whether no round of a loop ends before its end, or ends the loop."""
    leaves = any(isinstance(s, Leave | Verbatim) for s in walk(loop.body))
    return loop.kind == "for" and not leaves


def skips(body: Statement) -> bool:
    """Whether a round of this body may end before its end: by a continue of its own."""
    stack: list[Statement] = [body]
    while stack:
        statement = stack.pop()
        if isinstance(statement, Leave) and statement.kind == "continue":
            return True
        if not isinstance(statement, Loop):
            stack.extend(statement.statements)
        if isinstance(statement, Verbatim):
            stack.extend(inner for s in statement.inner for inner in walk(s))
    return False
