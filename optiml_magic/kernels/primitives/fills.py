"""What the threads of a block bring into a shared array before they wait for each other."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from optiml_magic.kernels.expressions import (
    Assign,
    Cast,
    Choice,
    Expr,
    Member,
    Name,
)
from optiml_magic.kernels.polynomial import Polynomial
from optiml_magic.kernels.primitives.base import Kernel, NotLegal
from optiml_magic.kernels.primitives.domains import Domain, parted
from optiml_magic.kernels.primitives.effects import Effects
from optiml_magic.kernels.ranges import Ranges
from optiml_magic.kernels.reading import Access, Array
from optiml_magic.kernels.symbols import Condition
from optiml_magic.kernels.tree import Variable
from optiml_magic.kernels.types import CType, named

LANES = "xyzw"


@dataclass(frozen=True, eq=False)
class Fill:
    """A store of what is loaded from global memory, by some threads and rounds, ``there``.

    It is made where all of ``needed`` holds; where one of ``tested`` does not, the element is
    ``other``, a constant. ``linear`` is its index, ``digits`` the same as it is written; ``own``
    are counters of the loops that it is in, ``all`` all that holds where it is made.
    """

    store: Access
    value: Expr
    there: Domain
    digits: tuple[Polynomial, ...]
    linear: Polynomial
    own: frozenset[str]
    all: frozenset[Condition]
    needed: tuple[Condition, ...]
    tested: tuple[Condition, ...] = ()
    other: Expr | None = None

    @property
    def elements(self) -> Any:
        found = self.there.numbers(self.linear)
        if found is None:
            raise NotLegal("which elements are brought is not counted", self.store.line)
        return found


class Fills:
    """All that is stored to a shared array; ``around`` are the loops that begin it anew."""

    def __init__(
        self, kernel: Kernel, effects: Effects, array: Array, around: Sequence[str]
    ) -> None:
        self.kernel, self.effects, self.array = kernel, effects, array
        self.around = set(around)
        self._ranges: dict[tuple[Condition, ...], Ranges] = {}
        self.loads = {a.node: a for a in kernel.reading.accesses if a.mode == "load"}
        self.loads |= {
            taken: a for a in effects.hidden()
            if a.mode == "load" and (taken := effects.taken(a)) is not None
        }  # fmt: skip
        stores = [a for a in kernel.reading.of(array.name) if a.mode != "load"]
        found = [fill for store in stores for fill in self._fills(store)]
        brought = [f for f in found if any(self.loaded(f.value))]
        constants = [(at, f) for at, f in enumerate(found) if f not in brought]
        self.every = [self._with_other(f, found.index(f), constants) for f in brought]
        if not self.every:
            raise NotLegal(f"`{array.name}` is not brought from memory")

    # -- what is stored

    def _fills(self, store: Access) -> Iterator[Fill]:
        kernel, line = self.kernel, store.line
        node = store.node
        if not isinstance(node, Assign) or node.op != "=" or store.call is not None:
            raise NotLegal("an element is not only brought", line)
        inner = [a for a in kernel.reading.loops(store) if a.name not in self.around]
        if any(not axis.exact or axis.scaled for axis in inner) or store.verbatim:
            raise NotLegal("the loop that brings elements is not followed", line)
        found = parted(kernel, store.guard, inner)
        if found is None:
            raise NotLegal("which threads bring elements is not counted", line)
        there, rest = found
        for lane, value in self._lanes(store, node.value):
            linear = self.linear(store, lane)
            every = frozenset(p for c in store.guard for p in c.conjuncts())
            digits = self._digits(linear, there)
            if lane is None and self.whole(store) and self.within(store.digits, there):
                digits = store.digits
            own = frozenset(axis.name for axis in inner)
            yield self._chosen(Fill(store, value, there, digits, linear, own, every, tuple(rest)))

    def _lanes(self, store: Access, value: Expr) -> Iterator[tuple[int | None, Expr]]:
        """A vector that is stored over several elements, one by one."""
        if store.element == self.array.element:
            yield None, value
            return
        held = self.held(value)
        load, size = self.loads.get(held), self.array.element.size
        lanes = store.element.lanes
        if load is None or not size or lanes < 2 or store.element.size != lanes * size:
            raise NotLegal("what is stored is not an element", store.line)
        yield from ((lane, Member(None, held, LANES[lane])) for lane in range(lanes))

    def linear(self, access: Access, lane: int | None = None) -> Polynomial:
        """The element of the array, counted from its first; also where a part of it is taken."""
        size, found = self.array.element.size, access.offset
        if found is not None and size:
            within = Polynomial.constant(dict(found.terms).get((), 0) % size)
            found = (found - within).divided(size)
        if found is None or not self.kernel.reading.symbols.known(found):
            raise NotLegal("an index of shared memory is not followed", access.line)
        return found + Polynomial.constant(lane or 0)

    def _digits(self, linear: Polynomial, there: Domain) -> tuple[Polynomial, ...]:
        """An index as rows and columns, as far as each is counted to be within its extent."""
        digits, rest = list[Polynomial](), linear
        for extent in self.array.extents[:0:-1]:
            size = extent.value if extent is not None else None
            if not size:
                return (linear,)
            row = Polynomial.of({m: c // size for m, c in rest.terms if c % size == 0})
            within = rest - row * Polynomial.constant(size)
            numbers = there.numbers(within)
            if numbers is None or not numbers.size or numbers.min() < 0 or numbers.max() >= size:
                return (linear,)
            digits.insert(0, within)
            rest = row
        return (rest, *digits)

    def within(self, digits: Sequence[Polynomial], there: Domain) -> bool:
        """Whether each index is counted to be within its extent, so that rows are apart."""
        for digit, extent in zip(digits, self.array.extents, strict=True):
            numbers, size = there.numbers(digit), extent.value if extent is not None else None
            if numbers is None or size is None:
                return False
            if numbers.size and (numbers.min() < 0 or numbers.max() >= size):
                return False
        return True

    def whole(self, access: Access) -> bool:
        return len(access.digits) == len(self.array.extents) > 1

    def _chosen(self, fill: Fill) -> Fill:
        """What is stored by ``c ? a[i] : 0`` is brought where the test holds."""
        value = self.held(fill.value)
        if not isinstance(value, Choice):
            return replace(fill, value=value)
        arms = [any(self.loaded(arm)) for arm in (value.then, value.other)]
        if arms[0] == arms[1]:
            raise NotLegal("what is stored depends on a test in another way", fill.store.line)
        arm, other = (value.then, value.other) if arms[0] else (value.other, value.then)
        load = next(self.loaded(arm))
        more = tuple(part for c in load.guard for part in c.conjuncts() if part not in fill.all)
        if isinstance(self.held(arm), Choice) or not more:
            raise NotLegal("what is stored depends on several tests", fill.store.line)
        counted = [fill.there.holds(part) for part in more]
        if any(one is not None for one in counted):
            raise NotLegal("what is stored depends on the place of a thread", fill.store.line)
        return replace(fill, value=arm, tested=more, other=other)

    def _with_other(self, fill: Fill, place: int, constants: list[tuple[int, Fill]]) -> Fill:
        """With the constant that another store leaves where this one does not come."""
        mine = fill.elements
        for at, constant in constants:
            theirs = constant.elements
            shared = np.isin(mine, theirs)
            if not shared.any():
                continue
            if not shared.all() or fill.tested:
                raise NotLegal("an element is stored to in several ways", constant.store.line)
            common, own = constant.all & fill.all, constant.all - fill.all
            alike = constant.linear == fill.linear
            before = not own and at < place and (alike or not constant.needed)
            (opposite,) = own if len(own) == 1 else (None,)
            instead = opposite is not None and (
                alike and {*(~opposite).conjuncts()} == fill.all - common
            )
            if not before and not instead:
                raise NotLegal("an element is stored to in several ways", constant.store.line)
            fill = replace(fill, needed=tuple(c for c in fill.needed if c in common),
                           tested=tuple(c for c in fill.needed if c not in common),
                           other=constant.value)  # fmt: skip
        return fill

    def held(self, expr: Expr) -> Expr:
        """What a local holds that never changes, in its place."""
        types = self.kernel.reading.types
        while True:
            match expr:
                case Name(variable=Variable(value=value) as local) if (
                    local in self.effects.lasting and value is not None
                    and types.get(value) == self._kind(expr)
                ):  # fmt: skip
                    expr = value
                case Cast(operand=operand) if types.get(operand) == types.get(expr):
                    expr = operand
                case _:
                    return expr

    def _kind(self, expr: Name) -> CType | None:
        """The type of a local, also where nothing but a part of it is asked for."""
        assert expr.variable is not None
        declared = expr.variable.type
        known = self.kernel.reading.types.get(expr)
        if known is None and declared.base != "auto" and not declared.depth:
            return named(declared.base, self.kernel.unit.aliases)
        return known

    def loaded(self, expr: Expr) -> Iterator[Access]:
        """The loads from global memory that make a value."""
        expr = self.held(expr)
        if expr in self.loads:
            load = self.loads[expr]
            if load.space != "global":
                raise NotLegal("what is stored does not come from global memory", load.line)
            yield load
            return
        for part in expr.parts:
            yield from self.loaded(part)
