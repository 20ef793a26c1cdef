"""P9, a window at a border: what items take is there, what lies beside it may not be.

The elements between the first item and the last come by vectors, each of them an element that some
item certainly takes. Those before and behind come one by one, where the test of an item that takes
them holds.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence

from optiml_magic.kernels.expressions import Expr
from optiml_magic.kernels.polynomial import Polynomial
from optiml_magic.kernels.primitives.base import NotLegal
from optiml_magic.kernels.primitives.indices import COUNT
from optiml_magic.kernels.primitives.reached import Row, reached
from optiml_magic.kernels.primitives.windows import Taken, Window


class Halo:
    """The lines that load some rows of a window, of items in multiples of ``least``.

    ``sure`` are the loads that are certain where their borders hold.
    """

    def __init__(
        self, window: Window, group: Sequence[Taken], least: int, sure: Collection[Expr]
    ) -> None:
        self.window = window
        self.group = group
        self.whole = window.apart * least
        self.takers = self._takers(least, sure)
        low, high = min(self.takers), max(self.takers)
        inside = self.takers.keys() >= {*range(self.whole)}
        if not inside or low < -self.whole or high >= 2 * self.whole:
            raise self._refused("not every element of a vector is loaded")

    def needed(self) -> Iterator[Polynomial]:
        """Sums that are not below 0 where all items' own elements are there."""
        for one in self.group:
            for border in one.borders:
                first = border.by > 0
                yield border.at(Polynomial() if first else self._place(-1, behind=True))

    def lines(self, compared: Callable[[Polynomial], str]) -> Iterator[str]:
        window, one = self.window, self.group[0]
        yield from window.vectors(one, 0, 0, "load")
        for at in sorted(self.takers):
            behind = at >= self.whole
            if 0 <= at < self.whole:
                continue
            place = at - self.whole if behind else at
            test = self._test(at, self._place(place, behind=behind), compared)
            test = f"if ({test}) " if test else ""
            yield test + window.element(one, place, "load", behind=behind)

    def _takers(self, least: int, sure: Collection[Expr]) -> dict[int, set[int]]:
        """Which loads take each element that one of the first items does, in every row alike."""
        rows = dict[Row, dict[int, set[int]]]()
        for number, one in enumerate(self.group):
            if one.access.own not in sure or one.does("store"):
                raise self._refused("an item may leave out what lies beside a border")
            for row, at in reached(self.window, one):
                for item in range(least):
                    place = at + self.window.apart * item
                    rows.setdefault(row, {}).setdefault(place, set()).add(number)
        first, *others = rows.values()
        if any(other != first for other in others):
            raise self._refused("rows are not loaded alike")
        return first

    def _test(self, at: int, place: Polynomial, compared: Callable[[Polynomial], str]) -> str:
        """What one of those that take an element tests, beside what holds for all items."""
        found = list[str]()
        for number in sorted(self.takers[at]):
            borders = [b for b in self.group[number].borders if (b.by > 0) is (at < 0)]
            tests = dict.fromkeys(compared(border.at(place)) for border in borders)
            if not tests:
                return ""
            found.append(" && ".join(tests))
        ways = [*dict.fromkeys(found)]
        return ways[0] if len(ways) == 1 else " || ".join(f"({way})" for way in ways)

    def _place(self, at: int, *, behind: bool) -> Polynomial:
        count = Polynomial.symbol(f"{COUNT}{self.window.along.count}")
        end = Polynomial.constant(self.window.apart) * count if behind else Polynomial()
        return end + Polynomial.constant(at)

    def _refused(self, reason: str) -> NotLegal:
        access = self.group[0].access
        return NotLegal(f"{reason} of `{access.array}`", access.line)


def lines_of(
    halo: Callable[[Sequence[Taken]], Halo], compared: Callable[[Polynomial], str],
    group: Sequence[Taken],
) -> Iterator[str]:  # fmt: skip
    """The lines that fill the windows of a group near a border."""
    return halo(group).lines(compared)
