"""Sums of indices and sizes as C++: floor quotients become divisions where nothing is negative."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from optiml_magic.kernels.expressions import Expr
from optiml_magic.kernels.polynomial import Polynomial
from optiml_magic.synthesis.lowering import spelling as c
from optiml_magic.synthesis.sizes import Extents, Quotient, constant, substituted, symbols_of

Ranges = Mapping[str, Polynomial]  # the extents of indices, by their names
Divided = Callable[[Quotient], Expr]


def spelled(expression: Polynomial, divided: Divided) -> Expr:
    """The sum; ``divided`` spells a quotient."""
    terms = sorted(expression.terms, key=lambda term: (term[1] < 0, not term[0], term[0]))
    total: Expr | None = None
    for monomial, factor in terms:
        size = abs(factor)
        parts = [divided(s) if isinstance(s, Quotient) else c.name(s) for s in monomial]
        if size != 1 or not parts:
            parts.insert(0, c.integer(size))
        product = parts[0]
        for part in parts[1:]:
            product = c.binary("*", product, part)
        if total is None:
            total = product if factor > 0 else c.integer(-size) if not monomial else None
            if total is None:
                total = c.unary("-", product)
        else:
            total = c.binary("+" if factor > 0 else "-", total, product)
    return c.integer(0) if total is None else total


def not_negative(expression: Polynomial, ranges: Ranges) -> bool:
    """Whether it is at least 0 for sure: indices within their extents, sizes from 1 on."""
    least = expression
    for symbol in sorted(symbols_of(expression) & ranges.keys()):
        if any(isinstance(s, Quotient) and symbol in symbols_of(_one(s)) for s in least.symbols):
            continue
        factor = least.coefficient(symbol)
        if factor is None:
            return False
        if factor.terms and all(count < 0 for _, count in factor.terms):
            end = ranges[symbol] - constant(1)
            least = least.without((symbol,)) + factor * end
        elif all(count > 0 for _, count in factor.terms):
            least = least.without((symbol,))
        else:
            return False
    for symbol in least.symbols:
        if isinstance(symbol, Quotient) and not (
            not_negative(symbol.dividend, ranges) and not_negative(symbol.divisor, ranges)
        ):
            return False
    moved = substituted(
        least,
        {
            s: Polynomial.symbol(s) + constant(1)
            for s in least.symbols
            if not isinstance(s, Quotient)
        },
    )
    return all(count >= 0 for _, count in moved.terms)


def _one(symbol: str) -> Polynomial:
    return Polynomial.of({(symbol,): 1})


def linear(at: tuple[Polynomial, ...], shape: Extents) -> Polynomial:
    """The place in memory of an element, rows first."""
    total = constant(0)
    for place, extent in zip(at, shape, strict=True):
        total = total * extent + place
    return total


def digits(flat: Polynomial, shape: Extents) -> tuple[Polynomial, ...]:
    """The index of the element that lies at a place in memory; the first digit is not bounded."""
    from optiml_magic.synthesis.sizes import quotient

    found: list[Polynomial] = []
    for extent in reversed(shape[1:]):
        rest = quotient(flat, extent)
        found.append(flat - extent * rest)
        flat = rest
    return (flat, *reversed(found))[: len(shape)] if shape else ()


def product(extents: Extents) -> Polynomial:
    total = constant(1)
    for extent in extents:
        total = total * extent
    return total
