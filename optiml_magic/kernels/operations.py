"""Integer arithmetic on forms as C has it; what is not a sum of products becomes a named operation.

Two things are assumed, as every index expression assumes them: an index fits its type, and a size
that an unsigned index is compared with is not negative. What is multiplied by a quarter of a
billion and more, as hashes do it, is no index.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import gcd

from optiml_magic.kernels.polynomial import Polynomial
from optiml_magic.kernels.ranges import Ranges
from optiml_magic.kernels.symbols import (
    UNKNOWN,
    Always,
    Compare,
    Condition,
    Every,
    Some,
    Symbol,
    Symbols,
    Untold,
    every,
)
from optiml_magic.kernels.types import CType

_ONE = Polynomial.constant(1)
_FAR, _WORD = 1 << 31, 32
_HASHED = 1 << 28  # a factor beyond that makes no index: ours
_FORMS = {"<": (1, -1), "<=": (1, 0), ">": (-1, -1), ">=": (-1, 0)}
_FOLDED: dict[str, Callable[[int, int], int]] = {
    ">>": lambda a, b: a >> b,
    "&": lambda a, b: a & b,
    "|": lambda a, b: a | b,
    "^": lambda a, b: a ^ b,
    "min": min,
    "max": max,
}


class Operations:
    """Makes forms; ``path`` is what holds where they are computed."""

    def __init__(self, symbols: Symbols) -> None:
        self.symbols = symbols
        self._serial = 0
        self._far: dict[str, bool] = {}

    def unknown(self, depends: frozenset[str], kind: CType | None = None) -> Polynomial:
        """A value that is not followed; no two are the same."""
        self._serial += 1
        low, high = bounds(kind) if kind is not None else (None, None)
        name = f"?{self._serial}"
        return self.symbols.of(Symbol(name, "unknown", depends | {UNKNOWN}, low=low, high=high))

    def serial(self) -> int:
        self._serial += 1
        return self._serial

    def nonnegative(self, form: Polynomial, path: Sequence[Condition]) -> bool:
        if form.value is not None:
            return form.value >= 0
        return Ranges(path, self.symbols).nonnegative(form)

    def settled(self, form: Polynomial, kind: CType, path: Sequence[Condition]) -> Polynomial:
        """The number that an expression of this type stands for: an unsigned one wraps.

        A sum of sizes, places and counters is taken to stay below where it would.
        """
        if kind.signed or kind.kind != "int" or not kind.size:
            return form
        if form.value is not None:
            return Polynomial.constant(form.value % (1 << 8 * kind.size))
        half = 1 << 8 * kind.size - 1
        form = Polynomial.of({m: (c + half) % (2 * half) - half for m, c in form.terms})
        kinds = {self.symbols[name].kind for name in form.symbols}
        if kinds <= {"scalar"}:
            return form
        far = self._may_be_far(form) or _is_hashed(form, kind.size)
        if not far and Ranges(path, self.symbols, sizes=True).nonnegative(form):
            return form
        return self.operation("wrap", (form, Polynomial.constant(8 * kind.size)), low=0)

    def _may_be_far(self, form: Polynomial) -> bool:
        """Whether a sum has a part that may have wrapped before, so that it may wrap again."""
        if form.value is not None or form.terms[-1][1] == len(form.terms) == len(form.symbols) == 1:
            return False
        return any(self._is_far(self.symbols[name]) for name in form.symbols)

    def _is_far(self, part: Symbol) -> bool:
        """Whether it may be a number that wrapped, or a choice among such numbers."""
        if part.high is not None and part.high < _FAR:
            return False
        if part.kind == "select":
            return any(
                abs(factor) >= _FAR if not monomial else any(map(self._is_far_inside, monomial))
                for argument in part.arguments for monomial, factor in argument.terms
            )  # fmt: skip
        return part.op == "wrap"

    def _is_far_inside(self, name: str) -> bool:
        # A choice among choices asks for the same parts again, twice as often at each of them.
        if name not in self._far:
            part = self.symbols[name]
            own = (n for argument in part.arguments for n in argument.symbols)
            self._far[name] = self._is_far(part) or any(map(self._is_far_inside, own))
        return self._far[name]

    def converted(
        self, form: Polynomial, old: CType, new: CType, path: Sequence[Condition]
    ) -> Polynomial:
        """The form of an integer after a conversion."""
        if not (old.integral and new.integral):
            return form
        if new.kind == "bool":
            return form if old.kind == "bool" else self.select(
                Compare("!=", form, self.symbols.depends(form)), _ONE, Polynomial()
            )  # fmt: skip
        wide, narrow = new.size or 4, old.size or 4
        if wide > narrow:
            return self.settled(form, old, path)
        if wide < 4 and wide < narrow:
            return self._narrowed(form, new, path)
        if form.value is not None and new.signed:
            return Polynomial.constant(_wrapped(form.value, new))
        if wide == narrow and new.signed and not old.signed and _is_hashed(form, wide):
            return self.operation("wrap", (form, Polynomial.constant(-8 * wide)))
        return form  # what is unsigned wraps when it is settled

    def _narrowed(self, form: Polynomial, new: CType, path: Sequence[Condition]) -> Polynomial:
        low, high = bounds(new)
        assert low is not None
        assert high is not None
        if form.value is not None:
            return Polynomial.constant(_wrapped(form.value, new))
        least, most = Polynomial.constant(low), Polynomial.constant(high)
        if self.nonnegative(form - least, path) and self.nonnegative(most - form, path):
            return form
        bits = Polynomial.constant(8 * (new.size or 4) * (-1 if new.signed else 1))
        return self.operation("wrap", (form, bits), low=low, high=high)

    def operation(
        self, op: str, arguments: tuple[Polynomial, ...], low: int | None = None,
        high: int | None = None,
    ) -> Polynomial:  # fmt: skip
        """``op`` of these, as a symbol that is equal wherever they are."""
        depends = frozenset[str]().union(*(self.symbols.depends(a) for a in arguments))
        name = f"{op}({', '.join(map(str, arguments))})"
        return self.symbols.of(
            Symbol(name, "operation", depends, op, arguments, low=low, high=high)
        )

    def binary(
        self, op: str, left: Polynomial, right: Polynomial, kind: CType, path: Sequence[Condition]
    ) -> Polynomial:
        """The form of ``left op right``, both of type ``kind``."""
        if op == "+":
            return left + right
        if op == "-":
            return left - right
        if op == "*":
            return left * right if len(left.terms) * len(right.terms) <= 64 else self.unknown(
                self.symbols.depends(left) | self.symbols.depends(right)
            )  # fmt: skip
        if op == "<<" and right.value is not None and 0 <= right.value < 64:
            return left * Polynomial.constant(1 << right.value)
        left, right = self.settled(left, kind, path), self.settled(right, kind, path)
        if op in ("/", "%"):
            return self._divided(op, left, right, path)
        if op == ">>" and right.value is not None and 0 <= right.value < 63:
            if self.nonnegative(left, path):
                return self._divided("/", left, Polynomial.constant(1 << right.value), path)
        elif op == "&":
            for value, mask in ((left, right), (right, left)):
                power = (
                    mask.value is not None and mask.value >= 0 and not mask.value & mask.value + 1
                )
                if power and self.nonnegative(value, path):
                    return self._divided("%", value, mask + _ONE, path)
        if left.value is not None and right.value is not None and op in _FOLDED and (
            op != ">>" or 0 <= right.value < 64
        ):  # fmt: skip
            return Polynomial.constant(_FOLDED[op](left.value, right.value))
        if op in ("min", "max"):
            return self.extreme(op, left, right, path)
        if op in "&|^":
            left, right = sorted((left, right), key=str)
        low = 0 if self.nonnegative(left, path) and self.nonnegative(right, path) else None
        values = [side.value for side in (left, right) if side.value is not None]
        high = None
        if op == "&" and values and values[0] >= 0:  # whatever the sign of the other
            low, high = 0, values[0]
        return self.operation(op, (left, right), low, high)

    def extreme(
        self, op: str, left: Polynomial, right: Polynomial, path: Sequence[Condition]
    ) -> Polynomial:
        """The lesser or the greater of two."""
        if left == right:
            return left
        if left.value is not None and right.value is not None:
            return Polynomial.constant(_FOLDED[op](left.value, right.value))
        left, right = sorted((left, right), key=str)
        signs = [self.nonnegative(side, path) for side in (left, right)]
        low = 0 if (all(signs) if op == "min" else any(signs)) else None
        high = min((s.value for s in (left, right) if s.value is not None), default=None)
        return self.operation(op, (left, right), low, high if op == "min" else None)

    def _divided(
        self, op: str, left: Polynomial, right: Polynomial, path: Sequence[Condition]
    ) -> Polynomial:
        """A quotient that is rounded towards zero, or its remainder."""
        if left.value is not None and right.value:
            count = abs(left.value) // abs(right.value)
            count = count if (left.value < 0) == (right.value < 0) else -count
            return Polynomial.constant(count if op == "/" else left.value - count * right.value)
        if right == _ONE:
            return left if op == "/" else Polynomial()
        exact = left.divided(right.value) if right.value else None
        if exact is not None:  # whatever the signs
            return exact if op == "/" else Polynomial()
        ranges = Ranges(path, self.symbols)
        positive = ranges.nonnegative(left)
        if positive and right.value is not None and right.value > 0:
            whole = Polynomial.of({m: c // right.value for m, c in left.terms
                                   if c % right.value == 0})  # fmt: skip
            rest = left - whole * right
            if whole.terms and ranges.within(rest, right):
                return whole if op == "/" else rest
            moving = Polynomial.of({m: c for m, c in whole.terms if self._counts(m)})
            rest = left - moving * right
            if moving.terms and ranges.nonnegative(rest):
                rest = self._divided(op, rest, right, path)
                return moving + rest if op == "/" else rest
        if (
            positive
            and ranges.nonnegative(right - _ONE)
            and ranges.nonnegative(right - left - _ONE)
        ):
            return Polynomial() if op == "/" else left
        if positive and len(right.terms) == 1 and right.value is None:
            ((size, factor),) = right.terms
            whole = Polynomial.constant(dict(left.terms).get(size, 0) // factor)
            if whole.terms and ranges.within(left - whole * right, right):
                return whole if op == "/" else left - whole * right  # (i + n) % n
        high = None
        if positive and right.value:
            high = abs(right.value) - 1 if op == "%" else self._most(left) // abs(right.value)
        return self.operation(op, (left, right), 0 if positive else None, high)

    def _counts(self, monomial: tuple[str, ...]) -> bool:
        """Whether it is the number of a loop's round, by itself."""
        return len(monomial) == 1 and self.symbols[monomial[0]].kind == "counter"

    def _most(self, form: Polynomial) -> int:
        """A number that no value of this form exceeds."""
        total = 0
        for monomial, factor in form.terms:
            product = factor
            for name in monomial:
                high = self.symbols[name].high
                if high is None or factor < 0:
                    return 2**62
                product *= high
            total += product
        return total

    def compared(self, op: str, left: Polynomial, right: Polynomial) -> Condition:
        """``left op right`` as a condition on one form."""
        difference = right - left
        roots = self.symbols.depends(left) | self.symbols.depends(right)
        if difference.value is not None:
            value = difference.value
            return Always(
                {"<": value > 0, "<=": value >= 0, ">": value < 0, ">=": value <= 0,
                 "==": value == 0, "!=": value != 0}[op]
            )  # fmt: skip
        if op in _FORMS:
            sign, constant = _FORMS[op]
            form = difference if sign > 0 else -difference
            return Compare(">=", tightened(form + Polynomial.constant(constant)), roots)
        # One sign for both ways of writing an equation.
        first = difference.terms[-1][1]
        form = _primitive(difference if first > 0 else -difference)
        return Compare("==" if op == "==" else "!=", form, roots)

    def within(self, op: str, left: Polynomial, right: Polynomial) -> Condition | None:
        """``(unsigned)i < (unsigned)n`` of an ``int`` size: ``i`` is below it, and not below zero.

        What is below zero wraps to more than any such size. None for other comparisons.
        """
        if op in (">", "<="):
            return self.within("<" if op == ">" else ">=", right, left)
        part = self.symbols.table.get(str(left))
        if op not in ("<", ">=") or part is None or part.op != "wrap":
            return None
        inner, bits = part.arguments
        size = self.symbols.table.get(str(right))
        given = size is not None and size.kind == "scalar" and (size.low, size.width) == (None, 4)
        if bits.value != _WORD or not (given or 0 < (right.value or 0) < _FAR):
            return None
        ends = (self.compared(">=", inner, Polynomial()), self.compared("<", inner, right))
        return every(ends) if op == "<" else ~every(ends)

    def select(self, test: Condition, then: Polynomial, other: Polynomial) -> Polynomial:
        """``test ? then : other``; a comparison of the two is their extreme."""
        if isinstance(test, Always):
            return then if test.value else other
        if then == other:
            return then
        if isinstance(test, Compare) and test.op == ">=":
            apart = then - other
            if test.form in (-apart, -apart - _ONE):
                return self.extreme("min", then, other, ())
            if test.form in (apart, apart - _ONE):
                return self.extreme("max", then, other, ())
        depends = test.depends | self.symbols.depends(then) | self.symbols.depends(other)
        if isinstance(test, Untold):
            depends |= {UNKNOWN}
        name = f"select({_named(test)}, {then}, {other})"
        lows = [self._low(side) for side in (then, other)]
        known = [bound for bound in lows if bound is not None]
        low = min(known) if len(known) == len(lows) else None
        return self.symbols.of(
            Symbol(name, "select", depends, "select", (then, other), test, low=low)
        )

    def _low(self, form: Polynomial) -> int | None:
        if form.value is not None:
            return form.value
        return 0 if self.nonnegative(form, ()) else None


