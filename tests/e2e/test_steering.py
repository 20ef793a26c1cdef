"""A search on a device that is paused, resumed, stopped, and given programs written by hand."""

from __future__ import annotations

import contextlib
import io
import random
import signal
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import optiml_magic
from optiml_magic import composition
from optiml_magic.background import Handle
from optiml_magic.cli import main
from optiml_magic.engines.pool import FEW, Pool
from optiml_magic.errors import UsageError
from optiml_magic.model.evaluation import Step
from optiml_magic.model.verdict import Outcome
from optiml_magic.optimize import optimize
from optiml_magic.replay import pool
from optiml_magic.replay.recording import Recording
from optiml_magic.result import Result
from optiml_magic.search.controls import Controls
from optiml_magic.search.loop import Batches
from optiml_magic.testing.cheats import cheat
from optiml_magic.testing.cheats.tasks import task as task_of_cheat
from optiml_magic.testing.kernels import known_task
from optiml_magic.timings import Timings
from tests.present import examples
from tests.processes import eventually

TASK = known_task("transpose_naive", rows=64, cols=48)
TILED = known_task("transpose_tiled").text
BUDGET = 6


@pytest.fixture(params=sampled(["pool", "inline"]))
def engine(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """That of a card stands on an emulated device as well; there it only costs time."""
    if request.param == "pool":

        def pooled(members: Any, evaluator: Any, goes_on: Callable[[], bool]) -> Pool:
            return Pool(evaluator, members.compilers, goes_on)

        def batches(_: Any) -> Batches:
            return FEW

        for module in (composition, sys.modules["optiml_magic.optimize"]):
            monkeypatch.setattr(module, "engine_of", pooled)
            monkeypatch.setattr(module, "batches_of", batches)
    return str(request.param)


def settings(home: Path, budget: int = BUDGET) -> optiml_magic.Settings:
    return optiml_magic.Settings(
        device="emulated:h200", llm="none", home=home, budget=budget, experience="none", seed=3
    )


def found(result: Result) -> list[tuple[Any, ...]]:
    """All that a search decided and found, without how long it took."""
    return [
        (s.candidate, e.verdict, e.measurement and e.measurement.seconds, e.reward, e.duplicate_of)
        for s in result.trajectory.steps
        for e in [s.evaluation]
    ]


def by_hand(result: Result) -> list[Step]:
    return [s for s in result.trajectory.steps if s.candidate.proposal.proposer == "hand"]


def test_pauses_at_random_moments_do_not_change_what_is_found(engine: str, home: Path) -> None:
    undisturbed = optimize(TASK, settings(home / "a"))
    rng, waited = random.Random(engine), 0.0
    for _ in range(examples(1, 20)):
        controls, over = Controls(), threading.Event()

        def disturb(controls: Controls = controls, over: threading.Event = over) -> None:
            while not over.wait(rng.uniform(0, 0.1)):
                controls.pause()
                over.wait(rng.uniform(0, 0.2))
                controls.resume()
            controls.resume()

        thread = threading.Thread(target=disturb)
        thread.start()
        try:
            paused = optimize(TASK, settings(home / "b"), controls=controls)
        finally:
            over.set()
            thread.join()
        assert found(paused) == found(undisturbed)
        waited += paused.summary.timings["paused"]
        assert paused.trajectory.stopped == undisturbed.trajectory.stopped
    assert waited > 0


def test_programs_written_by_hand_while_it_is_paused_come_next(engine: str, home: Path) -> None:
    """Right, wrong, not CUDA, and the same machine code again; each is judged like any other."""
    stages: list[str] = []

    def run(progress: Any, controls: Controls) -> Result:
        return optimize(
            TASK,
            settings(home, budget=12),
            progress=progress,
            controls=controls,
            timings=Timings(stages.append),
        )

    handle = Handle(run, name="transpose")
    with pytest.raises(UsageError, match="has not begun"):
        handle.suggest(TILED)
    assert eventually(lambda: handle.evaluations >= 1, 60)
    handle.pause()
    assert handle.state == "paused"
    assert eventually(lambda: stages[-1:] == ["paused"], 60)
    told = handle.evaluations
    refusals = {
        "__global__ void k(float* x) {}": "no launch directive",
        TASK.text: "does not change the program",
        f"{TASK.text}\n#include </etc/passwd>": "include CUDA's own headers",
        TASK.text.replace("grid(", "grit("): "line 1: the program was not taken",
    }
    for text, why in refusals.items():
        with pytest.raises(UsageError, match=why):
            handle.suggest(text, parent=0)
    with pytest.raises(UsageError, match="candidate 99 was not evaluated, or not yet"):
        handle.suggest(TILED, parent=99)
    handle.suggest(TILED)
    handle.suggest(TASK.text.replace("a[row * cols + col]", "a[col]"), parent=0)
    handle.suggest(TASK.text.replace("a[row", "b[row"), parent=0)
    handle.suggest(f"{TASK.text}\n// the same again", parent=0)
    assert handle.evaluations == told
    assert ".resume()" in repr(handle)
    handle.resume()
    result = handle.result(240)
    right, wrong, broken, same = by_hand(result)
    assert [s.candidate.parent for s in (wrong, broken, same)] == [0, 0, 0]
    outcomes = [s.evaluation.verdict.outcome for s in (right, wrong, broken)]
    assert outcomes == [Outcome.PASSED, Outcome.WRONG, Outcome.COMPILE_ERROR]
    assert same.evaluation.duplicate_of == 0
    first = right.candidate.number
    assert [s.candidate.number for s in (wrong, broken, same)] == [first + n for n in (1, 2, 3)]
    assert first <= (2 if engine == "inline" else 9)  # what was begun came before
    assert result.summary.timings["paused"] > 0
    counted = [s for s in result.trajectory.steps if s.evaluation.duplicate_of is None]
    assert len(counted) == 12
    assert handle.state == "done"
    with pytest.raises(UsageError, match="or it is over"):
        handle.suggest(TILED)
    journal = result.summary.journal
    assert journal is not None
    recording = Recording.read(journal)
    assert found(Result(recording.summary, lambda _: None)) == found(result)  # type: ignore[arg-type, return-value]
    out = io.StringIO()
    with contextlib.redirect_stdout(out):
        assert main(["replay", str(journal)]) == 0
    assert "edited by hand" in out.getvalue()
    again = pool.Pool.of([recording]).search("random", budget=99)
    assert right.candidate.text in {step.candidate.text for step in again.steps}
    resumed = optimize(TASK, settings(home, budget=12), resume=journal)
    assert found(resumed) == found(result)
    assert resumed.summary.timings["verify"] < result.summary.timings["verify"]


def test_a_stop_while_it_is_paused_ends_at_once(engine: str, home: Path) -> None:
    stages: list[str] = []
    handle = Handle(
        lambda progress, controls: optimize(
            TASK,
            settings(home, budget=40),
            progress=progress,
            controls=controls,
            timings=Timings(stages.append),
        ),
        name="transpose",
    )
    assert eventually(lambda: handle.evaluations >= 1, 60)
    handle.pause()
    assert eventually(lambda: stages[-1:] == ["paused"], 60)
    until = len(stages)
    handle.stop()
    assert handle.state in ("stopping", "done")
    result = handle.result(60)
    assert result.trajectory.stopped == "stopped"
    assert "propose" not in stages[until:]
    journal = result.summary.journal
    assert journal is not None
    steps = Recording.read(journal).steps()
    assert [s.candidate for s, _ in steps] == [s.candidate for s in result.trajectory.steps]


def test_a_cheat_written_by_hand_is_rejected_for_its_reason(home: Path) -> None:
    pair = cheat("constant_answer")
    controls = Controls()

    def progress(step: Step, _: Any) -> None:
        if step.candidate.number == 0:
            assert controls.suggest(0, pair.text) is None

    result = optimize(
        task_of_cheat(pair.task), settings(home, budget=2), progress=progress, controls=controls
    )
    (step,) = by_hand(result)
    assert pair.rejects(step.evaluation.verdict), step.evaluation.verdict
    assert result.trajectory.best is result.trajectory.root


KILLED = """
import os, signal, sys
from pathlib import Path
from optiml_magic.optimize import optimize
from optiml_magic.search.controls import Controls
from tests.e2e.test_steering import TASK, TILED, settings

controls = Controls()

def progress(step, _):
    if step.candidate.number == 2:
        assert controls.suggest(None, TILED) is None
        os.kill(os.getpid(), signal.SIGKILL)

optimize(TASK, settings(Path(sys.argv[1])), progress=progress, controls=controls)
"""


def test_killed_right_after_a_suggestion_the_resumed_run_evaluates_it(home: Path) -> None:
    done = subprocess.run([sys.executable, "-c", KILLED, str(home)], check=False, timeout=100)
    assert done.returncode == -signal.SIGKILL
    (journal,) = home.glob("runs/*.jsonl")
    recording = Recording.read(journal)
    assert len(list(recording.steps())) == 3
    assert "before a program written by hand; --resume evaluates it" in recording.summary.notes[-1]
    result = optimize(TASK, settings(home), resume=journal)
    (step,) = by_hand(result)
    assert (step.candidate.number, step.candidate.text) == (3, TILED)
    assert step.evaluation.verdict.passed
    assert not any("written by hand" in note for note in result.summary.notes)


def test_what_comes_after_the_last_evaluation_is_said_to_wait(home: Path) -> None:
    controls = Controls()

    def progress(step: Step, _: Any) -> None:
        if step.candidate.number == 1:
            assert controls.suggest(None, TILED) is None

    result = optimize(TASK, settings(home, budget=2), progress=progress, controls=controls)
    assert by_hand(result) == []
    assert any("before a program written by hand" in note for note in result.summary.notes)
    journal = result.summary.journal
    resumed = optimize(TASK, settings(home, budget=4), resume=journal)
    assert [step.candidate.number for step in by_hand(resumed)] == [2]


def test_a_search_that_is_asked_and_told_takes_programs_too(home: Path) -> None:
    with optiml_magic.Search(TASK, settings(home)) as search:
        with pytest.raises(UsageError, match="the input kernel was not evaluated, or not yet"):
            search.suggest(TILED)
        search.tell(search.timed(search.ask()[0], 1e-5))
        with pytest.raises(UsageError, match="does not change the program"):
            search.suggest(TASK.text)
        search.suggest(TILED)
        first, second = search.ask(2)
        assert (first.text, first.parent, first.proposal.proposer) == (TILED, 0, "hand")
        assert second.proposal.proposer != "hand"
        search.tell(search.timed(first, 1e-6), search.failed(second, "no"))
        search.suggest(f"{TILED}\n// more", parent=second.number)
        assert [candidate.parent for candidate in search.ask()] == [second.number]
        assert search.best.candidate.text == TILED
        journal = search.result.summary.journal
    assert journal is not None
    recording = Recording.read(journal)
    assert [s.candidate for s, _ in recording.steps()][1] == first
