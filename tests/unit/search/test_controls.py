"""A search is stopped, paused and resumed from other threads, and its result does not tell."""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from benchmarks.search.landscapes import LANDSCAPES
from optiml_magic.errors import UsageError
from optiml_magic.model.candidate import Candidate
from optiml_magic.model.evaluation import Evaluation, Trajectory
from optiml_magic.model.refusal import Refusal
from optiml_magic.model.suggestion import Suggestion
from optiml_magic.search.controls import Controls
from optiml_magic.search.loop import ONE, Batches, Budget, Collect, at_once, run
from optiml_magic.search.policies import POLICIES
from optiml_magic.search.search import TreeSearch
from optiml_magic.timings import Stage, Timings
from tests.present import examples
from tests.processes import eventually
from tests.unit.search import toy

ROOT = toy.proposal("0" * toy.BITS)
BATCHES = pytest.mark.parametrize("batches", [ONE, Batches(4, 1)], ids=["one", "batches"])


def search() -> TreeSearch:
    return TreeSearch(ROOT, toy.expand)


def engine(controls: Controls, timings: Timings, seen: list[int], pause: int) -> Any:
    """Evaluates when it begins, as the engines do, and asks between two candidates of a batch.

    While it is at the ``pause``-th somebody pauses the search.
    """

    def begin(candidates: Sequence[Candidate]) -> Collect:
        done: list[Evaluation] = []
        for candidate in candidates:
            if done and not controls.goes_on(timings):
                break
            seen.append(candidate.number)
            if len(seen) == pause:
                controls.pause()
            done.append(toy.evaluation(candidate))
        return lambda: done

    return begin


class Running:
    """A toy search in a thread, paused while it is at its ``pause``-th evaluation."""

    def __init__(self, batches: Batches, budget: Budget, *, pause: int) -> None:
        self.controls, self.seen, self.stages = Controls(), list[int](), list[Stage]()
        self.found: list[Trajectory] = []
        self.asked = 0

        def work() -> None:
            self.timings = timings = Timings(self.stages.append)
            begin = engine(self.controls, timings, self.seen, pause)
            tree, controls = search(), self.controls
            ask = tree.ask

            def counted(count: int) -> list[Candidate]:
                self.asked += 1
                return ask(count)

            tree.ask = counted  # type: ignore[method-assign]
            self.found.append(
                run(tree, begin, budget, batches=batches, controls=controls, timings=timings)
            )

        self.thread = threading.Thread(target=work, daemon=True)
        self.thread.start()
        assert eventually(lambda: self.stages[-1:] == ["paused"], 10)

    def ended(self) -> Trajectory:
        self.thread.join(10)
        return self.found[0]


@BATCHES
def test_while_it_is_paused_nothing_is_evaluated_or_proposed(batches: Batches) -> None:
    running = Running(batches, Budget(30), pause=7)
    assert len(running.seen) == 7
    seen, asked, elapsed = list(running.seen), running.asked, running.timings.elapsed
    time.sleep(0.1)
    assert (running.seen, running.asked) == (seen, asked)
    assert running.timings.elapsed == pytest.approx(elapsed, abs=1e-6)
    running.controls.resume()
    undisturbed = run(search(), at_once(toy.evaluate), Budget(30), batches=batches)
    assert running.ended() == undisturbed
    assert running.timings.seconds()["paused"] >= 0.1


@BATCHES
def test_a_stop_while_it_is_paused_ends_it_at_once(batches: Batches) -> None:
    running = Running(batches, Budget(60), pause=7)  # within a batch
    running.controls.stop()
    trajectory = running.ended()
    assert trajectory.stopped == "stopped"
    assert [step.candidate.number for step in trajectory.steps] == running.seen == [*range(7)]


def test_a_stop_before_the_input_kernel_was_evaluated_waits_for_it() -> None:
    controls = Controls()
    controls.pause()
    controls.stop()
    trajectory = run(search(), at_once(toy.evaluate), Budget(9), controls=controls)
    assert (len(trajectory.steps), trajectory.stopped) == (1, "stopped")
    assert not controls.paused  # once it is stopped it no longer waits


