"""Statements that put a value where it belongs in a sorted list, run on every order there is.

However it is spelled, an insertion only compares its value with elements and moves these. So it is
followed once for each number of elements that are better than the value, and of those that are
equal: the value has to come behind both, the others to keep their order, and the last to go. A NaN
has to leave the list as it was.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from optiml_magic.kernels.expressions import (
    Assign,
    Binary,
    Choice,
    Expr,
    Index,
    Literal,
    Name,
    Step,
    Unary,
)
from optiml_magic.kernels.tree import (
    Blank,
    Block,
    Declare,
    Evaluate,
    If,
    Leave,
    Loop,
    Statement,
    Variable,
)

_MOST = 2000  # statements of an insertion that are followed: ours
_ARITHMETIC: Mapping[str, Callable[[int, int], int]] = {
    "+": operator.add, "-": operator.sub, "*": operator.mul,
}  # fmt: skip
_COMPARED: Mapping[str, Callable[[float, float], bool]] = {
    "<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge,
    "==": operator.eq, "!=": operator.ne,
}  # fmt: skip


class _NotFollowedError(Exception):
    """Something that more than the order of the elements decides."""


@dataclass(frozen=True, eq=False)
class _Token:
    """What a list holds at a place: its ``rank`` if it is compared, and the type that holds it."""

    kind: str
    rank: float | None = None
    new: bool = False


_Value = int | bool | _Token


@dataclass
class _Run:
    """Statements followed on lists of tokens; ``values`` are the locals beside these."""

    lists: Mapping[Variable, list[_Token]]
    values: dict[Variable, _Value | None]
    steps: int = field(default=0)

    def run(self, statements: Sequence[Statement]) -> str:
        """How they end: "" at their end, or by which way out."""
        for statement in statements:
            left = self._statement(statement)
            if left:
                return left
        return ""

    def _statement(self, statement: Statement) -> str:
        self.steps += 1
        if self.steps > _MOST:
            raise _NotFollowedError
        match statement:
            case Blank():
                return ""
            case Block(body=body):
                return self.run(body)
            case Leave(kind="break" | "continue" as kind):
                return kind
            case Evaluate(expression=expression):
                self.value(expression)
                return ""
            case Declare(variables=variables):
                for variable in variables:
                    if variable.array or variable.type.reference or variable.type.depth:
                        raise _NotFollowedError
                    self.values[variable] = None
                    if variable.value is not None:
                        self._give(variable, self.value(variable.value))
                return ""
            case If(before=None, constant=False, test=test, then=then, other=other):
                if self.value(test):
                    return self._statement(then)
                return self._statement(other) if other is not None else ""
            case Loop():
                return self._loop(statement)
        raise _NotFollowedError

    def _loop(self, loop: Loop) -> str:
        if loop.before is not None:
            self._statement(loop.before)
        first = loop.kind == "do"
        while first or loop.test is None or self.value(loop.test):
            first = False
            if self._statement(loop.body) == "break":
                break
            if loop.update is not None:
                self.value(loop.update)
        return ""

    def value(self, expr: Expr) -> _Value:
        match expr:
            case Literal(value=int() as number):
                return number
            case Name(variable=Variable() as variable) if self.values.get(variable) is not None:
                found = self.values[variable]
                assert found is not None
                return found
            case Index():
                own, at = self._place(expr)
                return own[at]
            case Unary(op="!", operand=operand):
                return not self._number(operand)
            case Unary(op="-", operand=operand):
                return -self._number(operand)
            case Binary(op="&&", left=left, right=right):
                return bool(self._number(left)) and bool(self._number(right))
            case Binary(op="||", left=left, right=right):
                return bool(self._number(left)) or bool(self._number(right))
            case Binary(op=",", left=left, right=right):
                self.value(left)
                return self.value(right)
            case Binary(op=op, left=left, right=right):
                return self._both(op, self.value(left), self.value(right))
            case Choice(test=test, then=then, other=other):
                return self.value(then if self._number(test) else other)
            case Assign(op="=", target=target, value=value):
                return self._put(target, self.value(value))
            case Assign(op="+=" | "-=" as op, target=target, value=value):
                return self._put(target, self._both(op[0], self.value(target), self.value(value)))
            case Step(op=op, target=target, prefix=prefix):
                before = self._number(target)
                after = self._put(target, before + (1 if op == "++" else -1))
                return after if prefix else before
        raise _NotFollowedError

    def _number(self, expr: Expr) -> int:
        found = self.value(expr)
        if isinstance(found, _Token):
            raise _NotFollowedError
        return found

    def _both(self, op: str, left: _Value, right: _Value) -> _Value:
        if isinstance(left, _Token) and isinstance(right, _Token):
            if op not in _COMPARED or left.rank is None or right.rank is None:
                raise _NotFollowedError
            if not left.new and not right.new:  # these orders are not all tried
                raise _NotFollowedError
            return _COMPARED[op](left.rank, right.rank)
        if isinstance(left, _Token) or isinstance(right, _Token):
            raise _NotFollowedError
        if op in _COMPARED:
            return _COMPARED[op](left, right)
        if op not in _ARITHMETIC:
            raise _NotFollowedError
        return _ARITHMETIC[op](left, right)

    def _place(self, expr: Index) -> tuple[list[_Token], int]:
        array = expr.base.variable if isinstance(expr.base, Name) else None
        if array is None or array not in self.lists:
            raise _NotFollowedError
        own, at = self.lists[array], self._number(expr.index)
        if not 0 <= at < len(own):
            raise _NotFollowedError
        return own, at

    def _put(self, target: Expr, value: _Value) -> _Value:
        match target:
            case Index():
                own, at = self._place(target)
                if not isinstance(value, _Token) or value.kind != own[at].kind:
                    raise _NotFollowedError
                own[at] = value
            case Name(variable=Variable() as variable) if variable in self.values:
                self._give(variable, value)
            case _:
                raise _NotFollowedError
        return value

    def _give(self, variable: Variable, value: _Value) -> None:
        kind = value.kind if isinstance(value, _Token) else "int"
        if variable.type.base not in (kind, "auto"):  # which would convert it
            raise _NotFollowedError
        self.values[variable] = value


def inserts(
    statements: Sequence[Statement], count: int, key: Variable, given: Mapping[Variable, Variable]
) -> bool:
    """Whether statements insert into sorted lists of ``count`` elements, each what it is ``given``.

    Elements of ``key`` say where; those of the others go along. The best is the first, whether that
    is the least or the greatest; equals stay in the order in which they came.
    """
    return any(
        all(_holds(statements, count, key, given, order) for order in _orders(count, way))
        for way in (1, -1)
    )  # fmt: skip


@dataclass(frozen=True)
class _Order:
    """The ranks of a list, that of what comes, and how many elements come before it."""

    ranks: tuple[float, ...]
    rank: float
    at: int


def _orders(count: int, way: int) -> Iterator[_Order]:
    for better in range(count + 1):
        for equal in range(count + 1 - better):
            rest = range(better + 1, count + 1 - equal)
            ranks = (*range(better), *(better,) * equal, *rest)
            yield _Order(tuple(way * n for n in ranks), way * better, better + equal)
    yield _Order(tuple(way * n for n in range(count)), float("nan"), count)


def _holds(
    statements: Sequence[Statement], count: int, key: Variable,
    given: Mapping[Variable, Variable], order: _Order,
) -> bool:  # fmt: skip
    lists = {
        array: [_Token(array.type.base, rank if array is key else None) for rank in order.ranks]
        for array in given
    }
    new = {a: _Token(a.type.base, order.rank if a is key else None, new=True) for a in given}
    wanted = {a: [*own[: order.at], new[a], *own[order.at :]][:count] for a, own in lists.items()}
    values: dict[Variable, _Value | None] = {given[a]: token for a, token in new.items()}
    try:
        left = _Run(lists, values).run(statements)
    except _NotFollowedError:
        return False
    return left in ("", "continue") and lists == wanted
