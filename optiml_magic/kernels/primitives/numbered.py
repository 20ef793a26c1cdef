"""Elements that are an item's own because its digits, in another order, number them.

``i % c``, ``i / c % b`` and ``i / (c * b)`` are all of ``i``; a sum of them in which each has as
its factor how many values those before it have together is another number for each item.
"""

from __future__ import annotations

from dataclasses import dataclass

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
    digits: dict[_Digit, Polynomial] = {}
    for name in form.symbols:
        if not symbols.inside(Polynomial.symbol(name)) & item.symbols:
            continue
        digit, by = _digit(Polynomial.symbol(name), item, symbols), form.coefficient(name)
        if digit is None or by is None or symbols.inside(by) & item.symbols or digit in digits:
            return False
        if digit.count is None:
            digit = _Digit(digit.weight, stop.over(digit.weight))
        digits[digit] = by
    whole = _chained({d.weight: d for d in digits}, len(digits))
    if whole is None or (whole.count is not None and whole.weight * whole.count != stop):
        return False
    turned = {by: digit for digit, by in digits.items()}
    last = _chained(turned, len(digits))
    return last is not None


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
