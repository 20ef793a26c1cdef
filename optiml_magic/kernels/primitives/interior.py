"""P19, specialise: what holds for all items of a thread that are far enough from the borders.

Tests of the borders are decided, and indices that are clamped, wrapped or chosen there become plain
sums. Each decision is a comparison of whole numbers that a thread makes once, for the least that
it can be over its items and over the rounds of the loops around.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager

from optiml_magic.kernels.polynomial import Polynomial
from optiml_magic.kernels.primitives.base import Kernel
from optiml_magic.kernels.primitives.effects import Effects, moves_within
from optiml_magic.kernels.primitives.grids import room
from optiml_magic.kernels.primitives.indices import (
    COUNT,
    COUNTER,
    ITEM,
    Along,
    Element,
    Undecided,
    compares_axes,
    put,
)
from optiml_magic.kernels.primitives.moving import Moving
from optiml_magic.kernels.primitives.naming import LocalSpeller
from optiml_magic.kernels.primitives.places import index
from optiml_magic.kernels.primitives.rows_of_numbers import lengths, taken_apart
from optiml_magic.kernels.ranges import Ranges
from optiml_magic.kernels.reading import Access, Axis
from optiml_magic.kernels.spelling import Unspelled
from optiml_magic.kernels.symbols import Compare, Condition, Symbol

_ZERO, _ONE, _EDGE = Polynomial(), Polynomial.constant(1), Polynomial.constant(32)  # a border: ours


class _Speller(LocalSpeller):
    """Spells forms at the first of a thread's items."""

    inside: Interior

    def name(self, name: str) -> str | None:
        return name[2:] if name[:2] in (ITEM, COUNTER, COUNT) else super().name(name)

    def local(self, form: Polynomial) -> Polynomial:
        try:
            return self.inside.by_counters(self.inside.placed(form, items=False))
        except Undecided as reason:
            raise Unspelled("it depends on more than its place") from reason


