"""Sweeps: rounds of a loop that each go along a thread's own array and change it in place.

``for (t) for (j) v[j] = f(v[j], v[j + 1]);`` is a tree of prices; with ``v[j - 1]`` it is a row of
an edit distance. A sweep may begin as soon as the one before is far enough ahead.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

from optiml_magic.kernels.expressions import Call, Index, Lambda, Name, Unread
from optiml_magic.kernels.polynomial import Polynomial
from optiml_magic.kernels.primitives.accumulating import check_quiet
from optiml_magic.kernels.primitives.base import Kernel, NotLegal, once
from optiml_magic.kernels.primitives.computing import only_computes
from optiml_magic.kernels.primitives.covering import cover, ways
from optiml_magic.kernels.primitives.effects import (
    Effects,
    declared_in,
    is_counted,
    loops_in,
    names,
)
from optiml_magic.kernels.primitives.items import element, is_plain
from optiml_magic.kernels.primitives.staged import hints_of
from optiml_magic.kernels.reading import Access, Axis
from optiml_magic.kernels.tree import (
    Declare,
    Leave,
    Loop,
    Statement,
    Variable,
    Verbatim,
    body_of,
    walk,
)


@dataclass(frozen=True, eq=False)
class Swept:
    """An array that sweeps go along. Round ``r`` is at element ``base + sign * r``.

    That is the first one that it stores to. It names elements that are ``places`` further on in the
    direction of the sweep, and stores to those that are ``stored`` further on.
    """

    array: Variable
    sign: int
    base: Polynomial
    places: Mapping[Index, int]
    stored: frozenset[int]

    @cached_property
    def back(self) -> int:
        """How many elements behind it a round names."""
        return -min(self.places.values())

    @cached_property
    def forth(self) -> int:
        """How many elements before it a round names."""
        return max(self.places.values())

    @cached_property
    def apart(self) -> int:
        """How many rounds a sweep must be behind the one before.

        Of two accesses to an element, one of them a store, that of the sweep before comes first.
        """
        far = self.places.values()
        return max(abs(stored - named) for stored in self.stored for named in far)


@dataclass(frozen=True, eq=False)
class Sweeps:
    """The rounds of ``outer``: ``ahead``, a sweep along arrays by ``inner``, and ``behind``.

    ``own`` are locals that each sweep has for itself, and that go on from round to round. ``alike``
    are loads from other arrays that every round makes, in all sweeps of the same place.
    """

    outer: Axis
    inner: Axis
    swept: tuple[Swept, ...]
    ahead: tuple[Statement, ...]
    behind: tuple[Statement, ...]
    own: tuple[Variable, ...]
    alike: tuple[Access, ...]

    @cached_property
    def apart(self) -> int:
        """How many rounds a sweep must be behind the one before."""
        return max(one.apart for one in self.swept)

    @property
    def names(self) -> str:
        """What the arrays are called."""
        return ", ".join(one.array.name for one in self.swept)

    @property
    def rounds(self) -> Polynomial:
        """How many rounds a sweep has, by the round of ``outer``; it has none below that."""
        assert self.inner.start is not None
        assert self.inner.stop is not None
        apart = self.inner.stop - self.inner.start
        return apart if self.step > 0 else -apart

    @property
    def step(self) -> int:
        """1 or -1: by how much the counter of ``inner`` moves."""
        assert self.inner.step is not None
        return self.inner.step.value or 1

    @property
    def growth(self) -> int:
        """How many rounds more the next sweep has."""
        by = self.rounds.coefficient(self.outer.name)
        return 0 if by is None else by.value or 0


@once
def sweeps(kernel: Kernel) -> tuple[Sweeps, ...]:
    """The sweeps of a kernel; raises NotLegal where there are none."""
    found, why = list[Sweeps](), NotLegal("no loop goes along an array of its own in its rounds")
    for outer in loops_in(kernel.function.body):
        within = [s for s in body_of(outer.body) if isinstance(s, Loop)]
        arrays = _kept(kernel, outer, within[0]) if len(within) == 1 else ()
        try:
            found += [_Search(kernel, outer, within[0], arrays).found()] if arrays else []
        except NotLegal as reason:
            why = NotLegal(reason.reason, reason.line or outer.line)
    if not found:
        raise why
    return tuple(found)


def _kept(kernel: Kernel, outer: Loop, inner: Loop) -> tuple[Variable, ...]:
    """Local arrays that rounds of a loop find as the rounds before have left them."""
    inside, own = Effects(kernel).inside(inner), declared_in(outer)
    stored = {a.array for a in kernel.reading.accesses
              if a.space == "local" and a.mode == "store" and a.own in inside}  # fmt: skip
    held = (s.variables for s in walk(kernel.function.body) if isinstance(s, Declare))
    return tuple(
        v for several in held for v in several
        if v.name in stored and len(v.extents) == 1 and v not in own
    )  # fmt: skip


class _Search:
    def __init__(
        self, kernel: Kernel, outer: Loop, inner: Loop, arrays: tuple[Variable, ...]
    ) -> None:
        self.kernel, self.arrays = kernel, arrays
        self.named = {array.name for array in arrays}
        self.effects = Effects(kernel)
        self.loops = outer, inner
        self.outer, self.inner = self._axis(outer), self._axis(inner)
        body = body_of(outer.body)
        at = body.index(inner)
        hints = hints_of(kernel, inner)
        self.ahead = tuple(s for s in body[:at] if s not in hints)
        self.behind = tuple(body[at + 1 :])

    def found(self) -> Sweeps:
        self._straight()
        swept = tuple(self._swept(array) for array in self.arrays)
        made = Sweeps(
            self.outer, self.inner, swept, self.ahead, self.behind, self._own(), self._alike()
        )  # fmt: skip
        symbols = self.kernel.reading.symbols
        by = made.rounds.coefficient(self.outer.name)
        rest = made.rounds.without([self.outer.name])
        if by is None or by.value is None or self.outer.name in symbols.inside(rest):
            raise NotLegal("how long the next sweep is does not follow", self.loops[1].line)
        changed = {v.name for v in self.effects.changed(self.loops[0])}
        for form in (rest, *(one.base for one in swept)):
            asked = {name.lstrip("@") for name in symbols.inside(form)}
            if not symbols.known(form) or asked & changed:
                raise NotLegal("where sweeps begin and end is not followed", self.loops[1].line)
        return made

    def _swept(self, array: Variable) -> Swept:
        accesses = self._accesses(array, self.loops[1])
        sign, base = self._path(accesses)
        places = self._places(array, accesses, base, sign)
        self._reached(accesses, places, sign * (base.value or 0))
        for part in self.behind:
            if self._accesses(array, part):
                raise NotLegal("what comes behind a sweep asks for its array", part.line)
        for part in self.ahead:
            for access in self._accesses(array, part):
                before = None if access.index is None else (access.index - base).value
                if before is None or before * sign >= 0 or not self._whole(access):
                    raise NotLegal("a sweep may change what comes ahead of it", access.line)
        stored = frozenset(places[named_at(a)] for a in accesses if a.mode == "store")
        return Swept(array, sign, base, places, stored)

    def _axis(self, loop: Loop) -> Axis:
        axis = self.kernel.axes().get(loop)
        if axis is None or not axis.exact or axis.scaled or not is_counted(axis, self.effects):
            raise NotLegal("the loop does not count in its head alone", loop.line)
        step = axis.step.value if axis.step is not None else None
        if axis.start is None or axis.stop is None or not step:
            raise NotLegal("where the loop begins and ends is not followed", loop.line)
        return axis

    def _straight(self) -> None:
        """Raise NotLegal where rounds do more than to change the array and locals."""
        kernel, (outer, inner) = self.kernel, self.loops
        check_quiet(kernel, self.effects, outer)
        begin = self.inner.variable.value if self.inner.variable is not None else None
        if begin is None or names([begin]) & declared_in(outer.body):
            raise NotLegal("where a sweep begins is found in its round", inner.line)
        for array in self.arrays:
            if array in self.effects.lent or array.type.volatile:
                raise NotLegal("something else leads to the array as well", array.line)
        if self.inner.step not in (Polynomial.constant(1), Polynomial.constant(-1)):
            raise NotLegal("a sweep leaves elements out", inner.line)
        inside = self.effects.inside(outer.body)
        loading = {a.node for a in kernel.reading.accesses if a.mode == "load"}
        for access in kernel.reading.accesses:
            other = access.array not in self.named and access.mode != "load"
            if access.own in inside and (other or access.call is not None):
                raise NotLegal("its rounds store elsewhere too", access.line)
        calls = [e for e in inside if isinstance(e, Call) and e not in loading]
        more = any(isinstance(e, Lambda | Unread) for e in inside)
        if more or not all(only_computes(kernel, call) for call in calls):
            raise NotLegal("its rounds do more than to compute", outer.line)
        for part in (*self.ahead, inner.body, *self.behind):
            for statement in walk(part):
                if isinstance(statement, Leave | Verbatim | Loop):
                    raise NotLegal("its rounds go on in several ways", statement.line)
                held = statement.variables if isinstance(statement, Declare) else ()
                for local in held:
                    if local.array or local.type.reference or local.storage != "local":
                        raise NotLegal(f"`{local.name}` is not a number of its own", statement.line)

    def _accesses(self, array: Variable, statement: Statement) -> list[Access]:
        inside = self.effects.inside(statement)
        return [a for a in self.kernel.reading.accesses
                if a.array == array.name and a.own in inside]  # fmt: skip

    def _whole(self, access: Access) -> bool:
        kind = self.kernel.reading.arrays.get(access.array)
        return kind is not None and kind.element == access.element

    def _path(self, accesses: list[Access]) -> tuple[int, Polynomial]:
        """In which direction a sweep goes, and the first element that its first round stores to."""
        name, signs, stored = self.inner.name, set[int](), list[Polynomial]()
        for access in accesses:
            by = access.index.coefficient(name) if access.index is not None else None
            if by is None or by.value not in (1, -1) or not self._whole(access):
                raise NotLegal("not each round goes one element on", access.line)
            assert access.index is not None
            signs.add(by.value)
            stored += [access.index.without([name])] * (access.mode == "store")
        apart = [(form - stored[0]).value for form in stored]
        if len(signs) != 1 or None in apart:
            raise NotLegal("its rounds go along the array in several ways", self.loops[1].line)
        (sign,) = signs
        base = min(stored, key=lambda form: sign * ((form - stored[0]).value or 0))
        if self.outer.name in self.kernel.reading.symbols.inside(base):
            raise NotLegal("sweeps begin in several places", self.loops[1].line)
        return sign, base

    def _places(
        self, array: Variable, accesses: list[Access], base: Polynomial, sign: int
    ) -> dict[Index, int]:
        """How far each element that a round names is from where it is."""
        found = dict[Index, int]()
        for access in accesses:
            assert access.index is not None
            far = (access.index.without([self.inner.name]) - base).value
            if far is None:
                raise NotLegal("a round asks for elements far away", access.line)
            if found.setdefault(named_at(access), far * sign) != far * sign:
                raise NotLegal("an element is several ones", access.line)
        inside = self.effects.inside(self.loops[1].body)
        named = sum(isinstance(e, Name) and e.variable is array for e in inside)
        plain = all(isinstance(e.base, Name) and e.base.variable is array for e in found)
        if named != len(found) or not plain or not found.keys() <= inside:
            raise NotLegal("something else leads to the array as well", self.loops[1].line)
        return found

    def _reached(self, accesses: list[Access], places: Mapping[Index, int], begin: int) -> None:
        """Raise NotLegal where a round may leave out the furthest elements: they may not be there.

        Between them all that are kept lie. Behind element ``begin`` the array has all others.
        """
        for far in {min(places.values()), max(places.values())}:
            own = (a for a in accesses if places[named_at(a)] == far)
            if far < 0 <= begin + far or cover(
                [way for a in own for way in ways(a.guard, self.inner.held)]
            ):
                continue
            raise NotLegal("not each round asks for the elements beside it", self.inner.line)

    def _own(self) -> tuple[Variable, ...]:
        """Locals of a sweep; raises NotLegal where it leaves other locals to the next one."""
        inner = self.loops[1]
        held = [v for s in self.ahead if isinstance(s, Declare) for v in s.variables]
        own = {*held, *self.arrays, self.inner.variable}
        early = frozenset().union(*(self.effects.mentions(s) for s in (*self.ahead, inner)))
        for part in (*self.ahead, inner, *self.behind):
            for variable in self.effects.changed(part).keys() - own:
                alone = part in self.behind and variable not in early
                if not alone and not (part is inner and self._any_order(variable)):
                    raise NotLegal(f"`{variable.name}` goes from sweep to sweep", part.line)
        later = frozenset().union(*(self.effects.mentions(s) for s in (inner, *self.behind)))
        lasting = tuple(v for v in held if v in later)
        for variable in lasting:
            if variable.initial or variable.type.volatile:
                raise NotLegal(f"`{variable.name}` is not a plain number", variable.line)
        return lasting

    def _any_order(self, variable: Variable) -> bool:
        """Whether rounds only combine something in a local, whichever of them comes first."""
        both = {self.outer.name, self.inner.name}
        return any(
            r.place == variable.name and r.exact and not r.carried and both <= {*r.axes}
            for r in self.kernel.reading.reductions
        )

    def _alike(self) -> tuple[Access, ...]:
        """Loads that tell one round of a sweep from the next, and no sweep from another."""
        symbols, outer, inner = self.kernel.reading.symbols, *self.loops
        inside = self.effects.inside(inner.body)
        own = declared_in(outer) - {self.inner.variable}
        found = list[Access]()
        for a in self.kernel.reading.accesses:
            if a.own not in inside or a.array in self.named or a.index is None:
                continue
            asked, place = symbols.inside(a.index), element(self.effects, a)
            moves = self.inner.name in asked and self.outer.name not in asked
            every = all(part in self.inner.held for c in a.guard for part in c.conjuncts())
            plain = is_plain(self.kernel, a) and place is not None and a.space != "local"
            if plain and moves and every and symbols.known(a.index) and not names([a.node]) & own:
                found.append(a)
        return tuple(found)


def named_at(access: Access) -> Index:
    """The element of an access as it is named."""
    if not isinstance(access.place, Index):
        raise NotLegal("the array is not asked for by its elements", access.line)
    return access.place
