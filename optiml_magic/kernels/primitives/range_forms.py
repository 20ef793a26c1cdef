"""Sums of sizes between which a number is: what is certain of them, and their words.

The symbols of a form are words of a launch, none of which is negative.
"""

from __future__ import annotations

from typing import NamedTuple

from optiml_magic.kernels.polynomial import Polynomial
from optiml_magic.kernels.types import INT, CType

ONE, NONE = Polynomial.constant(1), Polynomial()


class Range(NamedTuple):
    """What a number is at least and at most."""

    low: Polynomial
    high: Polynomial


def plain(form: Polynomial) -> bool:
    """Whether no part of a form is taken away."""
    return all(factor > 0 for _, factor in form.terms)


def same_as(form: Polynomial) -> Range:
    return Range(form, form)


def either(one: Range, other: Range) -> Range:
    return Range(least(one.low, other.low), most(one.high, other.high))


def by_type(kind: CType) -> Range | None:
    """What a type alone says; nothing of those that have more than 31 bits and a sign."""
    if kind.kind == "bool":
        return Range(NONE, ONE)
    bits = 8 * (kind.size or 8) - kind.signed
    if bits > INT.size * 8 - 1 if INT.size else True:
        return None
    high = Polynomial.constant((1 << bits) - 1)
    return Range(-high - ONE if kind.signed else NONE, high)


def symbol(words: str) -> Polynomial:
    return Polynomial.symbol(words if words.isidentifier() else f"({words})")


def upper(form: Polynomial) -> Polynomial:
    """A form without what it takes away: no less than it, and never negative."""
    return Polynomial(tuple([one for one in form.terms if one[1] > 0]))


def least(one: Polynomial, other: Polynomial) -> Polynomial:
    if plain(other - one):
        return one
    return other if plain(one - other) else -(upper(-one) + upper(-other))


def most(one: Polynomial, other: Polynomial) -> Polynomial:
    return -least(-one, -other)


def product(one: Range, other: Range) -> Range:
    for factor, by in ((one, other), (other, one)):
        if by.low == by.high and (plain(by.low) or plain(-by.low)):
            ends = factor.low * by.low, factor.high * by.low
            return Range(*ends) if plain(by.low) else Range(ends[1], ends[0])
    if plain(one.low) and plain(other.low):
        return Range(one.low * other.low, one.high * other.high)
    below, above = upper(-one.low), upper(one.high)
    beneath, beyond = upper(-other.low), upper(other.high)
    return Range(-(below * beyond + above * beneath), above * beyond + below * beneath)


def quotient(form: Polynomial, by: Polynomial, words: str) -> Polynomial:
    """A form of such words, which are not negative, over one that is 1 at least."""
    if form.value is not None and by.value:
        return Polynomial.constant(max(0, form.value) // by.value)
    if by == ONE and plain(form):
        return form
    divisor = str(by.value) if by.value else f"max({words_of(by)}, 1)"
    return symbol(f"({words}) / {divisor}")


def words_of(form: Polynomial) -> str:
    """A form as a directive says it, what it takes away behind the rest."""
    parts = list[str]()
    for monomial, factor in sorted(form.terms, key=lambda one: one[1] < 0):
        names = " * ".join(monomial)
        size = abs(factor)
        words = names if size == 1 and names else f"{size} * {names}" if names else str(size)
        sign = ("- " if factor < 0 else "+ ") if parts else ("-" if factor < 0 else "")
        parts.append(f"{sign}{words}")
    return " ".join(parts) or "0"
