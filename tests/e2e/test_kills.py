"""kill -9 at random moments, of a search, of its children, of a notebook's kernel; then resume.

No finished evaluation is lost, none is made twice, and the result is that of a search that nobody
disturbed. No process outlives the one that was killed.
"""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from jupyter_client.manager import KernelManager

from benchmarks.gpu.kills import faults
from optiml_magic.journal import Ended, Line
from optiml_magic.journal.lines import Evaluated, Made
from optiml_magic.model.candidate import Candidate, Proposal
from optiml_magic.model.evaluation import Evaluation
from optiml_magic.model.verdict import Outcome, Verdict
from tests.present import SOAK, examples
from tests.processes import children, eventually, gone, runs

TASK = """\
from optiml_magic.testing.kernels import known_task
task = known_task("transpose_naive", rows=128, cols=96)
"""
BUDGET = examples(4, 8)
ROUNDS = examples(1, 17)  # of each of the three victims: 51 kills


def command(folder: Path, out: Path, *more: str) -> list[str]:
    return [
        sys.executable, "-m", "optiml_magic.cli", "optimize", str(folder / "task.py"), "--budget",
        str(BUDGET), "--llm", "none", "--seed", "3", "--json", str(out), *more,
    ]  # fmt: skip


def numbers(journal: Path) -> list[int]:
    """The candidates whose evaluations stand in the journal, in order."""
    whole = journal.read_bytes().rpartition(b"\n")[0]
    lines = [json.loads(line) for line in whole.splitlines()]
    return [x["evaluated"]["evaluation"]["candidate"] for x in lines if x["evaluated"]]


def counted(journal: Path) -> int:
    """How many of them were no duplicates, which a budget does not count."""
    lines = map(json.loads, journal.read_bytes().splitlines())
    found = [x["evaluated"]["evaluation"] for x in lines if x["evaluated"]]
    return sum(evaluation.get("duplicate_of") is None for evaluation in found)


def outcome(path: Path) -> dict[str, object]:
    """What a search found, less its times and the note of one that was killed after its last one."""
    found = json.loads(path.read_text())
    found["notes"] = [
        note for note in found["notes"] if not note.startswith("all evaluations were")
    ]
    return {k: v for k, v in found.items() if k not in ("wall_seconds", "timings", "journal")}


