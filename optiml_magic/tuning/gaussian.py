"""A Gaussian process over the points of a space: the next one is that which may gain most.

What is known of some points is carried to their neighbours, so that a few measurements tell the
better half of a space from the worse. First the starts that arithmetic gave, then points that
promise much and are far from each other, then the greatest expected improvement: of the whole
space and of the neighbours of the best point, in turn, so that it neither stays where it is nor
leaves before it has looked round.

Sources: Jones, Schonlau and Welch, "Efficient Global Optimization of Expensive Black-Box Functions"
(1998); Rasmussen and Williams, "Gaussian Processes for Machine Learning" (2006), algorithm 2.1;
that it suits 20 to 100 measurements of kernels, Tørring and Elster, "Analyzing Search Techniques
for Autotuning Image-based GPU Kernels" (2022). Ours: one more coordinate is the promise of a point
by arithmetic; one reach for all names is fitted; the turns; and the constants, chosen on public
records of tuned kernels.
"""

from __future__ import annotations

import math
import random
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from itertools import islice, product

import numpy as np
from numpy.typing import NDArray

from optiml_magic.model.space import Point, Space

_FAR = 8  # points that are told before a model is asked
_REACHES = (0.5, 1.0, 2.0, 4.0)  # of what is known of a point, in sides of the space
_NUGGET = 1e-4  # of the variance: what a point's value may differ by from itself
_LEAST = 2.0**-6  # promises below this are as good as each other
_HALVINGS = 2.0  # of a promise that are as far as one side of the space from the other
_DRAWS = 8192  # points that are looked at: all of a space that has no more, else drawn ones
_MOST = 2048  # of these that can run
_COMPARED = 256  # of these, to begin with: for one far from all that were asked for
_KNOWN = 256  # values that the model looks at, the best of them

Key = tuple[int, ...]
Floats = NDArray[np.float64]


class Gaussian:
    """The tuner of every program.

    Of a large space it knows as many points as it draws, and the neighbours of every best point.
    """

    def __init__(self, space: Space, starts: Sequence[Point] = (), *, seed: int = 0) -> None:
        self._space = space
        self._rng = random.Random(seed)  # noqa: S311  # a search, not a secret
        self._starts = deque(_within(space, start) for start in starts)
        self._rows: dict[Key, int] = {}  # of the points that can run, in the matrix of coordinates
        self._at: Floats = np.empty((0, len(space.values) + 1))
        self._asked = {self._key(space.present)}
        self._flying: set[Key] = set()
        self._told: dict[Key, float | None] = {}
        self._best: tuple[float, Key] = (-math.inf, ())
        self._guesses = 0
        self._unseen = islice(_runnable(space, _drawn(space, self._rng)), _MOST)

    def ask(self) -> Point | None:
        """A start, a point far from the others, or the one that may gain most; None at the end."""
        while self._starts:
            point = self._starts.popleft()
            if self._key(point) not in self._asked and self._space.promise(point) > 0:
                return self._sent(self._key(point))
        if not self._told:
            return None
        if not self._rows:
            self._learn(islice(self._unseen, _COMPARED))
        known = sum(value is not None for value in self._told.values())
        guessed = known >= 2 and len(self._told) + len(self._flying) >= _FAR
        fresh = self._fresh(whole=guessed)
        if not fresh:
            return None
        if not guessed:
            return self._sent(self._farthest(fresh))
        self._guesses += 1
        if self._guesses % 2 == 0:
            fresh = self._beside_best(fresh) or fresh
        return self._sent(fresh[int(np.argmax(self._gains(self._rows_of(fresh))))])

    def tell(self, point: Point, value: float | None) -> None:
        """What fails is worth as much as the worst that does not."""
        key = self._key(point)
        self._flying.discard(key)
        self._asked.add(key)
        self._told[key] = value
        if value is not None and value > self._best[0]:
            self._best = value, key
            if self._rows:
                self._learn(_runnable(self._space, self._space.neighbours(point)))

    def _key(self, point: Point) -> Key:
        return tuple(point[name] for name in self._space.values)

    def _point(self, key: Key) -> Point:
        return {**self._space.present, **dict(zip(self._space.values, key, strict=True))}

    def _sent(self, key: Key) -> Point:
        self._asked.add(key)
        self._flying.add(key)
        return self._point(key)

    def _fresh(self, *, whole: bool) -> list[Key]:
        """What was never asked for, of the whole space where less than that has nothing left."""
        if whole:
            self._learn(self._unseen)
        found = [key for key in self._rows if key not in self._asked]
        return found if found or whole else self._fresh(whole=True)

    def _beside_best(self, fresh: Sequence[Key]) -> list[Key]:
        """Those that differ from the best in one name, whatever its value."""
        best = self._best[1]
        return [key for key in fresh if sum(a != b for a, b in zip(key, best, strict=True)) == 1]

    def _learn(self, points: Iterable[tuple[Point, float]]) -> None:
        """Take in points with their promises; what was asked for is a place at least."""
        found = {self._key(point): promise for point, promise in points}
        for key in sorted(self._asked - self._rows.keys() - found.keys()):
            found[key] = self._space.promise(self._point(key))
        new = {key: promise for key, promise in found.items() if key not in self._rows}
        if not new:
            return
        sides = [np.log2(np.maximum(values, 0.5)) for values in self._space.values.values()]
        columns = [
            (np.log2(np.maximum(mine, 0.5)) - side.min()) / max(np.ptp(side), 1.0)
            for mine, side in zip(np.array([*new], np.float64).T, sides, strict=True)
        ]
        promises = np.log2(np.maximum([*new.values()], _LEAST)) / _HALVINGS
        self._rows |= {key: len(self._rows) + at for at, key in enumerate(new)}
        self._at = np.vstack([self._at, np.column_stack([*columns, promises])])

    def _rows_of(self, keys: Iterable[Key]) -> Floats:
        """Coordinates (keys, names + 1) of points that are known."""
        for key in (keys := [*keys]):
            if key not in self._rows:
                self._learn([])
        return self._at[[self._rows[key] for key in keys]]

    def _farthest(self, fresh: Sequence[Key]) -> Key:
        """From all that was asked for; one that promises half counts as half as far."""
        some = self._rng.sample(fresh, min(len(fresh), _COMPARED))
        known = self._rows_of([*self._told, *self._flying])
        apart = _distances(self._rows_of(some)[:, :-1], known[:, :-1])
        promises = [self._space.promise(self._point(key)) for key in some]
        return some[int(np.argmax(apart.min(axis=1) * promises))]

    def _gains(self, at: Floats) -> Floats:
        """The expected improvement at coordinates, in standard deviations of what is known."""
        worst = min(value for value in self._told.values() if value is not None)
        values = {key: worst if v is None else v for key, v in self._told.items()}
        best = sorted(values, key=lambda key: -values[key])[:_KNOWN]
        told = np.array([values[key] for key in best])
        # A point that is far worse than the others says no more than one that is worse.
        told = np.maximum(told, 2 * np.median(told) - told.max())
        scaled = (told - told.mean()) / (told.std() or 1.0)
        # What is in flight is taken for an average one, so that the next point lies elsewhere.
        scaled = np.append(scaled, np.zeros(len(self._flying)))
        known = self._rows_of([*best, *self._flying])
        apart = _distances(known, known)
        reach, factor = max(
            (_factored(apart, reach) for reach in _REACHES), key=partial(_fit, scaled)
        )
        across = _matern(_distances(known, at) / reach)
        half = np.linalg.solve(factor, np.column_stack([scaled, across]))
        variance = float(np.mean(half[:, 0] ** 2))
        mean = half[:, 1:].T @ half[:, 0]
        rest = np.maximum(1.0 - (half[:, 1:] ** 2).sum(axis=0), _NUGGET)
        return _improvement(mean - scaled.max(), np.sqrt(max(variance, _NUGGET) * rest))


