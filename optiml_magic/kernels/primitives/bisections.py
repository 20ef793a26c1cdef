"""Binary searches in a loop that ask whether a range of an array has a number.

What a round does is found for each of the three ways that an element and the number may compare, so
that it does not matter how the text asks. Two forms are known: one that ends where it finds the
number, and one that looks for the first place which is not below it, and then asks what is there.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from optiml_magic.kernels.combining import same
from optiml_magic.kernels.editing import Node, edited
from optiml_magic.kernels.expressions import (
    MIRRORED,
    Assign,
    Binary,
    Call,
    Expr,
    Index,
    Lambda,
    Literal,
    Name,
    Step,
    Unread,
    every,
)
from optiml_magic.kernels.primitives.base import Kernel, NotLegal
from optiml_magic.kernels.primitives.effects import Effects, names
from optiml_magic.kernels.primitives.places import bare
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
    body_of,
    expressions,
    walk,
)
from optiml_magic.kernels.types import CType, named

_BELOW, _EQUAL, _ABOVE = -1, 0, 1  # an element beside the number that is looked for
_HOLDS = {
    "<": (_BELOW,), "<=": (_BELOW, _EQUAL), ">": (_ABOVE,), ">=": (_ABOVE, _EQUAL),
    "==": (_EQUAL,), "!=": (_BELOW, _ABOVE),
}  # fmt: skip


@dataclass(frozen=True, eq=False)
class Bisection:
    """A search of ``array[low] ... array[high]`` for ``key``; ``then`` is done where it is there.

    ``high`` is the first place behind the range unless it is ``closed``. ``gone`` are the
    statements of the loop ``outer`` that are nothing but the search, of which ``loop`` is one.
    """

    outer: Loop
    loop: Loop
    gone: tuple[Statement, ...]
    array: Expr
    low: Expr
    high: Expr
    closed: bool
    key: Expr
    kind: CType
    places: str  # the type of what the search moves
    then: tuple[Statement, ...]

    @property
    def name(self) -> str:
        """The name of the array."""
        return next(e.name for e in every(self.array) if isinstance(e, Name))


@dataclass(frozen=True, eq=False)
class _Way:
    """What a round does where an element compares in one way, and whether the search ends."""

    done: tuple[Statement, ...]
    ends: bool


def bisections(kernel: Kernel) -> Iterator[Bisection | NotLegal]:
    """The searches that lie directly in the body of another loop, or why one is left alone."""
    for outer in (s for s in walk(kernel.function.body) if isinstance(s, Loop)):
        own = body_of(outer.body)
        for at, loop in enumerate(own):
            if isinstance(loop, Loop) and _halves(loop):
                try:
                    yield _Reader(kernel, outer, own, at, loop).search()
                except NotLegal as reason:
                    yield NotLegal(reason.reason, reason.line or loop.line)


def _halves(loop: Loop) -> bool:
    """Whether a loop may be a binary search: it has two ends, and a half of something."""
    return isinstance(loop.test, Binary) and any(
        isinstance(e, Binary) and e.op in ("/", ">>") and isinstance(e.right, Literal)
        and e.right.value == (2 if e.op == "/" else 1)
        for e in expressions(loop.body)
    )  # fmt: skip


class _Reader:
    def __init__(
        self, kernel: Kernel, outer: Loop, own: Sequence[Statement], at: int, loop: Loop
    ) -> None:
        self.kernel, self.outer, self.own, self.at, self.loop = kernel, outer, own, at, loop
        self.effects = Effects(kernel)
        self.low, self.high, self.closed = self._ends()
        self.locals: dict[Variable, Expr] = {}  # of a round
        self.middle: Variable | None = None

    def search(self) -> Bisection:
        ways = self._ways()
        lower = self._moves(ways[_BELOW], self.low, 1)
        upper = self._moves(ways[_ABOVE], self.high, -1 if self.closed else 0)
        if not lower or not upper or self.middle is None:
            raise NotLegal("the ends of the search do not move to its middle")
        begun, (low, high) = self._begun()
        gone: list[Statement] = [*begun, self.loop]
        if ways[_EQUAL].ends:
            then = ways[_EQUAL].done
        elif not self.closed and self._moves(ways[_EQUAL], self.high, 0):
            asked, then = self._asked_behind(high)
            gone.append(asked)
        else:
            raise NotLegal("the search does not stop where it finds the number")
        kind, places = self._kinds()
        array, low, high = (self._written_out(e) for e in (self.array, low, high))
        found = Bisection(
            self.outer, self.loop, tuple(gone), array, low, high, self.closed, self.key,
            kind, places, then,
        )  # fmt: skip
        self._stays(found)
        return found

    def _ends(self) -> tuple[Variable, Variable, bool]:
        match self.loop:
            case Loop(
                kind="for" | "while", before=None, update=None,
                test=Binary(op=op, left=Name(variable=Variable() as one),
                            right=Name(variable=Variable() as other)),
            ) if op in MIRRORED:  # fmt: skip
                low, high = (one, other) if op[0] == "<" else (other, one)
                return low, high, len(op) > 1
        raise NotLegal("the ends of the search are not compared")

    # What a round does.

    def _ways(self) -> dict[int, _Way]:
        rest = [s for s in body_of(self.loop.body) if not isinstance(s, Blank)]
        while rest and (given := self._given(rest[0])):
            variable, value = given
            self.locals[variable] = value
            if self._is_middle(value):
                self.middle = variable
            rest = rest[1:]
        self.array, self.key, self.element = self._compared(rest)
        return {way: self._way(rest, way) for way in (_BELOW, _EQUAL, _ABOVE)}

    def _given(self, statement: Statement) -> tuple[Variable, Expr] | None:
        if any(isinstance(e, Step | Call | Lambda | Unread) for e in expressions(statement)):
            return None
        match statement:
            case Declare(variables=(Variable(value=Expr() as value) as variable,)):
                return variable, value
            case Evaluate(expression=Assign(
                op="=", target=Name(variable=Variable() as variable), value=value
            )) if variable not in (self.low, self.high):  # fmt: skip
                return variable, value
        return None

    def _is_middle(self, value: Expr) -> bool:
        match bare(value):
            case Binary(op="/" | ">>", left=left):
                return self._is_sum(bare(left), "+", self.low, self.high)
            case Binary(op="+", left=Name(variable=variable), right=right) if variable is self.low:
                match bare(right):
                    case Binary(op="/" | ">>", left=left):
                        return self._is_sum(bare(left), "-", self.high, self.low)
        return False

    @staticmethod
    def _is_sum(expr: Expr, op: str, one: Variable, other: Variable) -> bool:
        match expr:
            case Binary(op=own, left=Name(variable=left), right=Name(variable=right)) if own == op:
                return (left, right) == (one, other) or (
                    op == "+" and (right, left) == (one, other)
                )
        return False

    def _compared(self, rest: Sequence[Statement]) -> tuple[Name, Expr, Expr]:
        """The array, what is looked for, and an element of it in the text."""
        for statement in rest:
            for test in (s.test for s in walk(statement) if isinstance(s, If)):
                match test:
                    case Binary(op=op, left=left, right=right) if op in _HOLDS:
                        for one, other in ((left, right), (right, left)):
                            array = self._array(one)
                            if array is not None:
                                return array, other, one
        raise NotLegal("what the search compares is not followed")

    def _array(self, expr: Expr) -> Name | None:
        """The array that an expression is the middle element of."""
        expr = bare(expr)
        if isinstance(expr, Name) and expr.variable in self.locals:
            expr = bare(self.locals[expr.variable])
        match expr:
            case Index(base=Name() as base, index=Name(variable=at)) if at is self.middle:
                return base
        return None

    def _way(self, rest: Sequence[Statement], way: int) -> _Way:
        done = list[Statement]()
        for statement in rest:
            match statement:
                case Blank():
                    continue
                case Leave(kind="break"):
                    return _Way(tuple(done), ends=True)
                case Block(body=body):
                    inner = self._way(body, way)
                case If(test=test, then=then, other=other, before=None) if self._asks(test):
                    branch = then if self._holds(test, way) else other
                    inner = self._way([branch] if branch is not None else [], way)
                case _:
                    done.append(statement)
                    continue
            done += inner.done
            if inner.ends:
                return _Way(tuple(done), ends=True)
        return _Way(tuple(done), ends=False)

    def _asks(self, test: Expr) -> bool:
        match test:
            case Binary(op=op, left=left, right=right) if op in _HOLDS:
                sides = ((left, right), (right, left))
                return any(self._array(a) is not None and same(b, self.key) for a, b in sides)
        return False

    def _holds(self, test: Expr, way: int) -> bool:
        assert isinstance(test, Binary)
        op = test.op if self._array(test.left) is not None else MIRRORED.get(test.op, test.op)
        return way in _HOLDS[op]

    def _moves(self, way: _Way, end: Variable, by: int) -> bool:
        """Whether all that is done is to move an end of the range to the middle, or beside it."""
        match way:
            case _Way(done=(Evaluate(expression=Assign(
                op="=", target=Name(variable=own), value=value
            )),), ends=False) if own is end:  # fmt: skip
                match bare(value):
                    case Name(variable=at):
                        return at is self.middle and by == 0
                    case Binary(op="+" | "-" as op, left=Name(variable=at),
                                right=Literal(value=1)):  # fmt: skip
                        return at is self.middle and by == (1 if op == "+" else -1)
        return False

    # What is around it.

    def _begun(self) -> tuple[list[Statement], tuple[Expr, Expr]]:
        """The declarations of both ends, and what these begin with."""
        found, ends = dict[Variable, Expr](), {self.low, self.high}
        gone = list[Statement]()
        for statement in self.own[: self.at]:
            if not isinstance(statement, Declare) or not ends & {*statement.variables}:
                continue
            own = {*statement.variables} - ends
            if any(v.value is not None or v is not self.middle for v in own):
                raise NotLegal("the ends of the search are declared beside others", statement.line)
            found |= {v: v.value for v in statement.variables if v.value is not None}
            gone.append(statement)
        if not ends <= found.keys():
            raise NotLegal("where the search begins is not followed")
        return gone, (found[self.low], found[self.high])

    def _asked_behind(self, high: Expr) -> tuple[Statement, tuple[Statement, ...]]:
        """The test behind a search for a place whether the number is there, and what follows."""
        behind = [s for s in self.own[self.at + 1 :] if not isinstance(s, Blank)]
        match behind[:1]:
            case [If(
                test=Binary(op="&&", left=Binary(op="<", left=Name(variable=at), right=end),
                            right=Binary(op="==", left=one, right=other)),
                then=then, other=None, before=None,
            ) as asked] if at is self.low and same(end, high):  # fmt: skip
                for element, key in ((one, other), (other, one)):
                    match bare(element):
                        case Index(base=Name(name=name), index=Name(variable=where)):
                            there = where is self.low and name == self.array.name
                            if there and same(key, self.key):
                                return asked, tuple(body_of(then))
        raise NotLegal("what is done with the end of the search is not followed")

    def _written_out(self, expr: Expr) -> Expr:
        """A part of the range by what is known before the loop around."""
        own = {v for s in self.own if isinstance(s, Declare) for v in s.variables}
        found = own & self.effects.lasting & names([expr])
        if not found:
            return expr
        swaps: dict[Node, Node] = {
            e: self._written_out(e.variable.value)
            for e in every(expr)
            if isinstance(e, Name) and e.variable in found and e.variable.value is not None
        }
        return swaps[expr] if expr in swaps else edited(expr, swaps)  # type: ignore[return-value]

    def _kinds(self) -> tuple[CType, str]:
        """The type of the elements, and that of places among them."""
        types = self.kernel.reading.types
        kinds = [types.get(bare(e)) for e in (self.element, self.key)]
        ends = [named(v.type.base, self.kernel.unit.aliases) for v in (self.low, self.high)]
        if kinds[0] is None or kinds[0] != kinds[1] or not kinds[0].integral:
            raise NotLegal("elements and the number are not whole numbers of one type")
        plain = all(k.integral and k.signed and k.size == ends[0].size for k in ends)
        if kinds[0].size not in (4, 8) or not plain or ends[0].size not in (4, 8):
            raise NotLegal("the search needs signed indices, and elements of 4 or 8 bytes")
        return kinds[0], ends[0].name

    def _stays(self, found: Bisection) -> None:
        """Raise NotLegal where the range may change, or more than the outcome is asked for."""
        effects, reading = self.effects, self.kernel.reading
        own = {self.low, self.high, *self.locals}
        inside = {e for statement in found.gone for e in effects.inside(statement)}
        names_of_own = (e for e in expressions(self.kernel.function.body)
                        if isinstance(e, Name) and e.variable in own)  # fmt: skip
        if any(e not in inside for e in names_of_own):
            raise NotLegal("where the search ends is asked for")
        if any(own & effects.mentions(s) for s in found.then):
            raise NotLegal("where the search ends is asked for")
        if any(isinstance(s, Leave) and s.kind != "return" for t in found.then for s in walk(t)):
            raise NotLegal("what is done with a match leaves a loop")
        changed = {*effects.changed(self.outer)} | {
            v for s in walk(self.outer) if isinstance(s, Declare) for v in s.variables
        }
        ranges = [found.array, found.low, found.high]
        if names(ranges) & changed:
            raise NotLegal("the range that is searched changes from round to round")
        if own & names([found.key]) or names([found.key]) & {*effects.changed(self.loop)}:
            raise NotLegal("what the search looks for changes")
        parts = [e for top in (*ranges, found.key) for e in every(top)]
        if any(isinstance(e, Assign | Step | Call | Lambda | Unread) for e in parts):
            raise NotLegal("the range that is searched is not plain")
        loaded = {e.name for e in parts if isinstance(e, Name) and e.variable is not None}
        if any(effects.same(one, other) for one in loaded for other in reading.written):
            raise NotLegal("what is searched may change")
