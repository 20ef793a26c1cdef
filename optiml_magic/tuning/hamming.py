"""Greedy search over Hamming neighbours from several starts.

After kernel_tuner's greedy iterated local search (van Werkhoven 2019): a neighbour differs in one
name, whatever the value; the first gain is taken; at the end the best point is disturbed in two
names. Ours: the starts come from arithmetic; of the neighbours each name has a turn, those that
fill the chip best first and of these the nearest; and the constants.
"""

from __future__ import annotations

import math
import random
from collections import Counter, deque
from collections.abc import Sequence

from optiml_magic.model.space import Point, Space

_LEVELS = 8  # of what a point promises: smaller differences are left to the nearness
_DISTURBANCES = 4  # at most, each from the best point, two names of it
_DRAWS = 32  # to find a disturbed point that is new


class Hamming:
    """The tuner of every program, unless another is named."""

    def __init__(self, space: Space, starts: Sequence[Point] = (), *, seed: int = 0) -> None:
        self._space = space
        self._rng = random.Random(seed)  # noqa: S311  # a search, not a secret
        self._asked = {_key(space.present)}
        self._here: tuple[float, Point] | None = None  # where the local search stands
        self._best: tuple[float, Point] | None = None
        self._starts = deque[Point]({**space.present, **start} for start in starts)
        self._near = deque[Point]()
        self._flying: set[tuple[tuple[str, int], ...]] = set()
        self._left = _DISTURBANCES if len(space.values) > 1 else 0

    def ask(self) -> Point | None:
        """The starts, then neighbours of the best point, then those of disturbances of it."""
        while True:
            point = self._new(self._starts) or self._new(self._near)
            if point is not None:
                return point
            if self._best is None or self._flying or not self._left:
                return None
            self._left -= 1
            self._here = None
            self._near.extend(self._disturbed(self._best[1]))

    def tell(self, point: Point, value: float | None) -> None:
        """A gain moves the search there at once."""
        self._flying.discard(_key(point))
        if value is None:
            return
        if self._best is None or value > self._best[0]:
            self._best = value, point
        if self._here is None or value > self._here[0]:
            self._here = value, point
            self._near = deque(self._neighbours(point))

    def _new(self, waiting: deque[Point]) -> Point | None:
        """The first of them that can run and was not asked for."""
        while waiting:
            point = waiting.popleft()
            key = _key(point)
            if key not in self._asked and self._space.promise(point) > 0:
                self._asked.add(key)
                self._flying.add(key)
                return point
        return None

    def _neighbours(self, point: Point) -> list[Point]:
        """Each name once before one of them comes again."""
        ranked = sorted(
            (-round(_LEVELS * self._space.promise(p)), _distance(point, p), i, p)
            for i, p in enumerate(self._space.neighbours(point))
        )
        taken: Counter[str] = Counter()
        turns: list[tuple[int, int, int, Point]] = []
        for at, (level, _, _, neighbour) in enumerate(ranked):
            name = next(n for n in neighbour if neighbour[n] != point[n])
            if level < 0:
                turns.append((taken[name], level, at, neighbour))
            taken[name] += 1
        return [turn[3] for turn in sorted(turns, key=lambda turn: turn[:3])]

    def _disturbed(self, point: Point) -> list[Point]:
        names = sorted(self._space.values)
        for _ in range(_DRAWS):
            drawn = self._rng.sample(names, 2)
            other = {**point, **{n: self._rng.choice(self._space.values[n]) for n in drawn}}
            if _key(other) not in self._asked and self._space.promise(other) > 0:
                return [other]
        return []


def _key(point: Point) -> tuple[tuple[str, int], ...]:
    return tuple(sorted(point.items()))


def _distance(one: Point, other: Point) -> float:
    return sum(abs(math.log2(max(other[n], 1) / max(one[n], 1))) for n in one)
