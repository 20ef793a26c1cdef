"""Further conditions of a task: other sizes, scales, signs and scalars, ordered by what they catch.

Where there is no time for all, the first ones of each list are tried. They are those that most of
the cheats in ``testing/cheats`` and the planted faults fall to: inputs of mixed signs and three
times as large, other scalars; one more element than a block has, a single one, odd ones.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from optiml_magic.devices.base import Order, is_emulated
from optiml_magic.devices.maps import Map
from optiml_magic.problem import Problem, sizes
from optiml_magic.problem.scales import (
    FACTOR,
    INTEGERS,
    SCALARS,
    SCALARS_TOO,
    SCALES,
    SPARSE,
    Maps,
    has_float_scalars,
    maps,
    rescaled,
)
from optiml_magic.problem.sizes import Sizing

Draw = Callable[[], Mapping[str, Any]]
ORDERS: tuple[Order, ...] = ("forward", "reverse")
FLOOR_SIZES = 4  # of the small sizes: always tried
FLOOR_SCALES = 5  # of the scales at one of them
FLOOR_LARGE = 2  # of what costs as much as a verification

# What follows them keeps its order.
_SIZES_FIRST = (257, 1, 33, 3)
_NAMES_FIRST = (
    "inputs of mixed signs",
    "inputs x 3",
    SCALARS,
    "a third of the inputs 0",
    "integers of both signs",
    "integers all alike",
    "inputs x 0.01",
    "large integers",
    "inputs x 10000, all negative",
)


@dataclass(frozen=True)
class Condition:
    """One set of inputs: what ``draw`` gives, its arrays changed by ``maps``.

    Without ``maps``, they are not arrays that a device already has.
    ``place`` is where it stands among others of its kind, however they were ordered. The input
    kernel must be right with its blocks in all of ``orders``.
    """

    name: str
    draw: Draw
    place: int = 0
    maps: Maps | None = None
    orders: Sequence[Order] = ("forward",)
    work: int = 1


class Conditions:
    """The conditions of one problem on a device of that name."""

    def __init__(self, problem: Problem, device: str) -> None:
        self._problem = problem
        self._emulated = is_emulated(device)
        self._arrays = [b.name for b in problem.interface.named("input", "inout")]
        self.sizing: Sizing | None = problem.sizing

    def small(self) -> list[Condition]:
        """Small sizes."""
        if self.sizing is None:
            return []
        seen: list[dict[str, int]] = []
        found: list[tuple[int, Condition]] = []
        for given, seed in sizes.small(self.sizing.given):
            if given not in (*seen, dict(self.sizing.given)):
                seen.append(given)
                draw = partial(self.sizing.draw, given, seed)
                first = next(iter(given.values()))
                found.append((first, Condition(sizes.spelled(given), draw, len(seen))))
        return [condition for _, condition in sorted(found, key=lambda f: _rank(f[0]))]

    def at_small(self, size: Condition) -> list[Condition]:
        """The scales, and what shows at a small size if at all, at one of those."""
        at = f"{size.name}, ", size.draw
        return _ordered([*self._scaled(*at), *self._other(*at)])

    def large(self) -> list[Condition]:
        """What costs as much as a verification itself: the scales at the given sizes, and others.

        A size comes second; larger ones, where the task is measured at such, come third.
        """
        first = self._problem.first
        scales = _ordered(list(self._scaled("", lambda: first.values)))
        others: list[Condition] = []
        grown: list[Condition] = []
        if self.sizing is not None:
            for given, seed in sizes.grown(self.sizing.given, self.sizing.own):
                draw = partial(self.sizing.draw, given, seed)
                grown.append(Condition(sizes.spelled(given), draw, work=sizes.GROWN))
            seen = [dict(self.sizing.given)]
            for given, seed in sizes.large(self.sizing.given):
                if given not in seen:
                    seen.append(given)
                    draw = partial(self.sizing.draw, given, seed)
                    others.append(Condition(sizes.spelled(given), draw))
        return [*scales[:1], *others[:1], *grown, *scales[1:], *others[1:]]

    def side(self, chosen: sizes.Sizes, seed: int) -> Condition:
        """One side of a dispatch."""
        assert self.sizing is not None
        return Condition(sizes.spelled(chosen), partial(self.sizing.draw, chosen, seed))

    def _scaled(self, prefix: str, draw: Draw) -> Iterator[Condition]:
        first, scalars = self._problem.first.values, self._problem.interface.scalars
        if has_float_scalars(first, scalars):
            yield Condition(prefix + SCALARS, partial(_rescaled, draw, scalars, FACTOR), maps={})
        for name, change in SCALES.items():
            yield from self._mapped(prefix + name, draw, change)

    def _other(self, prefix: str, draw: Draw) -> Iterator[Condition]:
        """What shows at a small size, if at all."""
        first, scalars = self._problem.first.values, self._problem.interface.scalars
        for name, change in SPARSE.items():
            yield from self._mapped(prefix + name, draw, change)
        if has_float_scalars(first, scalars):
            for name, (before, factor) in SCALARS_TOO.items():
                other = partial(_rescaled, draw, scalars, factor)
                if before is None:
                    yield Condition(prefix + name, other, maps={})
                else:
                    yield from self._mapped(prefix + name, other, before)
        # Integers may be addresses, which only the emulated device checks one by one. Equal ones
        # may be where several threads write: it must not matter who comes last.
        if self._emulated:
            for name, change in INTEGERS.items():
                yield from self._mapped(prefix + name, draw, change, ORDERS)

    def _mapped(
        self, name: str, draw: Draw, change: Map, orders: Sequence[Order] = ("forward",)
    ) -> Iterator[Condition]:
        """The condition, where there is anything to change."""
        found = maps(self._problem.first.values, self._arrays, change)
        if found:
            yield Condition(name, draw, maps=found, orders=orders)


def _rank(size: int) -> int:
    return _SIZES_FIRST.index(size) if size in _SIZES_FIRST else len(_SIZES_FIRST)


def _ordered(found: list[Condition]) -> list[Condition]:
    """Those that catch the most first; ``place`` is where each stood."""
    placed = [Condition(c.name, c.draw, at, c.maps, c.orders) for at, c in enumerate(found)]

    def rank(condition: Condition) -> int:
        ends = (condition.name.endswith(name) for name in _NAMES_FIRST)
        return next((at for at, end in enumerate(ends) if end), len(_NAMES_FIRST))

    return sorted(placed, key=rank)


def _rescaled(draw: Draw, scalars: Collection[str], factor: float) -> dict[str, Any]:
    return rescaled(draw(), scalars, factor)
