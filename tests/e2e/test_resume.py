"""kill -9 in the middle of a search, then resume: the same result, nothing lost, nothing repeated."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

from tests.processes import children, gone

TASK = """\
from optiml_magic.testing.kernels import known_task
task = known_task("transpose_naive", rows=128, cols=96)
"""


def command(task: Path, out: Path, *more: str) -> list[str]:
    return [
        sys.executable, "-m", "optiml_magic.cli", "optimize", str(task), "--budget", "8",
        "--llm", "none", "--seed", "3", "--json", str(out), *more,
    ]  # fmt: skip


def without_times(outcome: dict) -> dict:  # type: ignore[type-arg]
    return {k: v for k, v in outcome.items() if k not in ("wall_seconds", "journal")}


def test_a_killed_search_resumes_to_the_same_result(tmp_path: Path, home: Path) -> None:
    task = tmp_path / "task.py"
    task.write_text(TASK)
    whole = tmp_path / "whole.json"
    elsewhere = {**os.environ, "OPTIML_HOME": str(tmp_path / "elsewhere")}  # knows as little
    subprocess.run(command(task, whole), check=True, capture_output=True, env=elsewhere)
    process = subprocess.Popen(command(task, tmp_path / "never.json"), stdout=subprocess.DEVNULL)
    known = set(home.glob("runs/*.jsonl"))
    journal = _wait_for_evaluations(home, known, 4)
    os.kill(process.pid, signal.SIGKILL)
    process.wait()
    finished = journal.read_bytes().count(b'"evaluated":{')
    resumed = tmp_path / "resumed.json"
    subprocess.run(
        command(task, resumed, "--resume", str(journal)), check=True, capture_output=True
    )
    one, two = (json.loads(path.read_text()) for path in (whole, resumed))
    assert without_times(one) == without_times(two)
    lines = [json.loads(line) for line in journal.read_text().splitlines()]
    numbers = [x["evaluated"]["evaluation"]["candidate"] for x in lines if x["evaluated"]]
    assert numbers == list(range(len(numbers)))
    assert len(numbers) >= finished


def _wait_for_evaluations(home: Path, known: set[Path], count: int) -> Path:
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        for path in set(home.glob("runs/*.jsonl")) - known:
            if path.read_bytes().count(b'"evaluated":{') >= count:
                return path
        time.sleep(0.01)
    raise AssertionError("the search wrote no journal")


def test_no_device_host_outlives_a_killed_search(tmp_path: Path, home: Path) -> None:
    task = tmp_path / "task.py"
    task.write_text(TASK)
    process = subprocess.Popen(command(task, tmp_path / "never.json"), stdout=subprocess.DEVNULL)
    _wait_for_evaluations(home, set(), 1)
    hosts = children(process.pid)
    assert hosts
    os.kill(process.pid, signal.SIGKILL)
    process.wait()
    assert gone(hosts)
