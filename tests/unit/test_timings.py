"""Seconds by stage: each moment is in one stage alone, and together they are all of them."""

from __future__ import annotations

import threading
from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from optiml_magic.timings import STAGES, Timings


class Clock:
    """A clock that is set by hand."""

    now = 100.0

    def __call__(self) -> float:
        return self.now


def test_an_inner_stage_takes_its_time_from_the_outer() -> None:
    clock, entered = Clock(), list[str]()
    timings = Timings(entered.append, clock=clock)
    clock.now += 1
    with timings.stage("verify"):
        clock.now += 2
        with timings.stage("compile"):
            clock.now += 4
        clock.now += 8
    found = timings.seconds()
    assert (found["idle"], found["verify"], found["compile"]) == (1, 10, 4)
    assert timings.elapsed == 15
    assert entered == ["verify", "compile", "verify"]


def test_what_was_loaded_before_is_of_its_preparing() -> None:
    clock = Clock()
    timings = Timings(before=3.0, clock=clock)
    clock.now += 1
    assert timings.elapsed == 4
    assert (timings.seconds()["prepare"], timings.seconds()["idle"]) == (3, 1)


def test_what_it_is_paused_is_no_work() -> None:
    clock = Clock()
    timings = Timings(clock=clock)
    clock.now += 1
    with timings.stage("paused"):
        clock.now += 5
        assert timings.elapsed == 1
    clock.now += 2
    assert timings.elapsed == 3
    assert timings.seconds()["paused"] == 5


def test_what_fails_has_taken_its_time_too() -> None:
    clock = Clock()
    timings = Timings(clock=clock)
    with suppress(ValueError), timings.stage("measure"):
        clock.now += 3
        raise ValueError
    clock.now += 1
    assert timings.seconds()["measure"] == 3
    assert timings.seconds()["idle"] == 1


_Tree = st.recursive(
    st.floats(0, 10), lambda inner: st.lists(st.tuples(st.sampled_from(STAGES), inner), max_size=3)
)


@given(_Tree)
def test_all_stages_together_are_the_whole(tree: object) -> None:
    clock = Clock()
    timings = Timings(clock=clock)

    def spend(part: object) -> None:
        if isinstance(part, list):
            for stage, inner in part:
                with timings.stage(stage):
                    spend(inner)
        else:
            clock.now += part  # type: ignore[operator]

    spend(tree)
    found = timings.seconds()
    worked = sum(found.values()) - found["paused"]
    assert worked == pytest.approx(timings.elapsed)


def test_another_thread_costs_no_wall_time_of_its_own() -> None:
    clock = Clock()
    timings = Timings(clock=clock)

    def beside() -> None:
        with timings.stage("compile"):
            clock.now += 5

    thread = threading.Thread(target=beside)
    thread.start()
    thread.join()
    assert timings.seconds()["compile"] == 0
    assert timings.seconds()["idle"] == 5