@pytest.fixture
def home(home: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """For make soak its caches are its own: a search may also be killed while it compiles."""
    if SOAK:
        monkeypatch.delenv("OPTIML_CACHE")
    home.mkdir()
    return home


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("kills")
    (folder / "task.py").write_text(TASK)
    return folder


@pytest.fixture(scope="module")
def undisturbed(folder: Path) -> dict[str, object]:
    env = {**os.environ, "OPTIML_HOME": str(folder / "home")}
    subprocess.run(command(folder, folder / "whole.json"), check=True, capture_output=True, env=env)
    return outcome(folder / "whole.json")


def journal_of(home: Path) -> Path | None:
    return next(iter(home.glob("runs/*.jsonl")), None)


def random_moment(home: Path, seed: int) -> None:
    """Wait for some evaluations, none perhaps, and then a little."""
    rng = random.Random(seed)
    wanted = rng.randrange(BUDGET - 1) if seed else BUDGET // 2
    if wanted:
        assert eventually(lambda: (j := journal_of(home)) and len(numbers(j)) >= wanted, 60)
    time.sleep(rng.uniform(0, 0.4 if wanted else 4))


def resumed(folder: Path, home: Path, journal: Path) -> dict[str, object]:
    """The outcome of a resumed search, after a look at what its journal lost or repeated."""
    before = numbers(journal)
    done = subprocess.run(
        command(folder, home / "out.json", "--resume", str(journal)),
        check=False, capture_output=True, text=True,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    after = numbers(journal)
    assert after[: len(before)] == before
    assert after == list(range(len(after)))
    return outcome(home / "out.json")


@pytest.mark.parametrize("round_", range(ROUNDS))
def test_the_search_is_killed(
    folder: Path, undisturbed: dict[str, object], home: Path, round_: int
) -> None:
    process = subprocess.Popen(command(folder, home / "never.json"), stdout=subprocess.DEVNULL)
    random_moment(home, round_)
    hosts = children(process.pid)
    os.kill(process.pid, signal.SIGKILL)
    process.wait()
    assert gone(hosts)
    journal = journal_of(home)
    if journal is not None and journal.stat().st_size:
        assert resumed(folder, home, journal) == undisturbed


@pytest.mark.slow
@pytest.mark.parametrize("round_", range(ROUNDS))
def test_its_children_are_killed(folder: Path, home: Path, round_: int) -> None:
    """The search goes on by itself to the end of its budget; the candidate in flight may fail."""
    process = subprocess.Popen(
        command(folder, home / "out.json"), stdout=subprocess.DEVNULL, stderr=subprocess.PIPE
    )
    random_moment(home, round_ and 1000 + round_)
    victims = [child for child in children(process.pid) if runs(child)]
    for victim in random.Random(round_).sample(victims, min(1, len(victims))):
        os.kill(victim, signal.SIGKILL)
    _, said = process.communicate(timeout=100)
    journal = journal_of(home)
    if process.returncode == 0:
        assert journal is not None
        assert numbers(journal) == list(range(len(numbers(journal))))
        assert counted(journal) == BUDGET
    else:  # the host had not taken the inputs, or it was the input kernel that ended with it
        assert said.startswith(b"optiml: "), said
        assert b"Traceback" not in said, said


@pytest.mark.slow
@pytest.mark.parametrize("round_", range(ROUNDS))
def test_the_kernel_of_the_notebook_is_killed(
    folder: Path, undisturbed: dict[str, object], home: Path, round_: int
) -> None:
    manager = KernelManager(kernel_name="python3")
    manager.start_kernel(env={**os.environ}, cwd=str(folder))
    client = manager.blocking_client()
    client.start_channels()
    client.wait_for_ready(timeout=60)
    client.execute(
        "from optiml_magic.commands import tasks\n"
        "from optiml_magic.optimize import optimize\n"
        "from optiml_magic.settings import resolve\n"
        "from pathlib import Path\n"
        "(task,) = tasks.from_file(Path('task.py'))\n"
        f"optimize(task, resolve(dict(budget={BUDGET}, llm='none', seed=3)))\n"
    )
    pid = manager.provisioner.pid  # type: ignore[union-attr]
    random_moment(home, round_ and 2000 + round_)
    hosts = children(pid)
    os.kill(pid, signal.SIGKILL)
    client.stop_channels()
    manager.shutdown_kernel(now=True)
    assert gone(hosts)
    journal = journal_of(home)
    if journal is not None and journal.stat().st_size:
        assert resumed(folder, home, journal) == undisturbed


def line_of(number: int, identity: str = "", same_as: int | None = None) -> Line:
    candidate = Candidate(number, 0 if number else None, Proposal(f"text {number}", "t", "rules"))
    verdict = Verdict(Outcome.PASSED, "fine")
    return Line(
        evaluated=Evaluated(candidate, Evaluation(number, identity, verdict, duplicate_of=same_as))
    )


ENDED = Line(ended=Ended("spent", (), {}, {}))


@pytest.mark.parametrize(
    ("before", "after", "lines", "found"),
    [
        (b"a\nb", b"a\nc\n", [line_of(0, "x"), line_of(1, "x", same_as=0), ENDED], ""),
        (b"a\nb\n", b"a\nc\n", [line_of(0), ENDED], "not there any more"),
        (b"", b"", [line_of(0), line_of(0), ENDED], "candidate evaluated twice: 0"),
        (b"", b"", [line_of(0, "x"), line_of(1, "x"), ENDED], "machine code measured twice: x"),
        (b"", b"", [*[Line(made=Made(1, "k", "text"))] * 2, ENDED], "idea made twice: (1, 'k')"),
        (b"", b"", [line_of(0)], "it did not end"),
    ],
)
def test_what_a_kill_may_do_to_a_journal_is_noticed(
    before: bytes, after: bytes, lines: list[Line], found: str
) -> None:
    told = faults(before, after, lines)
    assert bool(told) == bool(found)
    assert not found or found in told[0]


@pytest.mark.slow
def test_the_benchmark_of_kills_finds_none_that_does_harm(tmp_path: Path) -> None:
    script = Path(__file__).parents[2] / "benchmarks" / "gpu" / "kills.py"
    command = [sys.executable, script, tmp_path / "kills", "--device", "emulated:h200"]
    command += ["--times", "4", "--workers", "2"]
    done = subprocess.run([*map(str, command)], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, ""), done.stdout
    assert "4 kills, 0 with faults" in done.stdout
