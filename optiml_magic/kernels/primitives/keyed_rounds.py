"""Loops of which each round is that of one thread, whose index it has as a key.

``for (i) if (key[i] == k) sum += x[i]``, or ``sum += key[i] == k ? x[i] : 0``.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from optiml_magic.kernels.expressions import (
    Assign,
    Binary,
    Choice,
    Expr,
    Literal,
    Name,
    Step,
    Unary,
    builtin,
)
from optiml_magic.kernels.primitives.base import Kernel, NotLegal
from optiml_magic.kernels.primitives.beforehand import works
from optiml_magic.kernels.primitives.effects import Effects, is_simple, loops_in, parted
from optiml_magic.kernels.primitives.mapped import split_test
from optiml_magic.kernels.primitives.naming import type_of
from optiml_magic.kernels.primitives.places import axis_of
from optiml_magic.kernels.primitives.two_launches import is_even
from optiml_magic.kernels.primitives.works import Finder
from optiml_magic.kernels.tree import (
    Block,
    Declare,
    Evaluate,
    If,
    Loop,
    Statement,
    Variable,
    walk,
)
from optiml_magic.kernels.types import CType

WORD = 4  # bytes of a number that holds every index of a launch
#: What ``atomicAdd`` adds to: CUDA C++ Programming Guide, "atomicAdd()".
_ADDED = ("int", "unsigned int", "unsigned long long", "float", "double")


@dataclass(frozen=True, eq=False)
class Share:
    """What a round does for the thread whose index along ``axis`` is its key.

    ``first`` are tests before that of the key, ``then`` those behind it; what ``statements`` add to
    is in ``Rounds.sums``.
    """

    axis: str
    index: Expr
    key: Expr
    first: tuple[Expr, ...]
    then: tuple[Expr, ...]
    statements: tuple[Statement, ...]


@dataclass(eq=False)
class Rounds:
    """A loop of which each round is that of one thread along ``axis``."""

    loop: Loop
    path: tuple[Statement, ...]
    locals: list[Declare] = field(default_factory=list)
    shares: list[Share] = field(default_factory=list)
    sums: dict[Variable, CType] = field(default_factory=dict)

    @property
    def axis(self) -> str:
        return self.shares[0].axis

    @property
    def key(self) -> Expr:
        return self.shares[0].key


def by_key(kernel: Kernel, at: int) -> tuple[Finder, Rounds]:
    """The loop with this number, where its rounds are so. Raises NotLegal where they are not."""
    finder, _ = works(kernel)
    loop = loops_in(kernel.function.body)[at]
    return finder, _Reading(kernel, finder, loop).rounds()


def asks_for_keys(kernel: Kernel, at: int) -> bool:
    """Whether a round of the loop with this number asks if something equals a thread's index."""
    loop, effects = loops_in(kernel.function.body)[at], Effects(kernel)
    return any(
        isinstance(e, Binary) and e.op in ("==", "!=")
        and any(_is_index(kernel, effects, side) for side in (e.left, e.right))
        for e in effects.inside(loop)
    )  # fmt: skip


def _is_index(kernel: Kernel, effects: Effects, expr: Expr) -> bool:
    while isinstance(expr, Name) and expr.variable in effects.lasting:
        if expr.variable is None or expr.variable.value is None:
            return False
        expr = expr.variable.value
    return bool(axis_of(kernel, expr)) or builtin(expr).startswith("blockIdx.")


