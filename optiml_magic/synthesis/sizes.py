"""Sizes that know the expression they came from, and what was assumed about them.

An extent is a ``Polynomial`` over the names of sizes; a floor division that leaves a rest is one
more symbol of it, a ``Quotient``. ``$0 $1 ...`` are the indices along the axes of a result.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from numbers import Integral
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Protocol, Self

from optiml_magic.kernels.polynomial import Polynomial

if TYPE_CHECKING:
    _Int = int
else:
    _Int = object
Extents = tuple[Polynomial, ...]
_NOTHING = Polynomial()
_RELATIONS: Mapping[str, Callable[[Any, Any], Any]] = MappingProxyType({
    "==": operator.eq, "!=": operator.ne, "<": operator.lt, "<=": operator.le,
    ">": operator.gt, ">=": operator.ge,
})  # fmt: skip


class Quotient(str):
    """The floor of one polynomial over another, where a polynomial wants a symbol."""

    __slots__ = ("dividend", "divisor")
    dividend: Polynomial
    divisor: Polynomial

    def __new__(cls, dividend: Polynomial, divisor: Polynomial) -> Self:
        made = super().__new__(cls, f"(({dividend}) // ({divisor}))")
        made.dividend, made.divisor = dividend, divisor
        return made


@dataclass(frozen=True)
class Assumption:
    """A relation of sizes that decided what was traced; elsewhere the graph is another."""

    left: Polynomial
    relation: str
    right: Polynomial

    def holds(self, sizes: Mapping[str, int]) -> bool:
        """Whether it is so at these sizes."""
        decided = _RELATIONS[self.relation](valued(self.left, sizes), valued(self.right, sizes))
        return bool(decided)

    def __str__(self) -> str:
        return f"{self.left} {self.relation} {self.right}"


def constant(value: int) -> Polynomial:
    """A whole number as a polynomial."""
    return Polynomial.constant(int(value))


def axis(at: int) -> Polynomial:
    """The index along an axis of the result."""
    return Polynomial.symbol(f"${at}")


def symbols_of(expression: Polynomial) -> frozenset[str]:
    """All names in it, those within quotients included."""
    found: set[str] = set()
    for symbol in expression.symbols:
        if isinstance(symbol, Quotient):
            found |= symbols_of(symbol.dividend) | symbols_of(symbol.divisor)
        else:
            found.add(symbol)
    return frozenset(found)


def axes_of(expression: Polynomial) -> frozenset[int]:
    """The axes whose index an expression reads."""
    return frozenset(int(s[1:]) for s in symbols_of(expression) if s.startswith("$"))


def quotient(dividend: Polynomial, divisor: Polynomial) -> Polynomial:
    """The floor of the quotient, with all taken out that divides without a rest."""
    if divisor.value == 1:
        return dividend
    if len(divisor.terms) != 1:
        whole = constant(1) if dividend == divisor else None
        return whole or _symbol(Quotient(dividend, divisor))
    ((unit, factor),) = divisor.terms
    taken, rest = {}, {}
    for monomial, count in dividend.terms:
        left = _without(monomial, unit)
        if left is not None and count % factor == 0:
            taken[left] = count // factor
        else:
            rest[monomial] = count
    over = Polynomial.of(rest)
    if over.value is not None and divisor.value is not None:
        return Polynomial.of(taken) + constant(over.value // divisor.value)
    falls = all(count < 0 for monomial, count in over.terms if monomial)
    if over.value is None and falls and factor > 0:
        # `-(-n // 8)` rounds up: divisions of kernels are of what is not negative.
        return Polynomial.of(taken) - quotient(divisor - over - constant(1), divisor)
    return Polynomial.of(taken) + (_symbol(Quotient(over, divisor)) if rest else _NOTHING)


def remainder(dividend: Polynomial, divisor: Polynomial) -> Polynomial:
    """What the floor division leaves."""
    return dividend - divisor * quotient(dividend, divisor)


def valued(expression: Polynomial, at: Mapping[str, Any]) -> Any:
    """Its value where each symbol is a number, or an array of numbers."""
    total: Any = 0
    for monomial, factor in expression.terms:
        product: Any = factor
        for symbol in monomial:
            if isinstance(symbol, Quotient):
                product = product * (valued(symbol.dividend, at) // valued(symbol.divisor, at))
            else:
                product = product * at[symbol]
        total = total + product
    return total


def substituted(expression: Polynomial, given: Mapping[str, Polynomial]) -> Polynomial:
    """The expression with other expressions in place of symbols."""
    total = _NOTHING
    for monomial, factor in expression.terms:
        product = constant(factor)
        for symbol in monomial:
            if isinstance(symbol, Quotient):
                inner = (substituted(part, given) for part in (symbol.dividend, symbol.divisor))
                product = product * quotient(*inner)
            else:
                product = product * given.get(symbol, _symbol(symbol))
        total = total + product
    return total


def within(expression: Polynomial, extents: Extents) -> Polynomial:
    """The same on indices within the extents: quotients of what is too small for one are gone."""
    total = _NOTHING
    for monomial, factor in expression.terms:
        product = constant(factor)
        for symbol in monomial:
            part = _symbol(symbol)
            if isinstance(symbol, Quotient):
                inner = (within(side, extents) for side in (symbol.dividend, symbol.divisor))
                above, below = inner
                part = _NOTHING if _smaller(above, below, extents) else quotient(above, below)
            product = product * part
        total = total + product
    return total


def _smaller(above: Polynomial, below: Polynomial, extents: Extents) -> bool:
    """Whether ``0 <= above < below`` for sure."""
    if not axes_of(above) or axes_of(below) or any(factor < 0 for _, factor in above.terms):
        return False
    if any(isinstance(symbol, Quotient) for symbol in above.symbols):
        return False
    last = {f"${k}": extent - constant(1) for k, extent in enumerate(extents)}
    room = (below - substituted(above, last)).value
    return room is not None and room > 0


def _symbol(name: str) -> Polynomial:
    return Polynomial.of({(name,): 1})


def _without(monomial: tuple[str, ...], unit: tuple[str, ...]) -> tuple[str, ...] | None:
    left = list(monomial)
    for symbol in unit:
        if symbol not in left:
            return None
        left.remove(symbol)
    return tuple(left)


class Owner(Protocol):
    """Who writes down what sizes decide, and takes them over where they become numbers."""

    def assume(self, assumption: Assumption) -> None: ...

    def number(self, size: Size) -> Any:
        """The size as an operand of arithmetic that is not of whole numbers."""

    def ufunc(self, ufunc: Any, method: str, inputs: Sequence[Any], options: Any) -> Any: ...


class Size(_Int):
    """A whole number that Python computes with as with any other.

    It is no ``int`` to Python: ``0.5 * n`` and what is written in C would take its value, and leave
    no trace of where that came from.
    """

    plain: int
    expression: Polynomial
    owner: Owner

    def __new__(cls, value: int, expression: Polynomial, owner: Owner) -> Self:
        made = super().__new__(cls)
        made.plain, made.expression, made.owner = bare(value), expression, owner
        return made

    def __hash__(self) -> int:
        return hash(self.plain)

    def __format__(self, spec: str) -> str:
        return format(self.plain, spec)

    def __repr__(self) -> str:
        return repr(self.plain)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return getattr(self.pinned(), name)

    def pinned(self) -> int:
        """The number alone, which from here on the graph is made for."""
        if self.expression.value is None:
            self.owner.assume(Assumption(self.expression, "==", constant(self.plain)))
        return self.plain

    def related(self, relation: str, other: Any) -> Any:
        """The comparison with another size, decided by the expressions or else assumed."""
        if isinstance(other, float):
            return _RELATIONS[relation](self.pinned(), other)
        if not isinstance(other, WHOLE):
            return NotImplemented
        decided = bool(_RELATIONS[relation](self.plain, bare(other)))
        theirs = polynomial(other)
        if (self.expression - theirs).value is None:
            self.owner.assume(Assumption(self.expression, _true(relation, decided), theirs))
        return decided

    def __eq__(self, other: object) -> Any:
        return self.related("==", other)

    def __ne__(self, other: object) -> Any:
        return self.related("!=", other)

    def __lt__(self, other: Any) -> Any:
        return self.related("<", other)

    def __le__(self, other: Any) -> Any:
        return self.related("<=", other)

    def __gt__(self, other: Any) -> Any:
        return self.related(">", other)

    def __ge__(self, other: Any) -> Any:
        return self.related(">=", other)

    def __bool__(self) -> bool:
        return bool(self.related("!=", 0))

    def __int__(self) -> int:
        return self.pinned()

    __index__ = __int__

    def __float__(self) -> float:
        return float(self.pinned())

    def __neg__(self) -> Size:
        return Size(-self.plain, -self.expression, self.owner)

    def __pos__(self) -> Size:
        return self

    def __abs__(self) -> int:
        return self if self >= 0 else -self

    def __invert__(self) -> int:
        return -self - 1

    def __round__(self, digits: Any = None) -> int:
        return self if digits is None or digits >= 0 else round(self.pinned(), digits)

    __trunc__ = __floor__ = __ceil__ = __pos__

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **options: Any) -> Any:
        return self.owner.ufunc(ufunc, method, inputs, options)


Integral.register(Size)
#: What a whole number of a reference may be.
WHOLE = (int, Size)


def bare(number: int) -> int:
    """The number alone, of a size as well."""
    return number.plain if isinstance(number, Size) else number


def polynomial(size: int) -> Polynomial:
    """The expression of a size, or a plain number as one."""
    return size.expression if isinstance(size, Size) else constant(size)


def _true(relation: str, decided: bool) -> str:
    opposite = {"==": "!=", "!=": "==", "<": ">=", ">=": "<", ">": "<=", "<=": ">"}
    return relation if decided else opposite[relation]


def _exact(left: Any, right: Any, op: str) -> Polynomial | None:
    """The expression of an operation on two of them; None where only the number is known."""
    one, two = polynomial(left), polynomial(right)
    match op:
        case "add":
            return one + two
        case "sub":
            return one - two
        case "mul":
            return one * two
        case "floordiv":
            return quotient(one, two)
        case "mod":
            return remainder(one, two)
        case "pow" if two.value is not None and 0 <= two.value <= 8:
            power = constant(1)
            for _ in range(two.value):
                power = power * one
            return power
        case "lshift" if two.value is not None and two.value >= 0:
            return one * constant(1 << two.value)
        case "rshift" if two.value is not None and two.value >= 0:
            return quotient(one, constant(1 << two.value))
    return None


def _operator(op: str, *, swapped: bool) -> Callable[[Size, Any], Any]:
    plain = getattr(operator, {"and": "and_", "or": "or_"}.get(op, op))

    def operated(self: Size, other: Any) -> Any:
        if isinstance(other, float) or (isinstance(other, WHOLE) and op == "truediv"):
            mine = self.owner.number(self)
            return plain(other, mine) if swapped else plain(mine, other)
        if not isinstance(other, WHOLE):
            if isinstance(other, (list, tuple, str, bytes)):
                self.pinned()  # sequences are repeated as often as the number says
            return NotImplemented
        left, right = (other, self) if swapped else (self, other)
        expression = _exact(left, right, op)
        values = [bare(side) for side in (left, right)]
        value = plain(*values)
        if expression is None and isinstance(value, float):
            mine = self.owner.number(self)
            return plain(other, mine) if swapped else plain(mine, other)
        if expression is None:
            for side in (left, right):
                if isinstance(side, Size):
                    side.pinned()
            return value
        return Size(value, expression, self.owner)

    return operated


def _divmod(self: Size, other: Any) -> Any:
    if not isinstance(other, WHOLE):
        return NotImplemented
    return self // other, self % other


def _rdivmod(self: Size, other: Any) -> Any:
    if not isinstance(other, WHOLE):
        return NotImplemented
    return other // self, other % self


for _op in ("add", "sub", "mul", "floordiv", "mod", "pow", "truediv", "lshift", "rshift",
            "and", "or", "xor"):  # fmt: skip
    setattr(Size, f"__{_op}__", _operator(_op, swapped=False))
    setattr(Size, f"__r{_op}__", _operator(_op, swapped=True))
for _name, _method in {"__divmod__": _divmod, "__rdivmod__": _rdivmod}.items():
    setattr(Size, _name, _method)
