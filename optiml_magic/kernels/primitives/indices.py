"""Indices that a thread takes along the axes of its launch, and elements as steps from there."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass

from optiml_magic.kernels.polynomial import Polynomial
from optiml_magic.kernels.symbols import Compare, Condition

# Beside ``@x``, a thread's first index along an axis: what begins the names of symbols for how far
# an item is behind it, for how many items there are, and for the counter of a loop.
ITEM, COUNT, COUNTER = "@+", "@=", "@#"

_ONE = Polynomial.constant(1)


class Undecided(Exception):  # noqa: N818  # it says what happened
    """A test or an index that no comparison at the beginning settles: it stays as it is."""


@dataclass(frozen=True)
class Along:
    """The indices that a thread takes along one axis: ``first`` and so many behind it.

    Attributes:
        width: threads of a block along it.
        name: what an index is called, and ``words`` its type.
        first: the first of a thread's own, and ``item`` how far behind it one is.
        count: how many there are, in words; 1 where a thread has one as before. ``counts`` are the
            numbers that these words may stand for.
        bound: how many indices do something, None where it is not known; ``guard`` says so in the
            words of the launch where the kernel itself does not.
    """

    axis: str
    width: int
    name: str
    words: str
    first: str
    item: str
    count: str
    bound: Polynomial | None
    guard: str = ""
    counts: Sequence[int] = ()

    @property
    def several(self) -> bool:
        return self.count != "1"

    def digit(self, op: str, by: int) -> str:
        """The symbol of an item's quotient by a number that divides all counts, or of its rest."""
        return f"{ITEM}({self.item} {op} {by})"

    def digits(self, form: Polynomial) -> Iterator[tuple[str, str, int]]:
        """Such symbols of a form, each with its operation and its number."""
        for name in sorted(form.symbols):
            if name.startswith(before := f"{ITEM}({self.item} "):
                op, by = name.removeprefix(before).removesuffix(")").split()
                yield name, op, int(by)

    @property
    def extent(self) -> str:
        """The size that says how many indices there are, where one does alone."""
        words = [*self.bound.symbols] if self.bound is not None else []
        return words[0] if len(words) == 1 and self.bound == Polynomial.symbol(words[0]) else ""

    def least(
        self, form: Polynomial, beyond: tuple[int, int], positive: Collection[str] = ()
    ) -> Polynomial:  # fmt: skip
        """A form at the item where it is least, of all and along x of so many ``beyond`` both ends.

        Sizes that are ``positive`` may be how far apart items lie.
        """
        before, behind = map(Polynomial.constant, beyond if self.axis == "x" else (0, 0))
        last = Polynomial.symbol(f"{COUNT}{self.count}") - _ONE + behind
        ends = {f"{ITEM}{self.item}": (-before, last)}
        for name, op, by in self.digits(form):
            last = Polynomial.symbol(f"{COUNT}({self.count} / {by})") - _ONE + behind
            rest = Polynomial(), Polynomial.constant(by - 1)
            ends[name] = (-before, last) if op == "/" else rest
        for name, own in ends.items():
            times = form.coefficient(name)
            signs = {by < 0 for _, by in times.terms} if times is not None else set()
            if times is None or len(signs) > 1 or not times.symbols <= {*positive}:
                raise Undecided("how an item changes it is not a number")
            form = put(form, name, own[True in signs])
        return form

    def moves(self, form: Polynomial) -> bool:
        """Whether a form is another for each item."""
        return f"{ITEM}{self.item}" in form.symbols or any(self.digits(form))


@dataclass(frozen=True)
class Element:
    """An element as so many ``steps`` of each stride behind ``base``, which no item changes.

    A stride is a product of sizes; ``()`` is one element. ``steps`` are sums over items and the
    counters of loops.
    """

    array: str
    base: Polynomial
    steps: Mapping[tuple[str, ...], Polynomial]


def put(form: Polynomial, name: str, value: Polynomial) -> Polynomial:
    """A form with another in the place of a symbol."""
    found = Polynomial()
    for monomial, factor in form.terms:
        term = Polynomial.of({tuple(n for n in monomial if n != name): factor})
        for _ in range(monomial.count(name)):
            term = term * value
        found = found + term
    return found


def factor(form: Polynomial, name: str) -> int:
    """The number that multiplies a symbol; 0 where it is none."""
    by = form.coefficient(name)
    return (by.value or 0) if by is not None else 0


def compares_axes(condition: Condition) -> bool:
    """Whether a comparison is of one index of the launch with another, such as ``x <= y``."""
    terms = condition.form.terms if isinstance(condition, Compare) else ()
    signs = {
        (name[-1], by > 0)
        for monomial, by in terms for name in monomial
        if name.startswith(("threadIdx.", "blockIdx."))
    }  # fmt: skip
    return len({axis for axis, _ in signs}) > 1 and len({sign for _, sign in signs}) > 1
