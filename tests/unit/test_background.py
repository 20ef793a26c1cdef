from __future__ import annotations

import subprocess
import sys
import threading
import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from optiml_magic.background import Handle, Progress
from optiml_magic.errors import UsageError
from optiml_magic.model.refusal import Refusal
from optiml_magic.model.suggestion import Suggestion
from optiml_magic.search.controls import Controls
from optiml_magic.timings import Timings
from tests.unit.widgets.steps import Outcomes, search, step

ROOT = Path(__file__).parents[2]


class Held:
    """A search that waits until it is let go, or stopped."""

    def __init__(self, outcome: Any = 42) -> None:
        self.go = threading.Event()
        self.outcome = outcome

    def __call__(self, progress: Progress, controls: Controls) -> Any:
        progress(step(0), {})
        while not self.go.wait(0.005):
            if controls.stopped:
                return "stopped early"
        if isinstance(self.outcome, BaseException):
            raise self.outcome
        return self.outcome


def test_it_returns_at_once_and_has_the_result_later() -> None:
    held = Held()
    handle = Handle(held, name="transpose")
    assert not handle.done
    assert handle.state == "running"
    held.go.set()
    assert handle.result(5) == 42
    assert handle.done
    assert handle.state == "done"
    assert handle.evaluations == 1


def test_waiting_has_a_limit() -> None:
    handle = Handle(Held(), name="transpose")
    with pytest.raises(TimeoutError):
        handle.result(0.01)
    handle.stop()
    assert handle.result(5) == "stopped early"


def test_stop_is_asked_for_and_then_done() -> None:
    entered, leave = threading.Event(), threading.Event()

    def slow(progress: Progress, controls: Controls) -> bool:
        entered.set()
        leave.wait(5)
        return controls.stopped

    handle = Handle(slow, name="transpose")
    entered.wait(5)
    handle.stop()
    assert handle.state == "stopping"
    leave.set()
    assert handle.result(5) is True


@pytest.mark.parametrize("error", [ValueError("a {brace}"), KeyboardInterrupt(), SystemExit(3)])
def test_what_the_search_raises_is_raised_by_result_each_time(error: BaseException) -> None:
    held = Held(error)
    held.go.set()
    handle = Handle(held, name="transpose")
    for _ in range(2):
        with pytest.raises(type(error)) as raised:
            handle.result(5)
        assert raised.value is error
    assert handle.state == "failed"
    assert type(error).__name__ in repr(handle)


def test_it_shows_its_state_and_then_its_result() -> None:
    shown = {"text/plain": "2x", "text/html": "<b>2x</b>"}
    held = Held(SimpleNamespace(_repr_mimebundle_=lambda **_: shown))
    handle = Handle(held, name="transpose")
    assert handle._repr_mimebundle_().keys() == {"text/plain"}
    while not handle.evaluations:
        time.sleep(0.001)
    assert "transpose: running, 1 evaluation in" in repr(handle)
    assert ".stop() ends it" in repr(handle)
    held.go.set()
    handle.result(5)
    assert "transpose: done, 1 evaluation in" in repr(handle)
    assert handle._repr_mimebundle_(include=None, exclude=None) == shown


def test_what_it_shows_at_first_does_not_grow_old() -> None:
    entered, leave = threading.Event(), threading.Event()

    def slow(progress: Progress, controls: Controls) -> int:
        entered.set()
        leave.wait(5)
        return 1

    handle = Handle(slow, name="transpose")
    entered.wait(5)
    assert repr(handle) == "transpose: search begun; .result() waits for it, .stop() ends it"
    leave.set()
    handle.result(5)
    assert repr(handle).startswith("transpose: done, 0 evaluations in")


def test_a_result_without_views_shows_as_text() -> None:
    held = Held()
    held.go.set()
    handle = Handle(held, name="transpose")
    handle.result(5)
    assert handle._repr_mimebundle_()["text/plain"].startswith("transpose: done")


def test_the_clock_stands_when_it_is_done() -> None:
    held = Held()
    held.go.set()
    handle = Handle(held, name="transpose")
    handle.result(5)
    spent = handle.seconds
    time.sleep(0.02)
    assert handle.seconds == spent


def test_a_real_search_is_stopped_with_what_it_found() -> None:
    def run(progress: Progress, controls: Controls) -> Outcomes:
        return search(progress, controls, pause=0.01)

    handle = Handle(run, name="toy")
    while handle.evaluations < 3:
        time.sleep(0.005)
    handle.stop()
    trajectory = handle.result(5).summary.trajectory
    assert trajectory.stopped == "stopped"
    assert 3 <= len(trajectory.steps) <= 6


def test_a_real_search_is_paused_resumed_and_given_a_program() -> None:
    def run(progress: Progress, controls: Controls) -> Outcomes:
        def check(parent: int | None, program: str) -> Suggestion | Refusal:
            return Suggestion(parent or 7, program) if program else Refusal("hand", "empty", 4)

        with controls.accepting(check, kept.append):
            return search(progress, controls, pause=0.002)

    kept: list[Suggestion] = []
    handle = Handle(run, name="toy")
    while handle.evaluations < 3:
        time.sleep(0.001)
    handle.pause()
    assert handle.state == "paused"
    time.sleep(0.05)
    done = handle.evaluations
    with pytest.raises(UsageError, match="line 4: the program was not taken: empty"):
        handle.suggest("")
    handle.suggest("of the best")
    handle.suggest("of another", parent=2)
    time.sleep(0.05)
    assert handle.evaluations == done
    assert "toy: paused, " in repr(handle)
    assert ".resume() lets it go on, .stop() ends it" in repr(handle)
    handle.resume()
    assert handle.state == "running"
    assert len(handle.result(10).summary.trajectory.steps) == 40
    assert kept == [Suggestion(7, "of the best"), Suggestion(2, "of another")]


def test_a_search_that_is_paused_ends_when_it_is_stopped() -> None:
    entered = threading.Event()

    def run(progress: Progress, controls: Controls) -> bool:
        entered.set()
        return controls.goes_on(Timings())

    handle = Handle(lambda progress, controls: [entered.wait(5), run(progress, controls)], name="x")
    handle.pause()
    entered.set()
    handle.stop()
    assert handle.result(5)[1] is False


PROGRAM = """
import time
from optiml_magic.background import Handle

def run(progress, controls):
    try:
        while not ({obeys} and controls.stopped):
            time.sleep(0.01)
    finally:
        print("closed what it held", flush=True)

handle = Handle(run, name="x")
time.sleep(0.05)
"""


@pytest.mark.parametrize(("obeys", "said"), [(True, "closed what it held\n"), (False, "")])
def test_leaving_the_interpreter_stops_it_and_never_hangs(obeys: bool, said: str) -> None:
    began = time.monotonic()
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM.format(obeys=obeys)],
        capture_output=True,
        text=True,
        check=False,
        cwd=ROOT,
        timeout=30,
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, said, "")
    assert time.monotonic() - began < 10


def test_it_needs_no_widgets() -> None:
    program = (
        "import sys; sys.modules['ipywidgets'] = sys.modules['anywidget'] = None\n"
        "from optiml_magic.background import Handle\n"
        "print(Handle(lambda progress, controls: 7, name='x').result(5))\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True, cwd=ROOT
    )
    assert done.stdout == "7\n"
