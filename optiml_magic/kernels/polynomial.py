"""Index expressions as polynomials with integer coefficients over named symbols."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

Monomial = tuple[str, ...]  # sorted symbols, repeated for powers; () is the constant term


@dataclass(frozen=True)
class Polynomial:
    """A sum of ``coefficient * symbol * symbol ...``; equal sums compare equal."""

    terms: tuple[tuple[Monomial, int], ...] = ()

    @staticmethod
    def of(terms: Mapping[Monomial, int]) -> Polynomial:
        return Polynomial(tuple(sorted([one for one in terms.items() if one[1]])))

    @staticmethod
    def constant(value: int) -> Polynomial:
        return Polynomial((((), value),) if value else ())

    @staticmethod
    def symbol(name: str) -> Polynomial:
        return Polynomial((((name,), 1),))

    def __add__(self, other: Polynomial) -> Polynomial:
        terms = dict(self.terms)
        for monomial, factor in other.terms:
            terms[monomial] = terms.get(monomial, 0) + factor
        return Polynomial.of(terms)

    def __neg__(self) -> Polynomial:
        return Polynomial(tuple([(m, -c) for m, c in self.terms]))

    def __sub__(self, other: Polynomial) -> Polynomial:
        return self + -other

    def __mul__(self, other: Polynomial) -> Polynomial:
        terms: dict[Monomial, int] = {}
        for left, a in self.terms:
            for right, b in other.terms:
                monomial = tuple(sorted(left + right))
                terms[monomial] = terms.get(monomial, 0) + a * b
        return Polynomial.of(terms)

    def __str__(self) -> str:
        if not self.terms:
            return "0"
        written = []
        for monomial, factor in self.terms:
            names = "*".join(monomial)
            if not names:
                written.append(str(factor))
            else:
                written.append(names if factor == 1 else f"{factor}*{names}")
        return " + ".join(written).replace("+ -", "- ")

    @property
    def symbols(self) -> frozenset[str]:
        return frozenset(name for monomial, _ in self.terms for name in monomial)

    @property
    def value(self) -> int | None:
        """The integer this is, or None when it holds a symbol."""
        if not self.terms:
            return 0
        return self.terms[0][1] if len(self.terms) == 1 and self.terms[0][0] == () else None

    @property
    def number(self) -> int:
        """The number that is added to all else."""
        return dict(self.terms).get((), 0)

    def coefficient(self, symbol: str) -> Polynomial | None:
        """What multiplies ``symbol``; None where it is not linear in it."""
        terms: dict[Monomial, int] = {}
        for monomial, factor in self.terms:
            if monomial.count(symbol) > 1:
                return None
            if symbol in monomial:
                rest = list(monomial)
                rest.remove(symbol)
                terms[tuple(rest)] = factor
        return Polynomial.of(terms)

    def divided(self, by: int) -> Polynomial | None:
        """This over an integer that divides every coefficient; None where one is left over."""
        if any(factor % by for _, factor in self.terms):
            return None
        return Polynomial(tuple((m, factor // by) for m, factor in self.terms))

    def over(self, by: Polynomial) -> Polynomial | None:
        """This over another that divides it, as by hand; None where something is left over."""
        if not by.terms:
            return None
        (lead, factor), left, found = max(by.terms, key=_degree), self, Polynomial()
        while left.terms:
            monomial, times = max(left.terms, key=_degree)
            rest = list(monomial)
            inside = all(name in rest and not rest.remove(name) for name in lead)  # type: ignore[func-returns-value]
            if not inside or times % factor:
                return None
            part = Polynomial(((tuple(rest), times // factor),))
            left, found = left - part * by, found + part
        return found

    def without(self, symbols: Iterable[str]) -> Polynomial:
        """The terms that hold none of ``symbols``."""
        dropped = frozenset(symbols)
        return Polynomial(tuple([one for one in self.terms if not dropped.intersection(one[0])]))


def _degree(term: tuple[Monomial, int]) -> tuple[int, Monomial]:
    return len(term[0]), term[0]
