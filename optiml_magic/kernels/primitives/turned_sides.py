"""How many neighbouring elements a thread takes at once on either side of a tile that turns.

On each side they are consecutive along one digit. That they begin where a vector may is a question
of sizes and pointers alone, which is asked once; that all of them are there, wherever they are.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

from optiml_magic.kernels.editing import Node, Swaps, edited, spread
from optiml_magic.kernels.expressions import Assign, Call, Step, every
from optiml_magic.kernels.polynomial import Polynomial
from optiml_magic.kernels.primitives.base import NotLegal
from optiml_magic.kernels.primitives.digits import Digit
from optiml_magic.kernels.primitives.items import WIDEST, element, is_plain
from optiml_magic.kernels.primitives.sizes import value
from optiml_magic.kernels.primitives.turns import Turn, Turned
from optiml_magic.kernels.reading import Access
from optiml_magic.kernels.symbols import Compare, Condition
from optiml_magic.kernels.tree import If, Statement, walk

_WIDE = 8  # bytes of an element of which vectors gain nothing: their parts meet in banks; ours


@dataclass(frozen=True)
class Side:
    """What a thread takes along a digit, ``width`` elements of each of ``runs`` at once.

    Vectors are aligned where ``width`` divides ``apart``. Where it is 1 there are no runs.
    """

    digit: Digit
    width: int = 1
    runs: tuple[Turned, ...] = ()
    apart: tuple[Polynomial, ...] = ()


class Sides:
    """Both sides of one turn that is legal; on that of the stores ``runs`` are loaded or stored."""

    def __init__(self, parts: Turn) -> None:
        self.parts = parts
        self.kernel = parts.kernel
        axes = parts.digits.axes
        self.sizes = {p.name for p in self.kernel.function.parameters if not p.type.depth}
        self.sizes |= self.kernel.program.values.keys()
        self.within = parts.within(axes)
        #: What holds wherever ``within`` does: guards of the kernel that say no more.
        self.known = {*self.within, *(_below(parts.bounds[a], parts.digits.whole(a)) for a in axes)}
        self.load = self._side(parts.load, parts.turned)
        stored = self._stored()
        beside = [run for run in parts.beside if self._apart(run, parts.store) is not None]
        self.store = self._side(parts.store, [*stored, *beside] if stored else [])

    @property
    def widest(self) -> int:
        """The elements of the wider vectors."""
        return max(self.load.width, self.store.width)

    def tests(self, run: Turned) -> list[Condition]:
        """What holds where an element is loaded or stored."""
        return [*self.within, *(part for part in run.guard if part not in self.known)]

    def whole(self, run: Turned, side: Side) -> list[Condition]:
        """The same for all of a vector that begins at a value of the side's digit."""
        last, found = Polynomial.constant(side.width - 1), []
        for test in self.tests(run):
            by = test.form.coefficient(side.digit.name) if isinstance(test, Compare) else None
            grows = test not in self.within and by is not None and (by.value or 0) > 0
            found.append(test if grows else _further(test, side.digit, last))
        return found

    def each(self, run: Turned, side: Side, item: Polynomial) -> list[Condition]:
        """The same for the element that is ``item`` values further."""
        return [_further(test, side.digit, item) for test in self.tests(run)]

    def settled(self, swaps: Swaps) -> dict[Node, Node | tuple[Statement, ...] | None]:
        """The swaps, and what is left of branches where all of a vector is stored."""
        held = {*self.known, *(part for run in self.store.runs for part in run.guard)}
        found = {**swaps}
        for branch in [s for s in walk(self.kernel.function.body) if isinstance(s, If)][::-1]:
            for condition, way in self._ways(branch):
                if {*condition.conjuncts()} <= held:
                    left = edited(way, found) if way is not None else None
                    found[branch] = tuple(replace(one, lead=None) for one in spread(left))
                    break
        return found

    def _ways(self, branch: If) -> Iterator[tuple[Condition, Statement | None]]:
        """The ways of a branch, each with what is true where it is taken."""
        guards = [g for g in self.kernel.reading.guards if g.test is branch.test]
        changes = any(isinstance(e, Assign | Step | Call) for e in every(branch.test))
        if len(guards) != 1 or branch.before is not None or changes:
            return
        try:
            found = self.parts.digits.condition(guards[0].condition)
        except NotLegal:
            return
        yield (~found if guards[0].exits else found), branch.then
        yield (found if guards[0].exits else ~found), branch.other

    def _side(self, digit: Digit, runs: Sequence[Turned]) -> Side:
        apart = list[Polynomial]()
        for run in runs:
            forms = self._apart(run, digit)
            if forms is None:
                return Side(digit)
            apart += forms
        size = max((run.size for run in runs), default=WIDEST)
        width = WIDEST // size if size < _WIDE else 1
        while width > 1 and any((value(self.kernel, form) or 0) % width for form in apart):
            width //= 2
        if width < 2:
            return Side(digit)
        return Side(digit, width, tuple(runs), tuple(_told(apart, width)))

    def _apart(self, run: Turned, digit: Digit) -> list[Polynomial] | None:
        """What vectors along a digit have to divide; None where none may be taken there."""
        plain = all(is_plain(self.kernel, access) for access in run.accesses)
        volatile = any(
            p.name == run.array and p.type.volatile for p in self.kernel.function.parameters
        )
        guard = (test for test in self.tests(run) if test not in self.within)
        if not plain or volatile or not all(_tells(test, digit) for test in guard):
            return None
        rest, found = run.form.without([digit.name]), list[Polynomial]()
        for other in self.parts.digits.every:
            by = rest.coefficient(other.name)
            if by is None:
                return None
            rest = rest.without([other.name])
            found.append(by)
        # Of vectors that go backward the first element is the last of one that is as wide.
        found.append(rest + Polynomial.constant(1) if backward(run, digit) else rest)
        return found if all(form.symbols <= self.sizes for form in found) else None

    def _stored(self) -> list[Turned]:
        """What is stored along the digit; nothing where a vector would not do for all of it."""
        effects, found = self.parts.effects, dict[str, Turned]()
        accesses = [a for a in self.kernel.reading.accesses if a.space == "global"]
        for access in accesses:
            if access.mode != "store" or access.array in found:
                continue
            run = self._run([a for a in accesses if effects.same(a.array, access.array)])
            if run is not None and self._apart(run, self.parts.store) is not None:
                found[access.array] = run
            elif self._along(access):
                return []
        return [*found.values()]

    def _along(self, access: Access) -> bool:
        assert access.index is not None  # where it stores is followed
        form = self.parts.digits.form(access.index)
        return self.parts.near(form) == self.parts.store

    def _run(self, accesses: Sequence[Access]) -> Turned | None:
        """All that is done with one array, where it is one element that is stored for certain."""
        own, digits, forms = accesses[0], self.parts.digits, set[Polynomial]()
        stored, loaded = set[frozenset[Condition]](), set[frozenset[Condition]]()
        for access in accesses:
            if access.index is None or access.array != own.array or not self._swapped(access):
                return None
            try:
                forms.add(digits.form(access.index))
                guard = frozenset(self._over_digits(access))
            except NotLegal:
                return None
            (stored if access.mode == "store" else loaded).add(guard)
        if len(forms) > 1 or len(stored) > 1:
            return None
        (form,), (guard,) = forms, stored
        # An element that is loaded where none is stored would not be among those of a vector.
        if not all(guard <= other for other in loaded) or not all(map(self._asked, guard)):
            return None
        if self.parts.near(form) != self.parts.store:
            return None
        ordered, size = tuple(sorted(guard, key=str)), own.element.size or 0
        return Turned(own.array, own.element.name, size, form, ordered, tuple(accesses))

    def _swapped(self, access: Access) -> bool:
        """Whether a local may stand for the element in the kernel's own text."""
        if access.call is not None or access.mode == "atomic" or access.loops:
            return False
        assigned = access.mode == "load" or isinstance(access.node, Assign | Step)
        return assigned and element(self.parts.effects, access) is not None

    def _over_digits(self, access: Access) -> Iterator[Condition]:
        for test in access.guard:
            yield from map(self.parts.digits.condition, test.conjuncts())

    def _asked(self, test: Condition) -> bool:
        """Whether a test may be asked before the kernel runs: it is of digits and sizes alone."""
        names = {digit.name for digit in self.parts.digits.every} | self.sizes
        return isinstance(test, Compare) and test.form.symbols <= names


