"""Recurrences ``s = a * s + b``: by what a round multiplies what the one before left.

Rounds in a row are one of the same kind, so they may be combined as sums are: the later's factor
times the earlier's, and what the earlier adds scaled by the later. A round that begins anew, as
at the start of a segment, has the factor 0.
Source: Blelloch, Prefix sums and their applications (1990), section 1.4.1.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from optiml_magic.kernels.expressions import (
    Assign,
    Binary,
    Call,
    Cast,
    Choice,
    Expr,
    Literal,
    Name,
    Step,
    Unary,
    every,
)
from optiml_magic.kernels.functions import FUSED, bare
from optiml_magic.kernels.primitives.base import Kernel, NotLegal
from optiml_magic.kernels.tree import Variable
from optiml_magic.kernels.types import CType, named

Show = Callable[[Expr], str]


@dataclass(frozen=True)
class Factors:
    """What a local's changes multiply it by: ``begun`` some by 0, ``scaled`` some by a number."""

    begun: bool
    scaled: bool


def grown(changing: Assign | Step, variable: Variable, line: int) -> Expr:
    """The new value of a local, in terms of the one that it had."""
    if isinstance(changing, Step) or changing.op == "=":
        return changing.target if isinstance(changing, Step) else changing.value
    if changing.op not in ("+=", "-=", "*=", "/="):
        raise NotLegal(f"`{variable.name}` goes from round to round", line)
    return Binary(None, changing.op[:-1], changing.target, changing.value)


@dataclass(frozen=True)
class _Factor:
    """What an expression multiplies a local by: as text, and the number where it is known."""

    shown: str
    value: float | None = None


class Linear:
    """Factors of one local, as text; expressions of others by ``show``."""

    def __init__(
        self, kernel: Kernel, variable: Variable, kind: CType, show: Show, line: int
    ) -> None:
        self.kernel = kernel
        self.variable = variable
        self.kind = kind
        self.show = show
        self.line = line
        self.scaled = False
        self.begun = False

    @property
    def one(self) -> str:
        """The factor of a change that only adds."""
        return f"({self.kind.name})1"

    def changed(self, changing: Assign | Step) -> str:
        """What a change multiplies the local by."""
        return self._side(self._factor(grown(changing, self.variable, self.line)))

    def _side(self, found: _Factor | None) -> str:
        """What a whole new value multiplies by, which no number makes greater each round."""
        if found is None:
            self.begun = True
            return f"({self.kind.name})0"
        if not self.kind.integral and abs(found.value or 0) > 1:
            raise NotLegal(f"`{self.variable.name}` grows from round to round", self.line)
        return found.shown

    def _factor(self, expr: Expr) -> _Factor | None:
        """None where an expression does not ask for the local."""
        if not self._asks(expr):
            return None
        match expr:
            case Name():
                return _Factor(self.one, 1)
            case Unary(op="+" | "-" as op, operand=operand):
                return self._added(op, None, self._factor(operand))
            case Binary(op="+" | "-" as op, left=left, right=right):
                return self._added(op, self._factor(left), self._factor(right))
            case Binary(op="*", left=left, right=right):
                return self._times(left, right)
            case Binary(op="/", left=left, right=right) if not self._asks(right):
                by = self._factor(left)
                if not self.kind.integral and by is not None:
                    self.scaled = True
                    number = _number(right)
                    value = by.value / number if by.value is not None and number else None
                    return _Factor(f"({by.shown} / ({self.show(right)}))", value)
            case Choice(test=test, then=then, other=other) if not self._asks(test):
                sides = self._side(self._factor(then)), self._side(self._factor(other))
                return _Factor(f"(({self.show(test)}) ? {sides[0]} : {sides[1]})")
            case Call(function=called, arguments=(left, right, rest)) if self._fused(called):
                product = self._asks(left) or self._asks(right)
                by = self._times(left, right) if product else None
                return self._added("+", by, self._factor(rest))
            case Cast(type=spelled, operand=operand):
                kind = self.kernel.reading.types.get(operand)
                rounded = self.kind.integral and (kind is None or not kind.integral)
                if named(spelled, self.kernel.unit.aliases) == self.kind and not rounded:
                    return self._factor(operand)
        raise NotLegal(f"`{self.variable.name}` goes from round to round", self.line)

    def _fused(self, function: str) -> bool:
        return bare(function) in FUSED and not self.kernel.unit.called(function, 3)

    def _asks(self, expr: Expr) -> bool:
        return any(isinstance(e, Name) and e.variable is self.variable for e in every(expr))

    def _times(self, left: Expr, right: Expr) -> _Factor:
        self.scaled = True
        own, other = (left, right) if self._asks(left) else (right, left)
        by = self._factor(own)
        if by is None or self._asks(other):
            raise NotLegal(f"`{self.variable.name}` goes from round to round", self.line)
        number, shown = _number(other), f"({self.show(other)})"
        value = by.value * number if by.value is not None and number is not None else None
        if by.shown == self.one:  # of the local's type, or whole numbers would divide otherwise
            kind = self.kernel.reading.types.get(other)
            floating = kind is not None and kind.floating
            return _Factor(shown if floating else f"({self.kind.name}){shown}", value)
        return _Factor(f"({by.shown} * {shown})", value)

    def _added(self, op: str, left: _Factor | None, right: _Factor | None) -> _Factor | None:
        if right is None:
            return left
        sign = -1 if op == "-" else 1
        if left is None and sign == 1:
            return right
        self.scaled = True
        if left is None:
            return _Factor(f"(-{right.shown})", None if right.value is None else -right.value)
        known = left.value is not None and right.value is not None
        value = (left.value or 0) + sign * (right.value or 0) if known else None
        return _Factor(f"({left.shown} {op} {right.shown})", value)


def _number(expr: Expr) -> float | None:
    """The value of a number, of either sign."""
    match expr:
        case Literal(value=value):
            return value
        case Unary(op="-", operand=Literal(value=value)) if value is not None:
            return -value
    return None


def factors(
    kernel: Kernel,
    variable: Variable,
    kind: CType,
    changes: Sequence[Assign | Step],
    line: int,
) -> Factors:
    """By what changes multiply a local; raises NotLegal where one of them does more."""
    if not (kind.name in ("float", "double") or (kind.integral and kind.size in (4, 8))):
        raise NotLegal(f"`{variable.name}` goes from round to round", line)
    linear = Linear(kernel, variable, kind, lambda _: "", line)
    for change in changes:
        linear.changed(change)
        if isinstance(change, Step):
            continue
        value = kernel.reading.types.get(change.value)
        if value is None or value.depth or value.kind not in ("int", "float", "bool"):
            raise NotLegal(f"what `{variable.name}` takes is not read", line)
        if kind.integral and not value.integral and value.kind != "bool":
            raise NotLegal(f"`{variable.name}` is rounded in each round", line)
    if linear.begun and linear.scaled and not kind.integral:
        raise NotLegal(f"`{variable.name}` is begun anew and scaled as well", line)
    return Factors(linear.begun, linear.scaled)
