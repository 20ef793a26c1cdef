from __future__ import annotations

import random
import statistics
from collections.abc import Iterator
from itertools import product

from hypothesis import given, settings
from hypothesis import strategies as st
from present import examples

from optiml_magic.model.space import Point, Space
from optiml_magic.tuning.gaussian import Gaussian

VALUES = {"A": (1, 2, 4, 8, 16), "B": (1, 2, 4, 8), "C": (1, 2, 3, 4)}


def space(promise=lambda _: 1.0) -> Space:  # type: ignore[no-untyped-def]
    return Space(VALUES, {"A": 1, "B": 1, "C": 1}, promise, str)


def value(point: Point) -> float:
    """Two names pull at each other: the best is A = 8, B = 4, C = 2."""
    return -(abs(point["A"] - 2 * point["B"]) + abs(point["B"] - 4) + 3 * abs(point["C"] - 2))


def searched(tuner: Gaussian, count: int, worth=value) -> list[Point]:  # type: ignore[no-untyped-def]
    tuner.tell(space().present, worth(space().present))
    found: list[Point] = []
    while len(found) < count and (point := tuner.ask()):
        found.append(point)
        tuner.tell(point, worth(point))
    return found


def test_it_begins_where_it_is_told_to_and_asks_for_each_point_once() -> None:
    starts = ({"A": 8}, {"A": 8, "B": 8}, {"A": 8})
    found = searched(Gaussian(space(), starts), 100)
    assert found[:2] == [{"A": 8, "B": 1, "C": 1}, {"A": 8, "B": 8, "C": 1}]
    assert len({tuple(sorted(p.items())) for p in found}) == len(found) == 79


def test_what_cannot_run_is_never_asked_for() -> None:
    found = searched(Gaussian(space(lambda p: float(p["A"] * p["B"] <= 16))), 100)
    assert found
    assert all(p["A"] * p["B"] <= 16 for p in found)


def test_the_first_points_are_far_from_each_other() -> None:
    first = searched(Gaussian(space()), 3)
    assert all(sum(p[n] != q[n] for n in VALUES) > 1 for p in first for q in first if p is not q)


def test_of_points_as_far_those_that_promise_more_come_first() -> None:
    tuner = Gaussian(space(lambda p: 1.0 if p["C"] in (1, 4) else 0.1))
    assert {p["C"] for p in searched(tuner, 5)} <= {1, 4}


def test_several_may_be_in_flight_and_all_may_fail() -> None:
    tuner = Gaussian(space())
    assert tuner.ask() is None  # nothing is known yet
    tuner.tell(space().present, 0.0)
    flying = [tuner.ask() for _ in range(10)]
    assert None not in flying
    for point in flying:
        assert point is not None
        tuner.tell(point, None)
    assert tuner.ask() not in [None, *flying]


def test_with_a_model_those_in_flight_lie_apart() -> None:
    tuner = Gaussian(space())
    searched(tuner, 10)
    flying = [tuner.ask() for _ in range(5)]
    assert len({tuple(sorted(p.items())) for p in flying if p}) == 5


def test_equal_values_say_nothing_and_are_no_fault() -> None:
    assert len(searched(Gaussian(space()), 100, lambda _: 1.0)) == 79


def test_a_space_of_one_name_is_gone_through() -> None:
    one = Space({"A": (32, 64, 128)}, {"A": 64}, lambda _: 1.0, str)
    tuner = Gaussian(one)
    tuner.tell(one.present, 0.0)
    assert {(tuner.ask() or {})["A"], (tuner.ask() or {})["A"]} == {32, 128}
    assert tuner.ask() is None


def test_names_that_are_not_open_keep_their_values() -> None:
    part = Space({"A": (1, 2, 4)}, {"A": 1, "FIXED": 7}, lambda _: 1.0, str)
    tuner = Gaussian(part)
    tuner.tell(part.present, 0.0)
    point = tuner.ask()
    assert point is not None
    assert point["FIXED"] == 7


def test_of_a_large_space_a_part_is_drawn_and_the_best_ones_neighbours_come_to_it() -> None:
    names = [f"T{at}" for at in range(8)]
    wide = Space(dict.fromkeys(names, (1, 2, 4, 8)), dict.fromkeys(names, 1), lambda _: 1.0, str)
    tuner = Gaussian(wide)
    tuner.tell(wide.present, 0.0)
    best = 0.0
    for _ in range(40):
        point = tuner.ask()
        assert point is not None
        worth = -sum(abs(v - 4) for v in point.values()) + 24.0
        best = max(best, worth)
        tuner.tell(point, worth)
    assert best >= 17  # of 24; of as many drawn at random the best has 15


@settings(max_examples=examples(3, 300))
@given(seed=st.integers(0, 1000))
def test_the_same_seed_and_the_same_values_give_the_same_points(seed: int) -> None:
    assert searched(Gaussian(space(), seed=seed), 20) == searched(Gaussian(space(), seed=seed), 20)


def test_it_needs_fewer_points_than_drawing_them() -> None:
    sizes = tuple(2**i for i in range(8))
    wide = Space(dict.fromkeys("ABC", sizes), dict.fromkeys("ABC", 1), lambda _: 1.0, str)
    points = [dict(zip("ABC", p, strict=True)) for p in product(sizes, repeat=3)]
    best = max(map(value, points))

    def needed(found: Iterator[Point]) -> int:
        return next((i for i, p in enumerate(found) if value(p) == best), len(points))

    def asked(tuner: Gaussian) -> Iterator[Point]:
        tuner.tell(wide.present, value(wide.present))
        while point := tuner.ask():
            yield point
            tuner.tell(point, value(point))

    ours = [needed(asked(Gaussian(wide, seed=seed))) for seed in range(5)]
    drawn = [needed(iter(random.Random(s).sample(points, len(points)))) for s in range(5)]
    assert statistics.median(ours) < statistics.median(drawn) / 2
