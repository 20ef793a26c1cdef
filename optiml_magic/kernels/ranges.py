"""Whether a form cannot be negative where some conditions hold.

A form is a sum of products; it is proved by taking away facts that are not negative until all that
is left has no negative coefficient over symbols that are not. What is not proved is not known.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache

from optiml_magic.kernels.polynomial import Monomial, Polynomial
from optiml_magic.kernels.symbols import Compare, Condition, Symbol, Symbols

_Taken = tuple[Polynomial, frozenset[str], bool]  # a fact, what it takes away, a number too
_DEEPEST = 4
_MOST_FACTS = 40
_MOST_STEPS = 200
_MANY = 100  # symbols, beyond which to compare them takes longer than to prove anew
_SHIFTS = 31
_FAR = 2**30  # a bound beyond says nothing of a kernel's sizes
_ONE = Polynomial.constant(1)


def holds(form: Polynomial, given: Iterable[Condition], symbols: Symbols) -> bool:
    """Whether ``form >= 0`` is certain where all of ``given`` hold."""
    return Ranges(given, symbols).nonnegative(form)


class Ranges:
    """The facts of one place; where scalars are ``sizes``, none of them is negative."""

    def __init__(
        self, given: Iterable[Condition], symbols: Symbols, *, sizes: bool = False
    ) -> None:
        self._symbols = symbols
        self._sizes = sizes
        self._seen, self._low = 0, set[str]()  # of so many facts, what they say alone
        self._taken: list[_Taken] = []
        compares = [
            c for condition in given for c in condition.conjuncts() if isinstance(c, Compare)
        ]
        self.facts = [c.form for c in compares if c.op == ">="]
        for c in compares:
            if c.op == "==":
                self.facts += [c.form, -c.form]
        self._sharpen([c.form for c in compares if c.op == "!="])
        self.facts += [fact for form in self.facts if (fact := self._whole(form))]

    def _whole(self, fact: Polynomial) -> Polynomial | None:
        """What a quotient above 0 says of the number that it is of: it is the divisor at least."""
        if not any(factor < 0 for monomial, factor in fact.terms if not monomial):
            return None
        symbol = self._symbols.table.get(self._least_of(fact))
        if symbol is None or symbol.op != "/" or (symbol.arguments[1].value or 0) <= 0:
            return None
        return symbol.arguments[0] - symbol.arguments[1]

    def _sharpen(self, different: list[Polynomial]) -> None:
        """``x != 0`` makes one of ``x >= 0``: what borders exclude."""
        for form in different:
            for side in (form, -form):
                if self.nonnegative(side):
                    self.facts.append(side - _ONE)

    def nonnegative(self, form: Polynomial) -> bool:
        self._left = _MOST_STEPS
        if self._prove(form, 1):  # most often one fact is enough
            return True
        asked = (*self.facts, form), self._sizes
        known = self._symbols.proved.get(asked)
        if known is None:
            under = self._symbols.under(asked[0], _MANY)
            known = self.certain(form) if under is None else _certain(*asked, under)
            self._symbols.proved[asked] = known
        return known

    def certain(self, form: Polynomial) -> bool:
        """The same with nothing remembered."""
        return self._deeply(form) or self._each(form)

    def _deeply(self, form: Polynomial) -> bool:
        for depth in (2, _DEEPEST):  # seldom the first facts are the ones
            self._left = _MOST_STEPS
            if self._prove(form, depth):
                return True
        return False

    def _each(self, form: Polynomial) -> bool:
        """Whether a form holds for each of the numbers that one in it is the least or greatest of.

        Of ``min(a, b)`` where it is added, of ``max(a, b)`` where it is taken away; of a quotient
        it holds where it does of the number that is divided.
        """
        for name in sorted(form.symbols):
            symbol, by = self._symbols[name], form.coefficient(name)
            factor = by.value if by is not None else None
            if by is not None and factor and symbol.op == ("min" if factor > 0 else "max"):
                rest = form.without([name])
                return all(self.nonnegative(rest + by * one) for one in symbol.arguments)
            if factor in (1, -1) and (divisor := _divisor(symbol)):
                return self._quotient(form.without([name]), symbol, divisor, above=factor > 0)
        return False

    def _quotient(self, rest: Polynomial, of: Symbol, divisor: int, *, above: bool) -> bool:
        """Whether ``rest + x / divisor``, or ``rest - x / divisor``, is not negative.

        ``>>`` rounds down and ``/`` towards 0, which is the same where it is above.
        """
        number, much = of.arguments[0], rest * Polynomial.constant(divisor)
        if above:
            return self.nonnegative(number + much)
        most = much + Polynomial.constant(divisor - 1)
        return self.nonnegative(most - number) and (of.op == ">>" or self.nonnegative(rest))

    def within(self, form: Polynomial, extent: Polynomial) -> bool:
        """Whether ``0 <= form < extent``."""
        return self.nonnegative(form) and self.nonnegative(extent - form - _ONE)

    def bounded(self, form: Polynomial) -> bool:
        """Whether a form is not negative, and below something that does not move."""
        return self.nonnegative(form) and (
            self._still(form) or any(self._still(form + fact) for fact in self.facts)
        )

    def _still(self, form: Polynomial) -> bool:
        """Whether a form is made of sizes, and of symbols that grow no further than a number."""
        symbols = [(self._symbols[n], f) for m, f in form.terms for n in m]
        return all(
            symbol.kind == "scalar" or (f < 0 and symbol.low is not None)
            or (symbol.high is not None and symbol.high < _FAR)
            for symbol, f in symbols
        )  # fmt: skip

    def _prove(self, form: Polynomial, depth: int) -> bool:
        form = self._least(form)
        if self._plainly(form):
            return True
        self._left -= 1
        if depth == 0 or self._left <= 0:
            return False
        negative = {name for monomial, factor in form.terms if factor < 0 for name in monomial}
        constant = any(factor < 0 and not monomial for monomial, factor in form.terms)
        for fact, names, lone in [*self._facts_taken(), *map(_taken, self._own(form))]:
            if negative.isdisjoint(names) and not (constant and lone):
                continue
            for factor in self._factors(form, fact):
                rest = form - fact * factor
                if len(rest.terms) <= len(form.terms) + 1 and self._prove(rest, depth - 1):
                    return True
        return False

    def _facts_taken(self) -> list[_Taken]:
        if len(self._taken) != min(len(self.facts), _MOST_FACTS):
            self._taken = [*map(_taken, self.facts[:_MOST_FACTS])]
        return self._taken

    def _factors(self, form: Polynomial, fact: Polynomial) -> list[Polynomial]:
        """What to multiply a fact with, so that it takes a negative term away."""
        found: dict[Polynomial, None] = {}
        for monomial, factor in form.terms:
            if factor >= 0:
                continue
            for own, times in fact.terms:
                rest = _over(monomial, own)
                if times < 0 and rest is not None and (factor % times == 0 or not monomial):
                    by = Polynomial.of({rest: -(factor // -times)})  # of numbers at least as much
                    if self._plainly(by):
                        found[by] = None
        return list(found)

    def _least(self, form: Polynomial) -> Polynomial:
        """Symbols with a negative coefficient at their greatest value, where it is a number."""
        changed = form
        for monomial, factor in form.terms:
            if factor < 0 and len(monomial) == 1:
                high = self._symbols[monomial[0]].high
                bounded = high is not None and high < _FAR
                if bounded and not any(monomial[0] in f.symbols for f in self.facts):
                    assert high is not None
                    changed = changed + Polynomial.of({monomial: -factor, (): factor * high})
        return changed

    def _plainly(self, form: Polynomial) -> bool:
        """No negative coefficient over symbols that are not negative; lows count in."""
        lowest = 0
        for monomial, factor in form.terms:
            if not monomial:
                lowest += factor
                continue
            low = 1
            for name in monomial:
                bound = self._bound(name)
                if bound is None or bound < 0:
                    if self._even(monomial, name):
                        bound = 0
                    elif not self._fact_low(name):
                        return False
                    else:
                        bound = 0
                low *= bound
            if factor < 0:
                return False
            lowest += factor * low
        return lowest >= 0

    def _bound(self, name: str) -> int | None:
        """What a symbol is at least, by itself."""
        symbol = self._symbols[name]
        if symbol.low is not None or not self._sizes:
            return symbol.low
        made = symbol.op in ("/", ">>") or symbol.kind == "select"
        at_least = symbol.kind == "scalar" or (made and all(map(self._plainly, symbol.arguments)))
        return 0 if at_least else None

    @staticmethod
    def _even(monomial: Monomial, name: str) -> bool:
        return monomial.count(name) % 2 == 0

    def _fact_low(self, name: str) -> bool:
        """Whether one fact says of a symbol that it is not negative."""
        if self._seen != len(self.facts):
            self._seen = len(self.facts)
            self._low = {low for fact in self.facts if (low := self._least_of(fact))}
        return name in self._low

    def _least_of(self, fact: Polynomial) -> str:
        """The symbol that a fact sets above what is not negative, ``n > 2 * k``; else empty."""
        above = ""
        for monomial, factor in fact.terms:
            if not monomial:
                if factor > 0:
                    return ""
            elif factor > 0:
                if above or len(monomial) > 1:
                    return ""
                above = monomial[0]
            elif any((low := self._bound(name)) is None or low < 0 for name in monomial):
                return ""
        return above

    def _own(self, form: Polynomial) -> list[Polynomial]:
        """What holds of the symbols of a form by construction: ``threadIdx.x < blockDim.x``."""
        found = []
        names = form.symbols
        for name in names:
            for low, high in (("threadIdx", "blockDim"), ("blockIdx", "gridDim")):
                if name.startswith(low) and (bound := f"{high}{name[-2:]}") in names:
                    found.append(Polynomial.symbol(bound) - Polynomial.symbol(name) - _ONE)
            symbol = self._symbols[name]
            if symbol.high is not None and symbol.high < _FAR:
                found.append(Polynomial.constant(symbol.high) - Polynomial.symbol(name))
            if symbol.kind == "operation" and symbol.op == "%" and self._positive(symbol.arguments):
                found.append(symbol.arguments[1] - Polynomial.symbol(name) - _ONE)
            if symbol.op == "min":
                found += [argument - Polynomial.symbol(name) for argument in symbol.arguments]
            if symbol.op == "max":
                found += [Polynomial.symbol(name) - argument for argument in symbol.arguments]
            if symbol.op == "/" and self._positive(symbol.arguments):
                found.append(symbol.arguments[0] - symbol.arguments[1] * Polynomial.symbol(name))
            if symbol.op == ">>" and (divisor := _divisor(symbol)):
                times = Polynomial.constant(divisor)
                found.append(symbol.arguments[0] - times * Polynomial.symbol(name))
        return found

    def _positive(self, arguments: tuple[Polynomial, ...]) -> bool:
        """Whether a quotient of these rounds down: neither is negative."""
        return self._plainly(arguments[0]) and self._plainly(arguments[1])


@lru_cache(maxsize=1 << 14)
def _certain(
    forms: tuple[Polynomial, ...], sizes: bool, symbols: frozenset[Symbol]
) -> bool:  # fmt: skip
    """Whether the last form is certain by those before: a kernel's many shapes all ask for it."""
    table = Symbols()
    table.table |= {symbol.name: symbol for symbol in symbols}
    ranges = Ranges((), table, sizes=sizes)
    ranges.facts += forms[:-1]
    return ranges.certain(forms[-1])


def _taken(fact: Polynomial) -> _Taken:
    negative = [monomial for monomial, factor in fact.terms if factor < 0]
    return fact, frozenset(name for monomial in negative for name in monomial), () in negative


def _divisor(symbol: Symbol) -> int:
    """What a quotient divides by, where that is a number; else 0."""
    by = symbol.arguments[1].value if symbol.op in ("/", ">>") else None
    if by is None or not 0 <= by < (_SHIFTS if symbol.op == ">>" else _FAR):
        return 0
    return by if symbol.op == "/" else 1 << by


def _over(monomial: Monomial, own: Monomial) -> Monomial | None:
    """``monomial`` over ``own``; None where it is not a multiple."""
    rest = list(monomial)
    for name in own:
        if name not in rest:
            return None
        rest.remove(name)
    return tuple(rest)
