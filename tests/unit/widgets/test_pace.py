from __future__ import annotations

import logging
import threading
import time

import pytest

from optiml_magic.widgets.pace import Pace


class Acts:
    def __init__(self, rest: float = 0.0) -> None:
        self.rest = rest
        self.count = 0
        self.once = threading.Event()

    def __call__(self) -> float:
        self.count += 1
        self.once.set()
        return self.rest


def test_a_thousand_asks_are_few_acts() -> None:
    acts = Acts(rest=0.1)
    pace = Pace(acts, beat=60)
    pace.start()
    until = time.monotonic() + 0.35
    while time.monotonic() < until:
        pace.ask()
    pace.close()
    assert 1 <= acts.count <= 5


def test_it_acts_soon_after_it_was_asked_and_not_before() -> None:
    acts = Acts()
    pace = Pace(acts, beat=60)
    pace.start()
    assert not acts.once.wait(0.1)
    pace.ask()
    assert acts.once.wait(5)
    pace.close()


def test_it_beats_unasked() -> None:
    acts = Acts()
    pace = Pace(acts, beat=0.02)
    pace.start()
    assert acts.once.wait(5)
    pace.close()


def test_closing_ends_the_thread_even_in_a_long_rest() -> None:
    acts = Acts(rest=60)
    pace = Pace(acts)
    pace.start()
    pace.ask()
    assert acts.once.wait(5)
    began = time.monotonic()
    pace.close()
    assert time.monotonic() - began < 2
    assert not pace._thread.is_alive()


def test_closing_before_the_start_or_twice_is_no_harm() -> None:
    pace = Pace(Acts())
    pace.close()
    pace.close()


def test_an_act_that_fails_is_logged_and_ends_the_view_alone(
    caplog: pytest.LogCaptureFixture,
) -> None:
    def act() -> float:
        raise OSError("the socket is gone")

    pace = Pace(act)
    with caplog.at_level(logging.WARNING):
        pace.start()
        pace.ask()
        pace._thread.join(5)
    assert "the search goes on" in caplog.text
    pace.ask()
    pace.close()