def _is_hashed(form: Polynomial, size: int) -> bool:
    """Whether an unsigned number of so many bytes has a factor that no index has."""
    half = 1 << 8 * size - 1
    return any(m and abs((c + half) % (2 * half) - half) > _HASHED for m, c in form.terms)


def _named(test: Condition) -> str:
    """A condition by a name that no other has, nor another that is not followed."""
    match test:
        case Untold(serial=serial):
            return f"{test} #{serial}"
        case Every(parts=parts) | Some(parts=parts):
            return f"{type(test).__name__}({', '.join(map(_named, parts))})"
    return str(test)


def tightened(form: Polynomial) -> Polynomial:
    """``form >= 0`` without a common factor: whole numbers know nothing between."""
    common = gcd(*(factor for monomial, factor in form.terms if monomial))
    if common <= 1:
        return form
    return Polynomial.of({m: factor // common for m, factor in form.terms})


def _primitive(form: Polynomial) -> Polynomial:
    common = gcd(*(factor for _, factor in form.terms))
    return form.divided(common) or form if common > 1 else form


def bounds(kind: CType) -> tuple[int | None, int | None]:
    """The least and the greatest number of a type; None where they say little."""
    if kind.kind == "bool":
        return 0, 1
    if kind.kind != "int" or kind.depth or kind.size is None:
        return None, None
    if kind.size <= 2:
        bits = 8 * kind.size
        return (-(1 << bits - 1), (1 << bits - 1) - 1) if kind.signed else (0, (1 << bits) - 1)
    return (None, None) if kind.signed else (0, None)


def _wrapped(value: int, kind: CType) -> int:
    bits = 8 * (kind.size or 4)
    value %= 1 << bits
    return value - (1 << bits) if kind.signed and value >> bits - 1 else value
