"""How the ends of a loop move with the counter of one around it, and where they were a round ago.

Ends are sums over words: names, and ``min(a, b)`` or ``a / b`` as a whole.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from optiml_magic.kernels.expressions import (
    MIRRORED,
    Binary,
    Call,
    Cast,
    Expr,
    Literal,
    Member,
    Name,
    Unary,
    every,
)
from optiml_magic.kernels.expressions import builtin as is_builtin
from optiml_magic.kernels.functions import bare
from optiml_magic.kernels.polynomial import Polynomial
from optiml_magic.kernels.primitives.base import Kernel, NotLegal
from optiml_magic.kernels.primitives.effects import Effects, names
from optiml_magic.kernels.primitives.stepwise import plain
from optiml_magic.kernels.spelling import Speller, is_one
from optiml_magic.kernels.symbols import Symbols
from optiml_magic.kernels.tree import Declare, Loop, Variable

_ONE = Polynomial.constant(1)
_LIMITS = frozenset({"INFINITY", "FLT_MAX", "DBL_MAX", "INT_MAX", "INT_MIN", "UINT_MAX"})


@dataclass(frozen=True, eq=False)
class Range:
    """The values of a loop's counter: from ``first + more`` to before ``end + beyond``.

    It is counted ``down`` from the last one.
    """

    loop: Loop
    counter: Variable
    first: Expr
    more: int
    end: Expr
    beyond: int
    down: bool


def range_of(loop: Loop, counter: Variable, step: int) -> Range | None:
    """The range of a loop that counts by one in its head, ``i <= n`` or the other way round."""
    test, begin = loop.test, counter.value
    if not isinstance(loop.before, Declare) or not isinstance(test, Binary) or begin is None:
        return None
    left, op, right = test.left, test.op, test.right
    if isinstance(right, Name) and right.variable is counter:
        left, op, right = right, MIRRORED.get(op, ""), left
    if not isinstance(left, Name) or left.variable is not counter or counter in names([right]):
        return None
    if step == 1 and op in ("<", "<="):
        return Range(loop, counter, begin, 0, right, int(op == "<="), down=False)
    if step == -1 and op in (">", ">="):
        return Range(loop, counter, right, int(op == ">"), begin, 1, down=True)
    return None


@dataclass(frozen=True)
class Ends:
    """Sums over what stays, where ``counter`` stands for a number that grows from round to round.

    ``meaning`` of a local is the expression that it stands for, or the local itself where it stays;
    None where it may change in another way.
    """

    kernel: Kernel
    counter: Variable
    meaning: Callable[[Variable], Expr | Variable | None]

    def way(self, expr: Expr) -> int | None:
        """1 where it never falls as the counter grows, -1 where it never rises, 0 where it stays.

        None is for what is not known, such as what wraps around.
        """
        kind = self.kernel.reading.types.get(expr)
        if kind is None or not kind.integral:
            return None
        way = self._inner(expr)
        return way if way == 0 or (kind.kind == "int" and kind.signed) else None

    def _inner(self, expr: Expr) -> int | None:
        match expr:
            case Literal(value=int()):
                return 0
            case Name(variable=Variable() as own):
                if own is self.counter:
                    return 1
                meant = self.meaning(own)
                if isinstance(meant, Expr):
                    return self.way(meant) if self._holds(expr, meant) else None
                return None if meant is None else 0
            case Name(name=name) if is_constant(self.kernel, name):
                return 0
            case Member() if is_builtin(expr):
                return 0
            case Cast(operand=operand):
                return self.way(operand) if self._holds(expr, operand) else None
            case Unary(op="-" | "+" as op, operand=operand):
                way = self.way(operand)
                return -way if way is not None and op == "-" else way
            case Binary(op="+", left=left, right=right):
                return _both(self.way(left), self.way(right))
            case Binary(op="-", left=left, right=right):
                return _both(self.way(left), _turned(self.way(right)))
            case Binary(op="*" | "/" | "<<" | ">>" as op, left=left, right=right):
                return self._scaled(op, left, right)
            case Call(function=name, arguments=(left, right)) if bare(name) in ("min", "max"):
                return _both(self.way(left), self.way(right))
        inside = [e for e in every(expr) if isinstance(e, Name)]
        stays = plain(expr, Effects(self.kernel)) and all(self.way(e) == 0 for e in inside)
        return 0 if stays else None

    def _scaled(self, op: str, left: Expr, right: Expr) -> int | None:
        """The way of a multiple or a quotient by a number; others have to stay."""
        ways = self.way(left), self.way(right)
        if ways == (0, 0):
            return 0
        for by, way in ((right, ways[0]), (left, ways[1])):
            number = self.form(by, Polynomial.symbol(self.counter.name)).value
            if way is None or number is None or not (op == "*" or by is right):
                continue
            if number > 0:
                return way
            if op == "*" and number < 0:
                return -way
        return None

    def _holds(self, new: Expr, old: Expr) -> bool:
        """Whether the type of one whole number, which has a sign, holds all that another may be."""
        wide, narrow = (self.kernel.reading.types.get(e) for e in (new, old))
        if wide is None or narrow is None or not (wide.integral and narrow.integral):
            return False
        more = (wide.size or 0) - (narrow.size or 8)
        return wide.signed and (more > 0 or (more == 0 and narrow.signed))

    def form(self, expr: Expr, at: Polynomial) -> Polynomial:
        """A sum with this one in the place of the counter."""
        match expr:
            case Literal(value=int() as number):
                return Polynomial.constant(number)
            case Name(variable=Variable() as own) if own is self.counter:
                return at
            case Name(variable=Variable() as own):
                meant = self.meaning(own)
                if isinstance(meant, Expr) and self.way(meant) != 0:
                    return self.form(meant, at)
            case Cast(operand=operand) if self._same_type(expr):
                return self.form(operand, at)
            case Cast(type=kind, operand=operand) if self.way(operand) != 0:
                return Polynomial.symbol(f"({kind}){_operand(self.form(operand, at))}")
            case Unary(op="-", operand=operand):
                return -self.form(operand, at)
            case Unary(op="+", operand=operand):
                return self.form(operand, at)
            case Binary(op="+", left=left, right=right):
                return self.form(left, at) + self.form(right, at)
            case Binary(op="-", left=left, right=right):
                return self.form(left, at) - self.form(right, at)
            case Binary(op="*", left=left, right=right):
                return self.form(left, at) * self.form(right, at)
            case Binary(op="/" | "<<" | ">>" as op, left=left, right=right):
                sides = [_operand(self.form(side, at)) for side in (left, right)]
                return Polynomial.symbol(f"({sides[0]} {op} {sides[1]})")
            case Call(function=name, arguments=(left, right)) if self.way(expr) != 0:
                sides = [spelled(self.form(side, at)) for side in (left, right)]
                return Polynomial.symbol(f"{name}({sides[0]}, {sides[1]})")
        if self.way(expr) != 0:
            raise NotLegal("how the ends of a loop move is not known")
        words = self.kernel.spelled(expr)
        return Polynomial.symbol(words if is_one(words) else f"({words})")

    def _same_type(self, cast: Cast) -> bool:
        types = self.kernel.reading.types
        return types.get(cast) is not None and types.get(cast) == types.get(cast.operand)

    def low(self, one: Range, at: Polynomial) -> Polynomial:
        """The first value of a range."""
        return self.form(one.first, at) + Polynomial.constant(one.more)

    def high(self, one: Range, at: Polynomial) -> Polynomial:
        """What is one above the last value of a range."""
        return self.form(one.end, at) + Polynomial.constant(one.beyond)


def spelled(form: Polynomial) -> str:
    """A sum in its own words."""
    return Speller(Symbols(), {name: name for name in form.symbols}).form(form)


def _operand(form: Polynomial) -> str:
    words = spelled(form)
    return words if is_one(words) else f"({words})"


def is_constant(kernel: Kernel, name: str) -> bool:
    """Whether a name that is no local's is a constant of the program, or of the language."""
    declared = (v for s in kernel.unit.declarations for v in s.variables if v.name == name)
    tuned = name in kernel.program.values or name in _LIMITS
    return tuned or any(v.type.const and not v.type.depth and not v.array for v in declared)


def _turned(way: int | None) -> int | None:
    return None if way is None else -way


def _both(one: int | None, other: int | None) -> int | None:
    """The way of a sum, or of the least or greatest, of two."""
    if one is None or other is None or one * other < 0:
        return None
    return one or other
