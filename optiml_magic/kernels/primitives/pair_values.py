"""What a loop over items computes of narrow numbers, as expressions whose ranges are known.

Statements are followed with loops written out and branches joined, so that each value is made of
elements, whole numbers and a few operations.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import TypeVar
from weakref import WeakValueDictionary

from optiml_magic.kernels.primitives.base import NotLegal
from optiml_magic.kernels.types import CType, scalar

BYTE = 255
BYTES = scalar("u", 1)


@dataclass(frozen=True, eq=False)
class Value:
    """A whole number of an item, and between which numbers it lies."""

    low: float
    high: float

    @property
    def parts(self) -> tuple[Value, ...]:
        return ()


@dataclass(frozen=True, eq=False)
class Element(Value):
    """A number of a local array: its row as text, and how far behind the item's first it lies.

    Items are ``step`` numbers apart, as many as a vector has lanes, or a pixel has bytes.
    """

    array: str
    row: str
    at: int
    step: int = 1
    kind: CType = BYTES


@dataclass(frozen=True, eq=False)
class Linear(Value):
    """Values times numbers, and a number, added up."""

    terms: tuple[tuple[Value, int], ...]
    number: int

    @property
    def parts(self) -> tuple[Value, ...]:
        return tuple(value for value, _ in self.terms)


@dataclass(frozen=True, eq=False)
class Extreme(Value):
    """The least (``min``) or greatest (``max``) of two values."""

    which: str
    left: Value
    right: Value

    @property
    def parts(self) -> tuple[Value, ...]:
        return self.left, self.right


@dataclass(frozen=True, eq=False)
class Magnitude(Value):
    of: Value

    @property
    def parts(self) -> tuple[Value, ...]:
        return (self.of,)


@dataclass(frozen=True, eq=False)
class Quotient(Value):
    """A value that is not negative, divided by a number."""

    of: Value
    by: int

    @property
    def parts(self) -> tuple[Value, ...]:
        return (self.of,)


@dataclass(frozen=True, eq=False)
class Chosen(Value):
    """One of two values, as two others compare: ``left > right``, or ``>=``, ``==``, ``!=``."""

    compared: str
    left: Value
    right: Value
    then: Value
    other: Value

    @property
    def parts(self) -> tuple[Value, ...]:
        return self.left, self.right, self.then, self.other


_V = TypeVar("_V", bound=Value)
_KNOWN: WeakValueDictionary[tuple[object, ...], Value] = WeakValueDictionary()


def _one(value: _V) -> _V:
    """The one object of a value: comparing trees would take as long as there are ways in them."""
    key = (type(value), *(getattr(value, field.name) for field in fields(value)))
    found = _KNOWN.setdefault(key, value)
    assert isinstance(found, type(value))
    return found


def element(array: str, row: str, at: int, step: int, kind: CType) -> Value:
    plain = scalar("i" if kind.signed else "u", kind.size or 0)
    return _one(Element(*_ends(plain), array, row, at, step, plain))


def number(value: int) -> Value:
    return _one(Linear(value, value, (), value))


def constant(value: Value) -> int | None:
    return value.number if isinstance(value, Linear) and not value.terms else None


def combined(left: Value, right: Value, times: int = 1) -> Value:
    """``left + times * right``."""
    terms: dict[Value, int] = {}
    total = 0
    for value, by in ((left, 1), (right, times)):
        own = value.terms if isinstance(value, Linear) else ((value, 1),)
        total += by * (value.number if isinstance(value, Linear) else 0)
        for atom, factor in own:
            terms[atom] = terms.get(atom, 0) + by * factor
    return linear(terms, total)


def linear(terms: dict[Value, int], total: int) -> Value:
    kept = {value: by for value, by in terms.items() if by}
    if total == 0 and [*kept.values()] == [1]:
        return next(iter(kept))
    low = total + sum(by * (v.low if by > 0 else v.high) for v, by in kept.items())
    high = total + sum(by * (v.high if by > 0 else v.low) for v, by in kept.items())
    return _one(Linear(low, high, tuple(kept.items()), total))


def product(left: Value, right: Value) -> Value:
    for value, other in ((left, right), (right, left)):
        if (by := constant(other)) is not None:
            return combined(number(0), value, by)
    raise NotLegal("it multiplies what is not a number")


def operation(op: str, left: Value, right: Value) -> Value:
    """``left op right``, of those that halves do."""
    by = constant(right)
    match op:
        case "+" | "-":
            return combined(left, right, 1 if op == "+" else -1)
        case "*":
            return product(left, right)
        case "<<" if by is not None and 0 <= by < 16 and left.low >= 0:
            return combined(number(0), left, 1 << by)
        case ">>" if by is not None and 0 <= by < 16:
            return quotient(left, 1 << by)
        case "/" if by is not None:
            return quotient(left, by)
        case "&" if by is not None and by & (by + 1) == 0 and left.low >= 0 and left.high <= by:
            return left
    raise NotLegal(f"`{op}` is not done in pairs")


def extreme(which: str, left: Value, right: Value) -> Value:
    a, b = constant(left), constant(right)
    choose = min if which == "min" else max
    if a is not None and b is not None:
        return number(choose(a, b))
    for one, other in ((left, right), (right, left)):
        if (one.high <= other.low) if which == "min" else (one.low >= other.high):
            return one
    low, high = choose(left.low, right.low), choose(left.high, right.high)
    return _one(Extreme(low, high, which, left, right))


def magnitude(value: Value) -> Value:
    if value.low >= 0:
        return value
    if value.high <= 0:
        return combined(number(0), value, -1)
    return _one(Magnitude(0, max(-value.low, value.high), value))


def quotient(value: Value, by: int) -> Value:
    if value.low < 0 or by < 1:
        raise NotLegal("a number below zero is divided, or shifted")
    if (known := constant(value)) is not None:
        return number(known // by)
    if by == 1 or value.high < by:
        return value if by == 1 else number(0)
    return _one(Quotient(value.low // by, value.high // by, value, by))


@dataclass(frozen=True)
class Test:
    """``left > right``, or ``>=``, ``==``, ``!=``."""

    compared: str
    left: Value
    right: Value

    @property
    def decided(self) -> bool | None:
        gap_low, gap_high = self.left.low - self.right.high, self.left.high - self.right.low
        match self.compared:
            case ">":
                return True if gap_low > 0 else False if gap_high <= 0 else None
            case ">=":
                return True if gap_low >= 0 else False if gap_high < 0 else None
        apart = gap_low > 0 or gap_high < 0
        same = gap_low == gap_high == 0
        return None if not apart and not same else same == (self.compared == "==")


def test(op: str, left: Value, right: Value) -> Test:
    return Test(">" if op == "<" else ">=", right, left) if op in ("<", "<=") else Test(
        op, left, right
    )  # fmt: skip


def chosen(given: Test, then: Value, other: Value) -> Value:
    """``given ? then : other``."""
    if given.decided is not None:
        return then if given.decided else other
    if then == other:
        return then
    left, right = given.left, given.right
    if given.compared in (">", ">="):
        if (then, other) == (left, right):
            return extreme("max", left, right)
        if (then, other) == (right, left):
            return extreme("min", left, right)
        negated = combined(number(0), then, -1)
        zero = constant(right) == 0, constant(left) == 0
        if negated == other and ((zero[0] and then == left) or (zero[1] and other == right)):
            return magnitude(then)
        for way, end in ((then, other), (other, then)):
            for bound, moved in ((left, right), (right, left)):
                if end == bound and (which := _clamps(way, moved, bound)):
                    greater = (end is then) == (bound is left)
                    if greater == (which == "max"):
                        return extreme(which, bound, way)
    low, high = min(then.low, other.low), max(then.high, other.high)
    return _one(Chosen(low, high, given.compared, left, right, then, other))


def _clamps(way: Value, moved: Value, bound: Value) -> str:
    """Which extreme of a bound and ``way`` is the bound where ``moved`` is beyond it.

    ``way`` is ``moved``, but not beyond an end on the other side of the bound.
    """
    if not isinstance(way, Extreme) or moved not in way.parts:
        return ""
    end = way.right if way.left == moved else way.left
    if way.which == "min" and end.low >= bound.high:
        return "max"
    return "min" if way.which == "max" and end.high <= bound.low else ""


def fits(value: Value, kind: CType, line: int) -> None:
    """A number stays what it is in a type, so that no conversion changes it."""
    plain = kind.integral and kind.kind == "int" and kind.lanes == 1 and kind.size
    low, high = _ends(kind)
    if not plain or not low <= value.low <= value.high <= high:
        raise NotLegal(f"a number may not fit into `{kind.name}`", line)


def _ends(kind: CType) -> tuple[int, int]:
    """The least and the greatest number of a type."""
    bits = 8 * (kind.size or 1) - (1 if kind.signed else 0)
    return -(1 << bits) if kind.signed else 0, (1 << bits) - 1
