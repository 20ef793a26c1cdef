"""A search on a card that is paused, given a program, killed, resumed and stopped."""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from optiml_magic.background import Handle
from optiml_magic.model.verdict import Outcome
from optiml_magic.optimize import optimize
from optiml_magic.replay.recording import Recording
from optiml_magic.result import Result
from optiml_magic.search.controls import Controls
from optiml_magic.settings import Settings
from optiml_magic.testing.kernels import known_task
from optiml_magic.timings import Timings
from tests.processes import eventually

pytestmark = pytest.mark.gpu

TASK = known_task("transpose_naive", rows=1024, cols=768)
TILED = known_task("transpose_tiled").text


def settings(home: Path, **more: Any) -> Settings:
    given: dict[str, Any] = {
        "device": "cuda", "llm": "none", "experience": "none", "budget": 200, "seconds": 150,
        "home": home,
    }  # fmt: skip
    return Settings(**{**given, **more})


def begun(home: Path, stages: list[str]) -> Handle[Result]:
    def run(progress: Any, controls: Controls) -> Result:
        return optimize(
            TASK,
            settings(home),
            progress=progress,
            controls=controls,
            timings=Timings(stages.append),
        )

    handle = Handle(run, name="transpose")
    assert eventually(lambda: handle.evaluations >= 2 or handle.done, 60)
    if handle.done:
        handle.result()  # raises what it failed of
    return handle


def test_paused_it_evaluates_nothing_and_then_takes_what_was_written_by_hand(
    tmp_path: Path,
) -> None:
    stages: list[str] = []
    handle = begun(tmp_path, stages)
    handle.pause()
    assert eventually(lambda: stages[-1:] == ["paused"], 60)
    seen = handle.evaluations
    handle.suggest(TILED, parent=0)
    handle.suggest(TASK.text.replace("a[row * cols + col]", "a[col]"), parent=0)
    time.sleep(3)
    assert handle.evaluations == seen
    handle.resume()
    assert eventually(lambda: handle.evaluations >= seen + 2, 60)
    handle.stop()
    result = handle.result(60)
    right, wrong = [s for s in result.trajectory.steps if s.candidate.proposal.proposer == "hand"]
    assert right.evaluation.verdict.passed
    assert right.evaluation.measurement is not None
    assert right.evaluation.measurement.source == "events"
    assert wrong.evaluation.verdict.outcome is Outcome.WRONG
    assert result.summary.timings["paused"] >= 3
    assert result.trajectory.stopped == "stopped"
    assert result.speedup > 1.5


def test_a_stop_while_it_is_paused_ends_at_once_with_all_that_was_found(tmp_path: Path) -> None:
    stages: list[str] = []
    handle = begun(tmp_path, stages)
    handle.pause()
    assert eventually(lambda: stages[-1:] == ["paused"], 60)
    until = len(stages)
    handle.stop()
    result = handle.result(60)
    assert "propose" not in stages[until:]
    journal = result.summary.journal
    assert journal is not None
    kept = [step.candidate for step, _ in Recording.read(journal).steps()]
    assert kept == [step.candidate for step in result.trajectory.steps]


KILLED = """
import os, signal, sys
from pathlib import Path
from optiml_magic.optimize import optimize
from optiml_magic.search.controls import Controls
from tests.gpu.test_steering import TASK, TILED, settings

controls = Controls()

def progress(step, _):
    if step.candidate.number == 1:
        assert controls.suggest(0, TILED) is None
        os.kill(os.getpid(), signal.SIGKILL)

optimize(TASK, settings(Path(sys.argv[1])), progress=progress, controls=controls)
"""


def test_killed_right_after_a_suggestion_the_resumed_run_evaluates_it(tmp_path: Path) -> None:
    done = subprocess.run([sys.executable, "-c", KILLED, str(tmp_path)], check=False, timeout=100)
    assert done.returncode == -signal.SIGKILL
    (journal,) = tmp_path.glob("runs/*.jsonl")
    result = optimize(TASK, settings(tmp_path, budget=6), resume=journal)
    (step,) = [s for s in result.trajectory.steps if s.candidate.proposal.proposer == "hand"]
    assert step.candidate.text == TILED
    assert step.evaluation.verdict.passed