class Interior:
    """The comparisons that a thread makes, and what follows from them.

    Scalars that are ``fixed`` have these values, which is compared as well. What holds for items
    along x holds for as many ``beyond`` them as well, before the first and behind the last.
    """

    def __init__(
        self, kernel: Kernel, effects: Effects, along: Sequence[Along], fixed: Mapping[str, int],
        beyond: tuple[int, int] = (0, 0),
    ) -> None:  # fmt: skip
        self.kernel = kernel
        self.effects = effects
        self.along = tuple(along)
        self.fixed = dict(fixed)
        self.beyond = beyond
        self.symbols = kernel.reading.symbols
        self.known: list[Condition] = [
            Compare(">=", left, frozenset()) for a in along if (left := self._left(a)) is not None
        ]  # fmt: skip
        names = {f"@{a.axis}": a.first for a in along}
        self.moving = moving = Moving(kernel, effects, self.along)
        self.speller = _Speller(self.symbols, names, steady=moving.steady, moved=effects.moved)
        self.speller.kernel, self.speller.inside = kernel, self
        self.needs: dict[Polynomial, str] = {}
        self.whole: dict[tuple[Polynomial, str], str] = {}

    def tests(self) -> list[str]:
        """What a thread compares; nothing that another comparison says as well."""
        found = (w for form, w in self.needs.items() if not any(
            ((form - other).value or -1) > 0 for other in self.needs))  # fmt: skip
        same = (f"{name} == {value}" for name, value in self.fixed.items())
        return [*same, *self.whole.values(), *found]

    @contextmanager
    def attempt(self) -> Iterator[None]:
        """What is needed for a decision that is not made after all is not compared."""
        before = dict(self.needs), dict(self.whole), [*self.known]
        try:
            yield
        except (Undecided, Unspelled) as reason:
            self.needs, self.whole, self.known = before
            raise Undecided(str(reason)) from reason

    def exist(self) -> None:
        """All items exist: compared where the kernel itself does not ask."""
        lefts = (self._left(along) for along in self.along if along.guard)
        for left in (left for left in lefts if left is not None):
            self.need(left)

    def begun(self) -> list[str]:
        """That a thread's first index along each axis is one of those that do something."""
        return [
            self.compared(along.bound - Polynomial.symbol(f"@{along.axis}") - _ONE)
            for along in self.along if along.several and along.bound is not None
        ]  # fmt: skip

    def _left(self, along: Along) -> Polynomial | None:
        """How many indices are behind a thread's."""
        if along.bound is None:
            return None
        left, thread = room(along.axis, along.width, along.bound), f"threadIdx.{along.axis}"
        return left if thread in self.symbols.table else put(left, thread, _ZERO)

    def decide(self, condition: Condition, prefer: bool | None, sizes: bool = False) -> bool:
        """Which way all items go; where both can be compared, not to an edge, or as ``prefer``.

        An index is compared, or ``sizes`` alone where these may be.
        """
        ways = [value for value in (True, False) if self._comparable(condition, value, sizes)]
        if len(ways) > 1:
            edges = [value for value in ways if self._is_edge(condition if value else ~condition)]
            ways = [not edges[0]] if len(edges) == 1 else [prefer] if prefer is not None else []
        if not ways:
            raise Undecided("a test is not a comparison with a border")
        with self.attempt():
            for part in (condition if ways[0] else ~condition).conjuncts():
                assert isinstance(part, Compare)
                form = part.form if part.op == ">=" else self._side(part.form)
                self.need(form)
                self.known.append(Compare(">=", form, frozenset()))
        return ways[0]

    def element(self, access: Access) -> Element:
        """Where an access is, as steps behind what is the same for all items."""
        if access.index is None:
            raise Undecided("where it is is not followed")
        with self.attempt():
            form = self.plain(self._counted(access.index, access, ahead=True))
            form = self._counted(self.placed(form), access)
            self.moving.check_settled(form, self.moving.gathered(form))
            base, steps = _ZERO, dict[tuple[str, ...], Polynomial]()
            for monomial, factor in form.terms:
                term = Polynomial.of({monomial: factor})
                moving = [n for n in monomial if n[:2] in (ITEM, COUNTER)]
                sizes = tuple(n for n in monomial if n not in moving)
                fixed = all(self.moving.is_size(n) for n in sizes)
                if len(moving) > 1 or (moving and not fixed):
                    raise Undecided("its items are not a number of sizes apart")
                if moving or fixed:
                    step = Polynomial.of({tuple(moving): factor})
                    steps[sizes] = steps.get(sizes, _ZERO) + step
                else:
                    base = base + term
            self.speller.form(base)
        own = (a for a in self.kernel.reading.accesses if a.array == access.array)
        away = [a.index.number for a in own if a.index is not None]
        return Element(access.array, base, taken_apart(steps, lengths(form, self.along, away)))

    def placed(self, form: Polynomial, *, items: bool = True) -> Polynomial:
        """A form over ``@x``, the first index of a thread, and the ``items`` behind it."""
        for along in self.along:
            block = f"blockIdx.{along.axis}"
            if along.width == 1 and f"threadIdx.{along.axis}" not in form.symbols:
                form = put(form, block, Polynomial.symbol(f"@{along.axis}"))
            else:
                found = index(form, along.axis, along.width)
                if found is None:
                    raise Undecided("it tells more of a place than its index")
                form = found
            by = form.coefficient(f"@{along.axis}")
            if by is None:
                raise Undecided("it is not linear in an index")
            if items and along.several:
                form = form + by * Polynomial.symbol(f"{ITEM}{along.item}")
        return self._numbered(form)

    def _numbered(self, form: Polynomial) -> Polynomial:
        """A form with numbers in the place of scalars that are fixed, and of their quotients."""
        for name in form.symbols & self.symbols.table.keys():
            symbol, number = self.symbols[name], self.fixed.get(name)
            if symbol.op in ("/", "%") and len(symbol.arguments) == 2:
                above, below = (self._numbered(argument).value for argument in symbol.arguments)
                if above is not None and below is not None and above >= 0 and below > 0:
                    number = above // below if symbol.op == "/" else above % below
            form = put(form, name, Polynomial.constant(number)) if number is not None else form
        return form

    def plain(self, form: Polynomial) -> Polynomial:
        """A form without what is only there for the borders."""
        for name in sorted(form.symbols & self.symbols.table.keys()):
            symbol, alone = self.symbols[name], Polynomial.symbol(name)
            if symbol.kind not in ("operation", "select") or not self.moving.varies(symbol):
                continue
            by = form.coefficient(name)
            if by is None:
                raise Undecided("it is not linear in what a border decides")
            digit = self.moving.digit(symbol)
            if digit is None and self.moving.settled(symbol, self.known):
                continue
            if digit is None:
                form = form - by * alone + by * self._inner(symbol)
            elif digit.several:
                form = form + by * self._behind(digit, symbol)
        return form

    def _inner(self, symbol: Symbol) -> Polynomial:
        """What an operation gives away from the borders."""
        if symbol.op == "select" and symbol.condition is not None:
            then, other = symbol.arguments
            moves = self.moving.moves(then)
            prefer = moves if moves != self.moving.moves(other) else None
            return self.plain(then if self.decide(symbol.condition, prefer) else other)
        moving = [a for a in symbol.arguments if self.moving.moves(a)]
        if len(moving) != 1:
            raise Undecided("two things move in it")
        (inner,) = moving
        rest = [a for a in symbol.arguments if a is not inner]
        if symbol.op == "min" and rest:
            self.need(rest[0] - inner)
        elif symbol.op == "max" and rest:
            self.need(inner - rest[0])
        elif symbol.op == "abs":
            self.need(inner)
        elif symbol.op == "%" and rest and symbol.arguments[0] is inner:
            inner = self._unwrapped(inner, rest[0])
        else:
            raise Undecided(f"`{symbol.op}` is not looked through")
        return self.plain(inner)

    def _unwrapped(self, form: Polynomial, extent: Polynomial) -> Polynomial:
        """``(x + d + n) % n`` as ``x + d``, where ``n`` is how many indices there are."""
        own = [a for a in self.along if f"threadIdx.{a.axis}" in form.symbols]
        if len(own) != 1 or own[0].bound != extent or len(extent.terms) != 1:
            raise Undecided("a rest is not that of an index at the border")
        times = dict(form.terms).get(extent.terms[0][0], 0)
        inner = form - Polynomial.constant(times) * extent
        self.need(inner)
        self.need(extent - inner - _ONE)
        if times:
            self.need(form)
        return inner

    def need(self, form: Polynomial) -> None:
        """That a form is not negative for any item, in any round of the loops around."""
        least = self._least(form)
        if least.value is not None:
            if least.value < 0:
                raise Undecided("it holds for no item")
            return
        self.needs[least] = self.compared(least)

    def require(self, form: Polynomial) -> None:
        """That a form over a thread's first index is not negative."""
        self.needs[form] = self.compared(form)

    def compared(self, form: Polynomial) -> str:
        """That a form is not negative, as sums that do not overflow."""
        own = {f"@{along.axis}" for along in self.along}
        less = Polynomial.of({m: -c for m, c in form.terms if c < 0})
        names = self.speller.names
        below = dict(form.terms).get(()) == -1  # it is spelled by `<` then
        if own & less.symbols and len(less.terms) > 1 + below:
            self.speller.names = {n: f"(long long){w}" if n in own else w
                                  for n, w in names.items()}  # fmt: skip
        try:
            return self.speller.condition(Compare(">=", form, frozenset()))
        finally:
            self.speller.names = names

    def _least(self, form: Polynomial) -> Polynomial:
        """The least that a form can be over a thread's items and the rounds of loops."""
        form = self._numbered(self.plain(form))
        while counters := [n for n in form.symbols if self.moving.is_counter(n)]:
            name = max(counters, key=lambda n: int(n[1:]))
            by = form.coefficient(name)
            if by is None or by.value is None:
                raise Undecided("how a round changes it is not a number")
            form = put(form, name, _ZERO if by.value > 0 else self.plain(self._last(name)))
        form = self.placed(form)
        self.moving.check_settled(form)
        for along in self.along:
            if along.several:
                form = along.least(form, self.beyond, [a.extent for a in self.along])
        return form

    def rounds(self, name: str) -> int | None:
        """The rounds of a loop, where that is a number for all items."""
        try:
            last = self.placed(self._last(name)).value
        except Undecided:
            return None
        return None if last is None else max(0, last + 1)

    def most_rounds(self, name: str) -> int | None:
        """The rounds of a loop at most, where it begins or ends by the rounds of those around."""
        try:
            least = self._least(-self._last(name)).value
        except Undecided:
            return None
        return None if least is None else max(0, 1 - least)

    def _last(self, name: str) -> Polynomial:
        """The number of the last round of a loop, or more."""
        for part in self.kernel.reading.axis(name).test.conjuncts():
            if isinstance(part, Compare) and part.op == ">=":
                by = part.form.coefficient(name)
                if by is not None and by.value == -1:
                    return part.form.without([name])
        raise Undecided("how many rounds a loop has is not known")

    def by_counters(self, form: Polynomial) -> Polynomial:
        """A form over the counters of loops, as they are called in the text, for their rounds."""
        for name in [n for n in form.symbols if self.moving.is_counter(n)]:
            by = form.coefficient(name)
            if by is None:
                raise Undecided("it is not linear in a round")
            axis = self.kernel.reading.axis(name)
            form = form - by * Polynomial.symbol(name) + self._by_counter(axis, by)
        return form

    def _counted(self, form: Polynomial, access: Access, *, ahead: bool = False) -> Polynomial:
        """A form over the counters of the loops around, as they are called in the text.

        ``ahead`` of all else those of loops that begin where no size alone says, all items alike:
        there what a round counts from and what a form has of it are the same.
        """
        for axis in self.kernel.reading.loops(access):
            plain = axis.start is None or all(map(self.moving.is_size, axis.start.symbols))
            if ahead and (plain or axis.start is None or not self.moving.same(axis.start)):
                continue
            by = form.coefficient(axis.name)
            if by is None:
                raise Undecided("it is not linear in a round")
            if by == _ZERO:
                continue
            form = form - by * Polynomial.symbol(axis.name) + self._by_counter(axis, by, ahead)
        return form

    def _by_counter(self, axis: Axis, by: Polynomial, ahead: bool = False) -> Polynomial:
        variable, start, step = axis.variable, axis.start, axis.step
        size = step.value if step is not None else None
        if variable is None or start is None or not size or axis.scaled:
            raise Undecided("a loop's counter is not read")
        if moves_within(axis, self.effects):
            raise Undecided("a loop's counter changes in its body")
        apart = by.divided(abs(size))
        if apart is None:
            raise Undecided("a round's step does not divide it")
        apart = apart if size > 0 else -apart
        if not ahead:
            start = self.placed(self.plain(start), items=False)
        if {f"@{along.axis}" for along in self.along if along.several} & start.symbols:
            raise Undecided("a loop begins elsewhere for each item")
        return apart * (Polynomial.symbol(f"{COUNTER}{variable.name}") - start)

    def _behind(self, along: Along, symbol: Symbol) -> Polynomial:
        """How far the digit of an item is behind that of a thread's first."""
        extent = symbol.arguments[1]
        number = self._numbered(extent).value
        if number is not None and not any(count % number for count in along.counts):
            own = Polynomial.symbol(along.digit(symbol.op, number))  # the first one has no rest
            return own if symbol.op == "/" else own - Polynomial.symbol(symbol.name)
        if number is not None and all(number % count for count in along.counts):
            raise Undecided("its items are neither whole rows nor in one")
        self._divides(along, extent)
        return Polynomial.symbol(f"{ITEM}{along.item}") if symbol.op == "%" else _ZERO

    def _divides(self, along: Along, form: Polynomial) -> None:
        """Items of a thread lie within one row of so many."""
        words = self.speller.form(self.speller.local(form))
        words = f"({words})" if " " in words else words
        self.whole[form, along.count] = f"{words} % {along.count} == 0"

    def _comparable(self, condition: Condition, value: bool, sizes: bool) -> bool:
        parts = [*(condition if value else ~condition).conjuncts()]
        return bool(parts) and all(
            isinstance(part, Compare) and part.op in (">=", "!=")
            and (self.moving.is_placed(part.form) or (sizes and self.moving.of_sizes(part.form)))
            and not compares_axes(part)  # which is a border of neither
            for part in parts
        )  # fmt: skip

    def _is_edge(self, condition: Condition) -> bool:
        """Whether a comparison holds for a few indices at most, at one end."""
        form = self.plain(condition.form) if isinstance(condition, Compare) else None
        own = form is not None and form.symbols <= self.symbols.table.keys()
        ranges = Ranges(self.known, self.symbols)
        return form is not None and own and ranges.nonnegative(_EDGE - form)

    def _side(self, form: Polynomial) -> Polynomial:
        """On which side of a border the items are that are not on it."""
        ranges = Ranges(self.known, self.symbols)
        for side in (form, -form):
            if ranges.nonnegative(side):
                return side - _ONE
        raise Undecided("on which side of a border items are is not known")
