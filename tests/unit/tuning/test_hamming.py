from __future__ import annotations

import random
import statistics
from collections.abc import Iterator
from itertools import product

from hypothesis import given
from hypothesis import strategies as st

from optiml_magic.model.space import Point, Space
from optiml_magic.tuning.hamming import Hamming

VALUES = {"A": (1, 2, 4, 8, 16), "B": (1, 2, 4, 8), "C": (1, 2, 3, 4)}


def space(promise=lambda _: 1.0) -> Space:  # type: ignore[no-untyped-def]
    return Space(VALUES, {"A": 1, "B": 1, "C": 1}, promise, str)


def value(point: Point) -> float:
    """Two names pull at each other: the best is A = 8, B = 4, C = 2."""
    return -(abs(point["A"] - 2 * point["B"]) + abs(point["B"] - 4) + 3 * abs(point["C"] - 2))


def searched(tuner: Hamming, count: int) -> list[Point]:
    tuner.tell(space().present, value(space().present))
    found: list[Point] = []
    while len(found) < count and (point := tuner.ask()):
        found.append(point)
        tuner.tell(point, value(point))
    return found


def test_it_begins_where_it_is_told_to_and_never_asks_twice() -> None:
    starts = ({"A": 8}, {"A": 8, "B": 8}, {"A": 8})
    found = searched(Hamming(space(), starts), 100)
    assert found[:2] == [{"A": 8, "B": 1, "C": 1}, {"A": 8, "B": 8, "C": 1}]
    assert len({tuple(sorted(p.items())) for p in found}) == len(found)


def test_what_cannot_run_is_never_asked_for() -> None:
    found = searched(Hamming(space(lambda p: float(p["A"] * p["B"] <= 16))), 100)
    assert found
    assert all(p["A"] * p["B"] <= 16 for p in found)


def test_a_gain_moves_it_at_once() -> None:
    tuner = Hamming(space())
    tuner.tell(space().present, 0.0)
    first = tuner.ask()
    assert first is not None
    tuner.tell(first, 1.0)
    second = tuner.ask()
    assert second is not None
    assert sum(second[n] != first[n] for n in VALUES) == 1


def test_several_may_be_in_flight_and_failures_are_no_place_to_be() -> None:
    tuner = Hamming(space())
    assert tuner.ask() is None  # nothing is known yet
    tuner.tell(space().present, 0.0)
    flying = [tuner.ask() for _ in range(10)]
    assert None not in flying
    for point in flying:
        assert point is not None
        tuner.tell(point, None)
    around = tuner.ask()
    assert around is None or sum(around[n] != 1 for n in VALUES) <= 2


@given(seed=st.integers(0, 1000))
def test_it_ends(seed: int) -> None:
    found = searched(Hamming(space(), seed=seed), 1000)
    assert len(found) < len(list(product(*VALUES.values())))


def test_it_needs_fewer_points_than_drawing_them() -> None:
    sizes = tuple(2**i for i in range(8))
    wide = Space(dict.fromkeys("ABC", sizes), dict.fromkeys("ABC", 1), lambda _: 1.0, str)
    points = [dict(zip("ABC", p, strict=True)) for p in product(sizes, repeat=3)]
    best = max(map(value, points))

    def needed(found: Iterator[Point]) -> int:
        return next((i for i, p in enumerate(found) if value(p) == best), len(points))

    def asked(tuner: Hamming) -> Iterator[Point]:
        tuner.tell(wide.present, value(wide.present))
        while point := tuner.ask():
            yield point
            tuner.tell(point, value(point))

    ours = [needed(asked(Hamming(wide, seed=seed))) for seed in range(20)]
    drawn = [needed(iter(random.Random(s).sample(points, len(points)))) for s in range(20)]
    assert statistics.median(ours) < statistics.median(drawn) / 2
