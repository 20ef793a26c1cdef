"""Loads along one index of a launch in a kernel that stores along another."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from optiml_magic.kernels.polynomial import Polynomial
from optiml_magic.kernels.primitives.base import Kernel, NotLegal
from optiml_magic.kernels.primitives.digits import Digit, Digits
from optiml_magic.kernels.primitives.effects import Effects, loops_in
from optiml_magic.kernels.primitives.grids import below, form_of
from optiml_magic.kernels.reading import Access
from optiml_magic.kernels.symbols import Compare, Condition, Every, Some, Untold
from optiml_magic.kernels.tree import Leave, walk

_ONE = Polynomial.constant(1)
_MOST = 4  # tiles
_BESIDE = (0, 1, -1)  # elements from one thread to the next that come in whole sectors


@dataclass(frozen=True)
class Turned:
    """Accesses to one element of ``size`` bytes; ``form`` and ``guard`` are over digits."""

    array: str
    kind: str
    size: int
    form: Polynomial
    guard: tuple[Condition, ...]
    accesses: tuple[Access, ...]


class Turn:
    """What a tile would turn: ``load`` and ``store`` are the digits along which elements lie.

    ``turned`` is empty where there is nothing of the kind; ``beside`` is loaded along the stores.
    ``bounds`` says how many threads of each axis do something; all accesses keep to it on those in
    ``kept``.
    """

    def __init__(self, kernel: Kernel) -> None:
        self.kernel = kernel
        self.effects = Effects(kernel)
        self.digits = Digits(kernel)
        self.turned: tuple[Turned, ...] = ()
        self.beside: tuple[Turned, ...] = ()
        stores = [a for a in kernel.reading.accesses if a.mode != "load" and a.space == "global"]
        store = self._stored(stores)
        if store is None:
            return
        self.store: Digit = store
        loads = self._loads()
        # What does not depend on it neighbours in what is stored take from one place.
        apart = [load for load in loads if store.name in load.form.symbols]
        sides = Counter(near for load in apart if (near := self.near(load.form)) is not None)
        sides.pop(store, None)
        if sides:
            self.load: Digit = max(sides, key=lambda d: sides[d])
            self.turned = tuple(t for t in apart if self.near(t.form) == self.load)
            self.beside = tuple(t for t in loads if self.near(t.form) == store)

    def check(self) -> None:
        """Raise NotLegal where it cannot be done."""
        body = self.kernel.function.body
        self.effects.straightforward()
        if len(self.turned) > _MOST:
            raise NotLegal(f"it loads {len(self.turned)} elements against the grain")
        for loop in loops_in(body):
            if any(isinstance(s, Leave) and s.kind == "return" for s in walk(loop.body)):
                raise NotLegal("the kernel is left within a loop", loop.line)
        for variable in self.effects.changed(body):
            if variable.storage == "parameter":
                raise NotLegal(f"it changes its parameter `{variable.name}`", variable.line)
        self._check_rounds()
        self.bounds = {axis: self._bound(axis) for axis in self.digits.axes}
        self.kept = frozenset(axis for axis in self.digits.axes if self._keeps(axis))

    def _check_rounds(self) -> None:
        """Raise NotLegal where threads load side by side in rounds, and would no longer."""
        for access in self.kernel.reading.accesses:
            if not access.loops or access.space != "global" or access.index is None:
                continue
            try:
                form = self.digits.form(access.index)
            except NotLegal:
                continue
            now, then = (form.coefficient(side.name) for side in (self.load, self.store))
            if (now is None or now.value in _BESIDE) and (
                then is None or then.value not in _BESIDE
            ):
                raise NotLegal(f"rounds would load `{access.array}` against the grain", access.line)

    def within(self, axes: Iterable[str]) -> list[Condition]:
        """What keeps a thread within digits that a tile goes beyond, and within these axes.

        Where it holds for a value of a digit, it does so for all smaller ones.
        """
        sides = (self.load, self.store)
        found = [d.count - d.form for d in sides if d.count is not None]
        for axis in axes:
            first, *others = self.digits.axes[axis]
            whole, bound = self.digits.whole(axis), self.bounds[axis]
            count = bound.over(first.weight)
            if not others or count is None:
                found.append(bound - whole)
            elif first in sides:
                found.append(count - first.form)
        return [Compare(">=", form - _ONE, frozenset()) for form in found]

    def near(self, form: Polynomial) -> Digit | None:
        """The one digit whose next value is the next element, or the one before."""
        steps = [
            digit for digit in self.digits.every
            if (by := form.coefficient(digit.name)) is not None and by.value in (1, -1)
        ]  # fmt: skip
        return steps[0] if len(steps) == 1 else None

    def _stored(self, stores: list[Access]) -> Digit | None:
        """The digit along which all stores lie that lie along any.

        What is added up has no side of its own: many threads add to one element.
        """
        found: set[Digit] = set()
        for access in (store for store in stores if store.mode != "atomic"):
            if access.index is None:
                return None
            try:
                near = self.near(self.digits.form(access.index))
            except NotLegal:
                return None
            found |= {near} if near is not None else set()
        return found.pop() if len(found) == 1 else None

    def _loads(self) -> list[Turned]:
        """The elements that nothing keeps from being loaded before the kernel runs.

        Loads of such an element on further conditions take it from the tile as well.
        """
        places: dict[tuple[str, Polynomial], list[tuple[Access, dict[Condition, bool]]]] = {}
        for access in self._readable():
            assert access.index is not None
            try:
                form = self.digits.form(access.index)
            except NotLegal:
                continue
            guard = dict(map(self._followed, _parts(access.guard)))
            places.setdefault((access.array, form), []).append((access, guard))
        found = []
        for (array, form), loads in places.items():
            free = [g for a, g in loads if all(g.values()) and not a.loops]
            for guard in {frozenset(g): g for g in free}.values():
                if any(other.keys() < guard.keys() for other in free):
                    continue
                own = tuple(a for a, g in loads if guard.keys() <= g.keys())
                kind = own[0].element
                found.append(Turned(array, kind.name, kind.size or 0, form, tuple(guard), own))
        return found

    def _readable(self) -> Iterator[Access]:
        """The loads of whole elements in the kernel's own text that it writes nowhere."""
        reading = self.kernel.reading
        for access in reading.accesses:
            array = reading.arrays.get(access.array)
            if access.mode != "load" or access.space != "global" or access.index is None:
                continue
            if array is None or array.element != access.element or not access.element.size:
                continue
            written = any(self.effects.same(access.array, other) for other in reading.written)
            if not written and self.effects.taken(access) is not None:
                yield access

    def _followed(self, part: Condition) -> tuple[Condition, bool]:
        """A condition over digits, and whether it can be asked before the kernel runs."""
        try:
            return self.digits.condition(part), not _untold(part)
        except NotLegal:
            return part, False

    def _bound(self, axis: str) -> Polynomial:
        """How many threads along an axis do something, or else how many there are."""
        found = self.digits.bound(axis)
        if found is not None:
            return found
        kernel = self.kernel
        grid = form_of(kernel.launch.grid["xyz".index(axis)].tree)
        known = {p.name for p in kernel.function.parameters} | kernel.program.values.keys()
        if grid is None or kernel.launch.args is not None or not grid.symbols <= known:
            raise NotLegal("its guards and its launch do not bound what it does alike")
        return grid * Polynomial.constant(self.digits.widths[axis])

    def _keeps(self, axis: str) -> bool:
        return all(
            below(self.kernel, a.guard, axis, self.digits.widths[axis], self.bounds[axis])
            for a in self.kernel.reading.accesses
            if a.space == "global"
        )


def _parts(guard: tuple[Condition, ...]) -> list[Condition]:
    return list(dict.fromkeys(part for condition in guard for part in condition.conjuncts()))


def _untold(condition: Condition) -> bool:
    match condition:
        case Untold():
            return True
        case Every(parts=parts) | Some(parts=parts):
            return any(map(_untold, parts))
    return False