def backward(run: Turned, digit: Digit) -> bool:
    """Whether the next value of a digit is the element before."""
    by = run.form.coefficient(digit.name)
    return by is not None and by.value == -1


def _told(forms: Iterable[Polynomial], width: int) -> list[Polynomial]:
    """Those forms that a width may not divide, without multiples of others."""
    found = list[Polynomial]()
    for form in sorted(dict.fromkeys(forms), key=_degree):
        if form.divided(width) is None and all(form.over(other) is None for other in found):
            found.append(form)
    return found


def _degree(form: Polynomial) -> tuple[int, int, str]:
    most = max((len(names) for names, _ in form.terms), default=0)
    return most, sum(abs(factor) for _, factor in form.terms), str(form)


def _further(test: Condition, digit: Digit, by: Polynomial) -> Condition:
    """A test for the value of a digit that is ``by`` more."""
    if not isinstance(test, Compare):
        return test
    times = test.form.coefficient(digit.name)
    assert times is not None  # all that is asked of vectors is a sum of its digits
    return Compare(test.op, test.form + times * by, test.roots)


def _below(bound: Polynomial, whole: Polynomial) -> Condition:
    return Compare(">=", bound - whole - Polynomial.constant(1), frozenset())


def _tells(test: Condition, digit: Digit) -> bool:
    """Whether it is known at which end of several values of a digit a test is the stricter."""
    if not isinstance(test, Compare):
        return False
    by = test.form.coefficient(digit.name)
    return by is not None and (not by.terms or (test.op == ">=" and by.value is not None))
