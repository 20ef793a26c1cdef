"""One form for what several stores bring to parts of a tile, each for its own part alone.

A tile with a halo is filled in parts: ``a[i]`` in the middle, ``a[max(i - 3, 0)]`` on the left,
``a[min(i + 3, n - 1)]`` on the right. Said of the element that is read, these are three forms of
one place ``g``: ``g``, ``max(g, 0)`` and ``min(g, n - 1)``. Where no part but one has a border,
its form is that of all; otherwise one stands in the place of ``g`` in another one,
``max(min(g, n - 1), 0)``. What comes out is settled under what holds for each part, and has to be
what that part brought.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice

from optiml_magic.kernels.operations import Operations
from optiml_magic.kernels.polynomial import Polynomial
from optiml_magic.kernels.symbols import THREADS, Compare, Condition, Symbol, Symbols

_ONE = Polynomial.constant(1)
_MOST = 64  # forms that are tried for a part: ours
_Given = tuple[Condition, ...]


@dataclass(frozen=True)
class Part:
    """``form`` is what a part brings; ``proves`` says whether a condition holds all over it.

    It is given what holds besides.
    """

    form: Polynomial
    proves: Callable[[Condition, _Given], bool]


def put(form: Polynomial, instead: Mapping[str, Polynomial]) -> Polynomial:
    """A form with others in the place of its symbols."""
    total = Polynomial()
    for monomial, factor in form.terms:
        product = Polynomial.constant(factor)
        for name in monomial:
            product = product * instead.get(name, Polynomial.symbol(name))
        total = total + product
    return total


def agreed(symbols: Symbols, parts: Sequence[Part], first: Part) -> Mapping[str, Polynomial] | None:
    """What stands for symbols of the form of ``first`` where it is to be that of all parts."""
    joining = _Joining(symbols)
    found: Mapping[str, Polynomial] = joining.common(first.form)
    done = [first]
    for part in parts:
        done.append(part)
        tried = (found, *islice(joining.grafted(found, part.form), _MOST))
        for new in tried:
            form = put(first.form, new)
            if all(joining.agree(form, one) for one in reversed(done)):
                found = new
                break
        else:
            return None
    return {name: form for name, form in found.items() if form != Polynomial.symbol(name)}


class _Joining:
    """Borders are choices, extremes, absolute values and rests: of a place, where it is inside."""

    def __init__(self, symbols: Symbols) -> None:
        self.symbols = symbols
        self.operations = Operations(symbols)

    def agree(self, form: Polynomial, part: Part) -> bool:
        """Whether a form certainly is what a part brings."""
        return self._settled(form, part) == self._settled(part.form, part)

    def common(self, form: Polynomial) -> dict[str, Polynomial]:
        """What the borders in a form are with what is added on both of their ways beside them."""
        return {name: self._common(name) for name in form.symbols}

    def _common(self, name: str) -> Polynomial:
        """An extreme of two sums, or a choice that is one, as that of what they do not share."""
        symbol, plain = self._border(name), Polynomial.symbol(name)
        if symbol is None or symbol.op not in ("select", "min", "max"):
            return plain
        one, other = symbol.arguments
        both = Polynomial.of({m: c for m, c in one.terms if dict(other.terms).get(m) == c})
        made = self._made(symbol, (one - both, other - both))
        return both + made if all(self.symbols[n].op != "select" for n in made.symbols) else plain

    def grafted(
        self, found: Mapping[str, Polynomial], other: Polynomial
    ) -> Iterator[Mapping[str, Polynomial]]:
        """What is found, with a border of ``other`` in the place of what that is a border of."""
        for twig in self._borders(put(other, self.common(other))):
            for plain in twig.arguments:
                for name, form in found.items():
                    for new in self._graft(form, plain, Polynomial.symbol(twig.name)):
                        yield {**found, name: new}

    def _border(self, name: str) -> Symbol | None:
        symbol = self.symbols.table.get(name)
        if symbol is None or (symbol.kind == "select" and symbol.condition is not None):
            return symbol
        known = symbol.kind == "operation" and symbol.op in ("min", "max", "abs", "%")
        return symbol if known else None

    def _borders(self, form: Polynomial) -> Iterator[Symbol]:
        """The borders in a form, and those in these."""
        for name in sorted(form.symbols):
            symbol = self._border(name)
            if symbol is not None:
                yield symbol
                for argument in symbol.arguments:
                    yield from self._borders(argument)

    def _graft(self, form: Polynomial, plain: Polynomial, twig: Polynomial) -> Iterator[Polynomial]:
        for host in self._borders(form):
            if Polynomial.symbol(host.name) == twig or host.op == "%":
                continue
            for at, argument in enumerate(host.arguments):
                apart = argument - plain
                if not any(map(self._moves, apart.symbols)):
                    given = (*host.arguments[:at], twig + apart, *host.arguments[at + 1 :])
                    yield self._exchanged(form, host.name, self._made(host, given))

    def _moves(self, name: str) -> bool:
        """Whether a symbol is the place of a thread, or a round."""
        return name in THREADS or self.symbols[name].kind in ("counter", "select", "operation")

    def _exchanged(self, form: Polynomial, old: str, new: Polynomial) -> Polynomial:
        """A form with another in the place of a border, however deep it stands."""
        instead = {old: new}
        for name in form.symbols - {old}:
            symbol = self._border(name)
            if symbol is not None:
                given = tuple(self._exchanged(a, old, new) for a in symbol.arguments)
                instead[name] = self._made(symbol, given)
        return put(form, instead)

    def _made(self, symbol: Symbol, given: tuple[Polynomial, ...]) -> Polynomial:
        """A border of other arguments."""
        if given == symbol.arguments:
            return Polynomial.symbol(symbol.name)
        if symbol.kind == "select" and symbol.condition is not None:
            return self.operations.select(symbol.condition, *given)
        if symbol.op in ("min", "max"):
            return self.operations.extreme(symbol.op, given[0], given[1], ())
        return self.operations.operation(symbol.op, given, symbol.low)

    def _settled(self, form: Polynomial, part: Part, held: _Given = ()) -> Polynomial:
        """A form without the borders that nothing of a part is beyond, or all of it."""
        return put(form, {name: self._inside(name, part, held) for name in form.symbols})

    def _inside(self, name: str, part: Part, held: _Given) -> Polynomial:
        symbol = self._border(name)
        if symbol is None:
            return Polynomial.symbol(name)
        if symbol.kind == "select" and symbol.condition is not None:
            tests = (symbol.condition, ~symbol.condition)
            ways = list[Polynomial]()
            for way, test in zip(symbol.arguments, tests, strict=True):
                ways.append(self._settled(way, part, (*held, test)))
                if part.proves(test, held):
                    return ways[-1]
            return self._made(symbol, tuple(ways))
        given = tuple(self._settled(argument, part, held) for argument in symbol.arguments)
        if symbol.op in ("min", "max"):
            apart = given[0] - given[1] if symbol.op == "max" else given[1] - given[0]
            for way, side in zip(given, (apart, -apart), strict=True):
                if self._above(side, part, held):
                    return way
        elif symbol.op == "abs":
            for side in (given[0], -given[0]):
                if self._above(side, part, held):
                    return side
        elif self._above(given[1] - _ONE, part, held):
            return self._rest(given[0], given[1], part, held)
        made = self._made(symbol, given)
        return put(made, self.common(made))

    def _rest(self, whole: Polynomial, size: Polynomial, part: Part, held: _Given) -> Polynomial:
        """A remainder, which is none of less than the divisor, or of that and less than it."""
        for rest in (whole, whole - size):
            if self._above(rest, part, held) and self._above(size - _ONE - rest, part, held):
                return rest
        shared = {m for m, _ in size.terms} & {m for m, _ in whole.terms}
        less = shared and self._above(whole - size, part, held)
        return self.operations.operation("%", (whole - size if less else whole, size))

    def _above(self, form: Polynomial, part: Part, held: _Given) -> bool:
        """Whether a form certainly is not negative."""
        if form.value is not None:
            return form.value >= 0
        if part.proves(Compare(">=", form, self.symbols.depends(form)), held):
            return True
        for name in sorted(form.symbols):
            symbol, by = self.symbols.table.get(name), form.coefficient(name)
            factor = by.value if by is not None else None
            if symbol is None or by is None or not factor:
                continue
            if symbol.op == ("min" if factor > 0 else "max"):
                rest = form.without([name])
                return all(self._above(rest + by * one, part, held) for one in symbol.arguments)
        return False
