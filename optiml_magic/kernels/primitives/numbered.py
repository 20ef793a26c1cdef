"""Elements that are an item's own because its digits, in another order, number them.

``i % c``, ``i / c % b`` and ``i / (c * b)`` are all of ``i``; a sum of them in which each has as
its factor how many values those before it have together is another number for each item.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

from optiml_magic.kernels.polynomial import Polynomial
from optiml_magic.kernels.symbols import Symbols

_ONE = Polynomial.constant(1)


@dataclass(frozen=True)
class _Digit:
    """``item / weight % count``; without a count it is all that is left above."""

    weight: Polynomial
    count: Polynomial | None


def numbered(form: Polynomial, item: Polynomial, stop: Polynomial, symbols: Symbols) -> bool:
    """Whether no two items below ``stop`` share the element that a form says."""
    digits = _digits(form, item, stop, symbols)
    if digits is None or _whole(digits, stop) is None:
        return False
    turned = {by: digit for digit, by in digits.items()}
    return _chained(turned, len(digits)) is not None


def room(
    one: Polynomial, other: Polynomial, item: Polynomial, stop: Polynomial, symbols: Symbols
) -> Polynomial | None:
    """What must not be negative, so that no two items below ``stop`` share elements of two forms.

    These are as many values of the first digit apart as a number says.
    """
    digits = _digits(one, item, stop, symbols)
    ordered = _whole(digits, stop) if digits is not None else None
    if digits is None or ordered is None or len(ordered) < 2 or digits[ordered[0]] != _ONE:
        return None
    for lower, upper in pairwise(ordered[1:]):
        if digits[upper] != digits[lower] * (lower.count or _ONE):
            return None
    values = ordered[0].count
    apart = (other - one).over(values) if values is not None else None
    if values is None or apart is None or (apart.terms and apart.value is None):
        return None
    return digits[ordered[1]] - values * Polynomial.constant(abs(apart.number) + 1)


def _digits(
    form: Polynomial, item: Polynomial, stop: Polynomial, symbols: Symbols
) -> dict[_Digit, Polynomial] | None:
    """The digits of an item in a form with their factors; None where there is more of it."""
    digits: dict[_Digit, Polynomial] = {}
    for name in form.symbols:
        if not symbols.inside(Polynomial.symbol(name)) & item.symbols:
            continue
        digit, by = _digit(Polynomial.symbol(name), item, symbols), form.coefficient(name)
        if digit is None or by is None or symbols.inside(by) & item.symbols or digit in digits:
            return None
        if digit.count is None:
            digit = _Digit(digit.weight, stop.over(digit.weight))
        digits[digit] = by
    return digits


def _whole(digits: dict[_Digit, Polynomial], stop: Polynomial) -> list[_Digit] | None:
    """The digits from the first on, where they are all of an item below ``stop``; else None."""
    last = _chained({d.weight: d for d in digits}, len(digits))
    if last is None or (last.count is not None and last.weight * last.count != stop):
        return None
    ordered, left = list[_Digit](), {d.weight: d for d in digits}
    at = _ONE
    while left:
        ordered.append(left.pop(at))
        at = at * (ordered[-1].count or _ONE)
    return ordered


def _digit(form: Polynomial, item: Polynomial, symbols: Symbols) -> _Digit | None:
    """What a form is of an item; None for what is not a digit of it."""
    if form == item:
        return _Digit(_ONE, None)
    symbol = symbols.table.get(next(iter(form.symbols), ""))
    if symbol is None or form != Polynomial.symbol(symbol.name) or symbol.op not in ("/", "%"):
        return None
    of, by = symbol.arguments
    inner = _digit(of, item, symbols)
    if inner is None or len(by.terms) != 1 or symbols.inside(by) & item.symbols:
        return None
    if symbol.op == "%":
        left = inner.count.over(by) if inner.count is not None else _ONE
        return _Digit(inner.weight, by) if left is not None else None
    rest = inner.count.over(by) if inner.count is not None else None
    if inner.count is not None and rest is None:
        return None
    return _Digit(inner.weight * by, rest)


def _chained(digits: dict[Polynomial, _Digit], count: int) -> _Digit | None:
    """The last digit where each key is how many values those before it have; else None."""
    at, found = _ONE, None
    for left in range(count, 0, -1):
        found = digits.get(at)
        if found is None or (found.count is None and left > 1):
            return None
        at = at * (found.count or _ONE)
    return found