class _Reading:
    """Whose a round is, and what it adds to."""

    def __init__(self, kernel: Kernel, finder: Finder, loop: Loop) -> None:
        self.kernel, self.finder, self.loop = kernel, finder, loop
        self.effects = finder.effects
        self.found = Rounds(loop, _path(kernel.function.body, loop))

    def rounds(self) -> Rounds:
        kernel, loop, found = self.kernel, self.loop, self.found
        axis = kernel.axes().get(loop)
        if axis is None or not axis.exact or not is_simple(axis, self.effects):
            raise NotLegal("the loop does not count from 0 by 1", loop.line)
        own = [*parted(loop.body)]
        while own and isinstance(first := own[0], Declare):
            found.locals.append(first)
            del own[0]
        for statement in own:
            self._take(*self._choice(statement))
        if not found.shares:
            raise NotLegal("its rounds do nothing", loop.line)
        words = {kernel.spelled(share.key) for share in found.shares}
        if len(words) > 1 or len({share.axis for share in found.shares}) > 1:
            raise NotLegal("a round may belong to several threads", loop.line)
        if len(found.shares) > 1 and any(share.first for share in found.shares):
            raise NotLegal("a test stands before that of the key", loop.line)
        if not is_even(self.finder, axis):
            raise NotLegal("threads may make different numbers of rounds", loop.line)
        self._check_unasked()
        return found

    def _choice(self, statement: Statement) -> tuple[list[Expr], Sequence[Statement]]:
        """The tests of a statement, and what it does where they hold."""
        match statement:
            case If(before=None, constant=False, test=test, then=then, other=None):
                return [*split_test(test, "&&")], [*parted(then)]
            case Evaluate(expression=Assign(op="+=", value=value) as added):
                match value:
                    case Choice(test=test, then=chosen, other=Literal(value=0)):
                        taken = replace(added, value=chosen, span=None)
                        return [*split_test(test, "&&")], [_instead(statement, taken)]
                    case Binary(op="=="):
                        return [value], [_instead(statement, Step(None, "++", added.target, True))]
        raise NotLegal("a round does more than what its key asks for", statement.line)

    def _take(self, tests: Sequence[Expr], statements: Sequence[Statement]) -> None:
        for at, test in enumerate(tests):
            match test:
                case (
                    Binary(op="==", left=left, right=right)
                    | Unary(op="!", operand=Binary(op="!=", left=left, right=right))
                ):
                    for key, index in ((left, right), (right, left)):
                        axis = self._axis(index)
                        if axis and self._is_key(key, axis):
                            share = Share(
                                axis, index, key, (*tests[:at],), (*tests[at + 1 :],),
                                (*statements,),
                            )  # fmt: skip
                            self._check(share)
                            self.found.shares.append(share)
                            return
        line = statements[0].line if statements else self.loop.line
        raise NotLegal("no test compares a key with the index of the thread", line)

    def _axis(self, index: Expr) -> str:
        """The axis along which an expression is a thread's index; empty where it is none."""
        while isinstance(index, Name) and index.variable is not None:
            variable = index.variable
            if variable.value is None or variable not in self.effects.lasting or variable.array:
                return ""
            kind = type_of(self.kernel, variable)
            if variable.type.depth or not kind.integral or (kind.size or 0) < WORD:
                return ""
            index = variable.value
        return self.finder.whole.get(index, "")

    def _is_key(self, key: Expr, axis: str) -> bool:
        kind = self.kernel.reading.types.get(key)
        whole = kind is not None and kind.integral and not kind.depth and kind.lanes == 1
        return whole and axis not in self.finder.of(key)

    def _check(self, share: Share) -> None:
        """Raise NotLegal where a share does more than to add to sums, from what stays."""
        for test in (*share.first, share.key, *share.then):
            self._check_value(test)
        if any(share.axis in self.finder.of(test) for test in share.first):
            raise NotLegal("a test of the thread stands before that of the key", self.loop.line)
        for statement in (s for one in share.statements for s in walk(one)):
            match statement:
                case Declare(variables=variables):
                    self.finder.check_pure(statement)
                    for variable in variables:
                        self.finder.depends(variable)
                case If(before=None, constant=False, test=test):
                    self._check_value(test)
                case Block():
                    pass
                case Evaluate(expression=expression):
                    self._add(expression, statement.line)
                case _:
                    raise NotLegal("a round does more than add up", statement.line)
        for declared in self.found.locals:
            self.finder.check_pure(declared)
            self.finder.depends(declared.variables[0])

    def _check_value(self, expr: Expr) -> None:
        statement = Evaluate(None, self.loop.line, expr)
        self.finder.check_pure(statement)
        if self.effects.given(statement):
            raise NotLegal("a test or a value changes something", self.loop.line)
        self.finder.of(expr)

    def _add(self, expression: Expr, line: int) -> None:
        added = added_to(expression)
        if added is None:
            raise NotLegal("a round does more than add up", line)
        variable, value, _ = added
        kind = type_of(self.kernel, variable)
        if variable.storage != "local" or variable.array or kind.name not in _ADDED or kind.depth:
            raise NotLegal(f"`{variable.name}` has a type that `atomicAdd` does not take", line)
        if value is not None:
            self._check_value(value)
            own = self.kernel.reading.types.get(value)
            known = own is not None and own.kind in ("int", "float", "bool") and own.lanes == 1
            if own is None or not known or own.depth or (own.floating and kind.integral):
                raise NotLegal(f"what is added to `{variable.name}` is not of its type", line)
            if kind.floating and own.floating and (own.size or 0) > (kind.size or 0):
                raise NotLegal(f"`{variable.name}` is rounded in each round", line)
        self.found.sums[variable] = kind

    def _check_unasked(self) -> None:
        """Raise NotLegal where a round declares a sum, or asks for one."""
        sums = self.found.sums
        inner = {v for s in walk(self.loop) if isinstance(s, Declare) for v in s.variables}
        if inner & sums.keys():
            raise NotLegal("a sum starts again in each round", self.loop.line)
        if {*self.effects.changed(self.loop.body)} - {*sums}:
            raise NotLegal("a round changes more than sums", self.loop.line)


def added_to(expression: Expr) -> tuple[Variable, Expr | None, bool] | None:
    """The local that a statement adds to, what it adds, 1 for None, and whether that is negated."""
    match expression:
        case Assign(op="+=" | "-=" as op, target=Name(variable=Variable() as own), value=value):
            return own, value, op == "-="
        case Assign(
            op="=", target=Name(variable=Variable() as own),
            value=Binary(op="+", left=left, right=right),
        ):  # fmt: skip
            for same, value in ((left, right), (right, left)):
                if isinstance(same, Name) and same.variable is own:
                    return own, value, False
        case Step(op="++" | "--" as op, target=Name(variable=Variable() as own)):
            return own, None, op == "--"
    return None


def _instead(statement: Evaluate, expression: Expr) -> Statement:
    return replace(statement, expression=expression, span=None)


def _path(body: Statement, loop: Loop) -> tuple[Statement, ...]:
    """What a loop stands in, from the body of the kernel to its own."""
    found = list[Statement]()
    inside: Statement | None = body
    while inside is not None:
        found.append(inside)
        if inside is loop:
            if not isinstance(loop.body, Block):
                return (*found, Block(None, loop.line, (loop.body,)))
            return (*found, loop.body)
        if isinstance(inside, Loop):
            break
        inside = next((s for s in inside.statements if loop in {*walk(s)}), None)
    raise NotLegal("the loop is inside of another", loop.line)