def _within(space: Space, start: Point) -> Point:
    """The present point with those values of a start that the space has."""
    known = {name: v for name, v in start.items() if v in space.values.get(name, ())}
    return {**space.present, **known}


def _runnable(space: Space, points: Iterable[Point]) -> Iterator[tuple[Point, float]]:
    """Those that can run, as far as arithmetic tells, with their promises."""
    for point in points:
        promise = space.promise(point)
        if promise > 0:
            yield point, promise


def _drawn(space: Space, rng: random.Random) -> Iterator[Point]:
    """All points of a space in a random order, or as many as are looked at."""
    choices = [*space.values.values()]
    if math.prod(map(len, choices)) <= _DRAWS:
        every = rng.sample(whole := [*product(*choices)], len(whole))
    else:
        every = [tuple(map(rng.choice, choices)) for _ in range(_DRAWS)]
    for values in every:
        yield {**space.present, **dict(zip(space.values, values, strict=True))}


def _distances(one: Floats, other: Floats) -> Floats:
    """Euclidean, (rows of one, rows of the other)."""
    squares = (one**2).sum(axis=1)[:, None] + (other**2).sum(axis=1) - 2 * one @ other.T
    distances: Floats = np.sqrt(np.maximum(squares, 0.0))
    return distances


def _matern(far: Floats) -> Floats:
    """The Matérn correlation of order 3/2: smooth, but not so smooth that a step is a surprise."""
    correlation: Floats = (1 + math.sqrt(3) * far) * np.exp(-math.sqrt(3) * far)
    return correlation


def _factored(apart: Floats, reach: float) -> tuple[float, Floats]:
    """A reach and the Cholesky factor of the correlations that it makes of distances."""
    correlations = _matern(apart / reach) + _NUGGET * np.eye(len(apart))
    return reach, np.asarray(np.linalg.cholesky(correlations), np.float64)


def _fit(scaled: Floats, model: tuple[float, Floats]) -> float:
    """The logarithm of the likelihood of values under a model, for the variance that suits it."""
    half = np.linalg.solve(model[1], scaled)
    spread = max(float(np.mean(half**2)), _NUGGET)
    return -len(scaled) * math.log(spread) / 2 - float(np.log(np.diag(model[1])).sum())


def _improvement(ahead: Floats, deviation: Floats) -> Floats:
    """Of normal variables over 0, in the mean."""
    z = ahead / deviation
    density = np.exp(-(z**2) / 2) / math.sqrt(2 * math.pi)
    below = np.array([0.5 * (1 + math.erf(one / math.sqrt(2))) for one in z])
    improvement: Floats = ahead * below + deviation * density
    return improvement