@BATCHES
def test_the_budget_of_seconds_counts_work_alone(batches: Batches) -> None:
    """Paused for longer than all its seconds it evaluates as many as without."""
    running = Running(batches, Budget(20, seconds=1.0), pause=3)
    time.sleep(1.2)
    running.controls.resume()
    assert running.ended().stopped == "budget of 20 evaluations spent"


def test_a_pause_with_the_last_evaluation_holds_the_end_back() -> None:
    running = Running(ONE, Budget(3), pause=3)
    assert not running.found
    running.controls.resume()
    assert running.ended().stopped == "budget of 3 evaluations spent"


@settings(max_examples=examples(20, 1000), deadline=None)
@given(
    landscape=st.sampled_from(sorted(LANDSCAPES)),
    policy=st.sampled_from(sorted(POLICIES)),
    batches=st.sampled_from([ONE, Batches(3, 0), Batches(4, 1), Batches(2, 3)]),
    seed=st.integers(0, 99),
)
def test_pauses_at_random_moments_change_nothing(
    landscape: str, policy: str, batches: Batches, seed: int
) -> None:
    problem = LANDSCAPES[landscape](seed)
    make: Callable[[], TreeSearch] = partial(
        TreeSearch, problem.root, problem.expand, problem.spaces, seed=seed
    )
    chosen = POLICIES[policy]
    undisturbed = run(make(policy=chosen()), at_once(problem.evaluate), Budget(24), batches=batches)
    controls, over = Controls(), threading.Event()
    rng = random.Random(seed)

    def disturb() -> None:
        while not over.wait(rng.uniform(0, 0.0005)):
            controls.pause()
            over.wait(rng.uniform(0, 0.0005))
            controls.resume()
        controls.resume()

    thread = threading.Thread(target=disturb)
    thread.start()
    try:
        found = run(
            make(policy=chosen()),
            at_once(problem.evaluate),
            Budget(24),
            batches=batches,
            controls=controls,
        )
    finally:
        over.set()
        thread.join()
    assert found == undisturbed


def accept(number: int | None, text: str) -> Suggestion | Refusal:
    return Refusal("hand", "no kernel", 3) if text == "bad" else Suggestion(number or 0, text)


def test_what_cannot_be_taken_is_said_with_its_line_and_the_rest_goes_on() -> None:
    controls, kept = Controls(), list[Suggestion]()
    early = controls.suggest(0, "text")
    assert early is not None
    assert "has not begun, or it is over" in early.reason
    with controls.accepting(accept, kept.append):
        assert controls.suggest(0, "bad") == Refusal("hand", "no kernel", 3)
        with pytest.raises(UsageError, match="line 3: the program was not taken: no kernel"):
            controls.require(None, "bad")
        assert controls.suggest(None, "good") is None
    assert controls.suggest(0, "late") == early
    assert kept == [Suggestion(0, "good")]
    assert (controls.take(), controls.take()) == (kept[0], None)


def test_suggestions_of_many_threads_are_all_kept_in_the_order_in_which_they_are_taken() -> None:
    controls, kept, taken = Controls(), list[Suggestion](), list[Suggestion]()

    def suggest(of: int) -> None:
        for number in range(200):
            assert controls.suggest(of, f"{of} {number}") is None

    with controls.accepting(accept, kept.append):
        threads = [threading.Thread(target=suggest, args=(of,)) for of in range(4)]
        for thread in threads:
            thread.start()
        while len(taken) < 800:
            if (one := controls.take()) is not None:
                taken.append(one)
        for thread in threads:
            thread.join()
    assert taken == kept
    for of in range(4):
        assert [s.text for s in taken if s.parent == of] == [f"{of} {n}" for n in range(200)]


def test_ctrl_c_ends_a_search_that_is_paused(monkeypatch: pytest.MonkeyPatch) -> None:
    controls = Controls()

    def progress(*_: object) -> None:
        controls.pause()

    def interrupted(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(controls._changed, "wait_for", interrupted)
    trajectory = run(
        search(), at_once(toy.evaluate), Budget(9), controls=controls, progress=progress
    )
    assert (len(trajectory.steps), trajectory.stopped) == (1, "interrupted")
