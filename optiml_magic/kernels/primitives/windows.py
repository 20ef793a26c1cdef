"""P9 and P12: what neighbouring items of a thread load and store along a row, as vectors.

A window holds the elements that all items of a thread take from some rows of one array, or leave
there: one each, or several, as of pixels of three bytes. It is loaded before they are computed, or
stored behind that, by the widest accesses that the first item's alignment allows. What lies before
the first element that an item takes of a row, and behind the last, is left alone.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from optiml_magic.kernels.polynomial import Polynomial
from optiml_magic.kernels.primitives.indices import COUNTER, ITEM, Along, Element, factor
from optiml_magic.kernels.primitives.items import WIDEST, Items
from optiml_magic.kernels.reading import Access
from optiml_magic.kernels.tree import If, Loop

_ZERO = Polynomial()
Sizes = tuple[str, ...]


@dataclass(frozen=True)
class Round:
    """A loop that is unrolled: its counter's name, first value, step and how many rounds.

    ``counter`` is the symbol that counts its rounds.
    """

    name: str
    start: int
    step: int
    count: int
    counter: str

    def ends(self, by: int) -> tuple[int, int]:
        """The least and the greatest that ``by`` times the counter is."""
        values = [by * self.start, by * (self.start + self.step * (self.count - 1))]
        return min(values), max(values)

    @property
    def head(self) -> str:
        """The same rounds again."""
        stop = self.start + self.step * self.count
        sign = "<" if self.step > 0 else ">"
        return (
            f"for (int {self.name} = {self.start}; {self.name} {sign} {stop}; "
            f"{self.name} += {self.step}) {{"
        )


@dataclass(frozen=True)
class Border:
    """A test of the element at ``p`` in its row: that ``by * p + rest`` is not negative."""

    by: int
    rest: Polynomial

    def at(self, place: Polynomial) -> Polynomial:
        return Polynomial.constant(self.by) * place + self.rest


@dataclass(frozen=True)
class Taken:
    """What every item loads or stores, or both, in all ``rounds`` of the unrolled loops around.

    Only where all ``borders`` hold, if any.
    """

    accesses: tuple[Access, ...]
    at: Element
    rounds: tuple[Round, ...]
    scope: Loop | If | None  # the innermost loop or test around that all items share
    borders: tuple[Border, ...] = ()

    @property
    def access(self) -> Access:
        return self.accesses[0]

    def does(self, mode: str) -> bool:
        return any(access.mode == mode for access in self.accesses)


@dataclass(eq=False)
class Window:
    """Rows of one array, as far as the items of a thread take their elements.

    Attributes:
        base: the address that steps are from; ``array`` what is there. ``begun`` declares it where
            it is another in each round; empty where it is the same in all.
        apart: elements from one item to the next, 0 where all items take the same.
        along: the axis whose neighbours lie along a row, and ``others`` those that take rows.
        turn: what the counter of vectors along a row is called.
        outer: steps by the counters of loops around all items; the same for all that it holds.
        bordered: loads some rows where elements beside those of the items may not be there.
        form: spells a sum, and ``offset`` so many steps of each stride.
    """

    name: str
    base: str
    array: Items
    apart: int
    width: int  # elements of a vector
    along: Along
    others: tuple[Along, ...]
    turn: str
    outer: Mapping[Sizes, Polynomial]
    form: Callable[[Polynomial], str]
    offset: Callable[[Mapping[Sizes, Polynomial]], str]
    begun: str = ""
    bordered: Callable[[Sequence[Taken]], Iterator[str]] | None = None
    taken: list[Taken] = field(default_factory=list)

    @property
    def strides(self) -> list[Sizes]:
        """All strides between its rows, the longest first."""
        found = {s for one in self.taken for s in one.at.steps if s} | {*self.outer}
        return sorted(found - {()}, key=lambda s: (-len(s), s))

    def steps(self, one: Taken, sizes: Sizes) -> Polynomial:
        """Of a stride, over items and unrolled rounds alone."""
        return one.at.steps.get(sizes, _ZERO) - self.outer.get(sizes, _ZERO)

    def ends(self, one: Taken, sizes: Sizes) -> tuple[int, int]:
        """The least and the greatest step of a stride, for the first item."""
        form = self.steps(one, sizes)
        low = high = dict(form.terms).get((), 0)
        for turn in one.rounds:
            by = factor(form, f"{COUNTER}{turn.name}")
            ends = turn.ends(by)
            low, high = low + ends[0], high + ends[1]
        return low, high

    def range(self, sizes: Sizes) -> tuple[int, int]:
        """The same of all that it holds."""
        found = [self.ends(one, sizes) for one in self.taken]
        return min(low for low, _ in found), max(high for _, high in found)

    def extent(self, sizes: Sizes) -> str:
        """How many steps of a stride there are; empty where there is one."""
        low, high = self.range(sizes)
        number, words = high - low + 1, ""
        for along in self.others:
            form = self.steps(self.taken[0], sizes)
            found = [(factor(form, f"{ITEM}{along.item}"), along.count)]
            found += [(factor(form, n), f"{along.count} / {d}") for n, _, d in along.digits(form)]
            for by, count in found:
                words += f"{count} * {by} + " if by > 1 else f"{count} + " if by else ""
                number -= by
        if not words:
            return "" if number == 1 else str(number)
        return words[:-3] if number == 0 else f"{words}{number}".replace("+ -", "- ")

    @property
    def count(self) -> str:
        """How many elements items take side by side along a row, in words."""
        return self.along.count if self.apart == 1 else f"{self.along.count} * {self.apart}"

    def behind(self, number: int) -> str:
        """So many elements behind these, in words; of what all items have alike there are none."""
        if not self.apart:
            return str(number)
        return f"{self.count} + {number}".replace("+ -", "- ").removesuffix(" + 0")

    def span(self, one: Taken) -> tuple[int, int]:
        """The first element of a row, and how many there are beside those of ``count``."""
        low, high = self.ends(one, ())
        return low, high - self.apart + 1

    @property
    def pad(self) -> int:
        """Elements before the first item's, so that this one begins a vector."""
        return max(0, -(self.range(())[0] // self.width) * self.width)

    @property
    def beyond(self) -> tuple[int, int]:
        """Elements before the least and behind the greatest that are loaded along.

        Where three of four aligned elements are asked for one access brings them all; if it were
        none here, a compiler would make it one.
        """
        before = behind = 0
        for one in (one for one in self.taken if not one.borders):
            low, high = self.span(one)
            head, tail = -low % self.width, high % self.width
            before = max(before, _power(head) - head)
            behind = max(behind, _power(tail) - tail)
        return before, behind

    def declared(self) -> str:
        high = max(0, *(high for _, high in map(self.span, self.taken)))
        more = self.pad + -(-high // self.width) * self.width
        extents = "".join(f"[{e}]" for s in self.strides if (e := self.extent(s)))
        size = self.array.size * self.width
        return f"alignas({size}) {self.array.kind} {self.name}{extents}[{self.behind(more)}];"

    def place(self, one: Taken) -> str:
        """Where the element of an item is."""
        within = self.steps(one, ()) + Polynomial.constant(self.pad)
        return f"{self._row(one)}[{self.form(within)}]"

    def _row(self, one: Taken) -> str:
        found = self.name
        for sizes in self.strides:
            if self.extent(sizes):
                step = self.steps(one, sizes) - Polynomial.constant(self.range(sizes)[0])
                found += f"[{self.form(step)}]"
        return found

    def does(self, mode: str) -> bool:
        return any(one.does(mode) for one in self.taken)

    def lines(self, mode: str) -> Iterator[str]:
        """What fills it, by loads, or empties it, by stores."""
        for turns, group in self.alike(mode):
            first = group[0]
            used = [
                a for a in self.others
                if any(a.moves(self.steps(first, s)) for s in self.strides)
            ]  # fmt: skip
            heads = [f"for (int {a.item} = 0; {a.item} < {a.count}; ++{a.item}) {{" for a in used]
            heads += [turn.head for turn in turns]
            for head in heads:
                yield from ("#pragma unroll", head)
            if self.bordered is not None:
                yield from self.bordered(group)
            else:
                for low, high in self._joined(group):
                    yield from self._pieces(first, low, high, mode)
            yield from "}" * len(heads)

    def alike(self, mode: str) -> Iterator[tuple[tuple[Round, ...], list[Taken]]]:
        """Those that take the same rows, with the loops that say which."""
        alike: dict[tuple[tuple[Round, ...], tuple[Polynomial, ...]], list[Taken]] = {}
        for one in (one for one in self.taken if one.does(mode)):
            rows = tuple(self.steps(one, s) for s in self.strides)
            turns = tuple(
                t for t in one.rounds if any(factor(f, f"{COUNTER}{t.name}") for f in rows)
            )
            alike.setdefault((turns, rows), []).append(one)
        for (turns, _), group in alike.items():
            yield turns, group

    def _joined(self, group: Sequence[Taken]) -> list[tuple[int, int]]:
        """The offsets within a row, joined where the items leave no gap between."""
        found: list[tuple[int, int]] = []
        for low, high in sorted(map(self.span, group)):
            if found and low <= found[-1][1] + self.width:
                found[-1] = found[-1][0], max(found[-1][1], high)
            else:
                found.append((low, high))
        return found

    def _pieces(self, one: Taken, low: int, high: int, mode: str) -> Iterator[str]:
        """Accesses to elements from ``low`` of the first item to ``high`` behind ``count``."""
        width = self.width
        begin, end = -(-low // width) * width, high // width * width
        if mode == "load" and self.apart:
            low, high = begin - _power(begin - low), end + _power(high - end)
        for at, many in _cut(low, begin, width):
            yield self.element(one, at, mode, many)
        yield from self.vectors(one, begin, end, mode)
        for at, many in _cut(end, high, width):
            yield self.element(one, at, mode, many, behind=True)

    def vectors(self, one: Taken, begin: int, end: int, mode: str) -> Iterator[str]:
        """Whole vectors from ``begin`` to ``end`` behind ``count``."""
        width, vector = self.width, self.turn
        yield "#pragma unroll"
        yield f"for (int {vector} = {begin}; {vector} < {self.behind(end)}; {vector} += {width}) {{"
        yield self._piece(one, vector, self.pad, f"{vector} + ", width, mode)
        yield "}"

    def element(
        self, one: Taken, at: int, mode: str, many: int = 1, *, behind: bool = False
    ) -> str:  # fmt: skip
        """An access to the element ``at`` behind the first item's, or behind ``count``, or more."""
        if not behind:
            return self._piece(one, str(at), self.pad + at, "", many, mode)
        return self._piece(one, self.behind(at), self.pad + at, f"{self.count} + ", many, mode)

    def _piece(
        self, one: Taken, at: str, number: int, before: str, many: int, mode: str
    ) -> str:  # fmt: skip
        here = f"{self._row(one)}[{before}{number}]".replace("+ -", "- ").replace(" + 0]", "]")
        rest = {s: f if s else self.outer.get(s, _ZERO) for s, f in one.at.steps.items()}
        steps = self.offset(rest)
        inner = (
            at if steps == "0" else steps if at == "0" else f"{steps} + {at}".replace("+ -", "- ")
        )
        there = f"{self.base}[{inner}]"
        if mode == "store":
            here, there = there, here
        return (
            f"{here} = {there};" if many == 1 else self.array.loaded(many, f"&{here}", f"&{there}")
        )


def widest(access: Access, least: int) -> int:
    """The elements of a vector, where items come in multiples of ``least``."""
    return min(WIDEST // (access.element.size or WIDEST), least & -least)


def _power(number: int) -> int:
    """The least power of two that is not less; 0 for 0."""
    return 1 << (number - 1).bit_length() if number else 0


def _cut(low: int, high: int, width: int) -> Iterator[tuple[int, int]]:
    """Aligned accesses from ``low`` to ``high``: where each begins, and its elements."""
    while low < high:
        many = width
        while low % many or low + many > high:
            many //= 2
        yield low, many
        low += many
