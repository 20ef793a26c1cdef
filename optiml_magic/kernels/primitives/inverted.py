"""Which thread had an element: forms over the place of its writer, said over that of its reader.

The index of a store is a sum of the writer's place; set equal to the reader's index, it is solved
for parts of that place. Nobody need say who the writer was where these take all of it away.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace

from optiml_magic.kernels.operations import Operations
from optiml_magic.kernels.polynomial import Polynomial
from optiml_magic.kernels.primitives.base import NotLegal
from optiml_magic.kernels.primitives.domains import Domain
from optiml_magic.kernels.symbols import (
    THREADS,
    Always,
    Compare,
    Condition,
    Every,
    Some,
    Symbols,
)
from optiml_magic.kernels.types import INT

_MARK = "~"
_DEEPEST = 8


@dataclass(eq=False)
class Inverse:
    """``path`` is what holds where the reader is; ``own`` are counters of the writer's loops."""

    symbols: Symbols
    path: Sequence[Condition]
    own: frozenset[str]
    known: dict[str, tuple[int, Polynomial]] = field(default_factory=dict)

    @staticmethod
    def of(
        symbols: Symbols,
        path: Sequence[Condition],
        own: Collection[str],
        writer: Sequence[Polynomial],
        reader: Sequence[Polynomial],
        there: Domain,
        *,
        digits: bool,
    ) -> Inverse:
        """What makes the two indices equal; ``there`` is where the writer may be.

        With ``digits`` an index is cut into the parts of the writer's place that it is made of.
        """
        found = Inverse(symbols, path, frozenset(own))
        pairs = [*zip(writer, reader, strict=True)]
        for one, other in pairs:
            found._solve(one, other, there, digits=digits)
        found._pin(pairs, there)
        return found

    def form(self, form: Polynomial) -> Polynomial:
        """A writer's form as the reader says it; raises NotLegal where it cannot."""
        made = self._replaced(self._marked(form))
        if any(name.startswith(_MARK) for name in made.symbols):
            raise NotLegal("which thread brought an element is not certain")
        return made

    def condition(self, condition: Condition) -> Condition:
        match condition:
            case Always():
                return condition
            case Compare(op=op, form=form):
                new = self.form(form)
                return Compare(op, new, self.symbols.depends(new))
            case Every(parts=parts):
                return Every(tuple(self.condition(part) for part in parts))
            case Some(parts=parts):
                return Some(tuple(self.condition(part) for part in parts))
        raise NotLegal("whether an element is brought depends on what is not followed")

    def _marked(self, form: Polynomial) -> Polynomial:
        moving = {name for name in form.symbols if self._moves(name)}
        terms: dict[tuple[str, ...], int] = {}
        for monomial, factor in form.terms:
            names = tuple(sorted(_MARK + n if n in moving else n for n in monomial))
            terms[names] = terms.get(names, 0) + factor
        return Polynomial.of(terms)

    def _moves(self, name: str) -> bool:
        inside = self.symbols.inside(Polynomial.symbol(name))
        return bool(inside & (THREADS | self.own))

    def _solve(
        self, writer: Polynomial, reader: Polynomial, there: Domain, *, digits: bool
    ) -> None:
        """One index: the part of the writer's place that counts by one, or all of its parts."""
        left = self._replaced(self._marked(writer))
        parts = {m[0]: c for m, c in left.terms if len(m) == 1 and m[0].startswith(_MARK)}
        moving = {n for n in left.symbols if n.startswith(_MARK)}
        if not parts or moving != parts.keys():
            return
        if digits:
            self._split(left, parts, reader, there)
            return
        name = min(parts, key=lambda n: (abs(parts[n]), "threadIdx.x" not in n, n))
        by = parts[name]
        rest = reader - left.without([name])
        self.known[name] = (abs(by), rest if by > 0 else -rest)

    def _split(
        self, left: Polynomial, parts: dict[str, int], reader: Polynomial, there: Domain
    ) -> None:
        """Digits of one number, where each is below what the next one counts by."""
        order = sorted(parts, key=lambda n: -parts[n])
        rest, operations = reader - left.without(parts), Operations(self.symbols)
        made: dict[str, tuple[int, Polynomial]] = {}
        for at, name in enumerate(order):
            lower = Polynomial.of({(n.removeprefix(_MARK),): parts[n] for n in order[at + 1 :]})
            numbers, by = there.numbers(lower), parts[name]
            if numbers is None or not numbers.size or numbers.min() < 0 or numbers.max() >= by:
                return
            size = Polynomial.constant(by)
            made[name] = (1, operations.binary("/", rest, size, INT, self.path))
            rest = operations.binary("%", rest, size, INT, self.path)
        self.known |= made

    def _pin(self, pairs: Sequence[tuple[Polynomial, Polynomial]], there: Domain) -> None:
        """A thread that stands at one place alone: it goes along with an index that does, too."""
        still = []
        for writer, reader in pairs:
            numbers = there.numbers(writer)
            alone = numbers is not None and numbers.size and (numbers == numbers[0]).all()
            still.append(reader - writer if alone and writer.value is not None else None)
        for axis, name in enumerate(sorted(THREADS)):
            numbers = there.at.get(name)
            if numbers is None or not numbers.size or _MARK + name in self.known:
                continue
            if (numbers == numbers[0]).all():
                number = Polynomial.constant(int(numbers[0]))
                along = len(pairs) - 1 - axis
                more = still[along] if 0 <= along < len(still) else None
                self.known[_MARK + name] = (1, number + more if more is not None else number)

    def _replaced(self, form: Polynomial) -> Polynomial:
        for _ in range(_DEEPEST):
            new = Polynomial()
            for monomial, factor in form.terms:
                new = new + self._product(monomial, factor)
            if new == form:
                return form
            form = new
        return form

    def _product(self, monomial: tuple[str, ...], factor: int) -> Polynomial:
        made = Polynomial.constant(factor)
        for name in monomial:
            by, value = self.known.get(name, (1, None))
            if name.startswith(_MARK) and value is None:
                value = self._operation(name)
            if value is None or factor % by:
                made = made * Polynomial.symbol(name)
                continue
            whole = made.divided(by)
            assert whole is not None  # the factor is in all of it
            made, factor = whole * value, factor // by
        return made

    def _operation(self, name: str) -> Polynomial | None:
        """What an operation or a choice of the writer's place is, as the reader says it."""
        symbol = self.symbols.table.get(name.removeprefix(_MARK))
        if symbol is None or symbol.kind not in ("operation", "load", "select"):
            return None
        arguments = [self._replaced(self._marked(a)) for a in symbol.arguments]
        if any(n.startswith(_MARK) for a in arguments for n in a.symbols):
            return None
        if symbol.kind == "load":
            index = arguments[0]
            named = f"{symbol.array}[{index}]:{symbol.op}"
            depends = self.symbols.depends(index) | (symbol.depends - THREADS)
            return self.symbols.of(replace(symbol, name=named, arguments=(index,), depends=depends))
        if symbol.kind == "select" and symbol.condition is not None:
            with suppress(NotLegal):
                return Operations(self.symbols).select(self.condition(symbol.condition), *arguments)
        if symbol.op == "abs":
            return Operations(self.symbols).operation("abs", tuple(arguments), low=0)
        if symbol.op not in ("/", "%", "min", "max") or len(arguments) != 2:
            return None
        return Operations(self.symbols).binary(
            symbol.op, arguments[0], arguments[1], INT, self.path
        )
