"""Past searches from their journals alone, and searches that are asked and told by hand."""

from __future__ import annotations

import contextlib
import io
import json
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from IPython.core.interactiveshell import InteractiveShell
from IPython.utils.capture import capture_output

import optiml_magic
from optiml_magic.cli import main
from optiml_magic.errors import UsageError
from optiml_magic.journal import SCHEMA
from optiml_magic.model.verdict import Outcome
from optiml_magic.replay.pool import Pool
from optiml_magic.replay.recording import Recording
from optiml_magic.result import Result
from optiml_magic.search.policies import POLICIES
from optiml_magic.testing.kernels import known_task

TASK = """\
from optiml_magic.testing.kernels import known_task
task = known_task("transpose_naive", rows=128, cols=96)
"""


def optiml(*words: object) -> tuple[int, str, str]:
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        status = main([str(word) for word in words])
    return status, out.getvalue(), err.getvalue()


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str, dict[str, Any]]:
    """The journal of a search, what it printed, and its JSON."""
    folder = tmp_path_factory.mktemp("replay")
    (folder / "task.py").write_text(TASK)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("OPTIML_HOME", str(folder / "home"))
        status, out, _ = optiml(
            "optimize", folder / "task.py", "--budget", 8, "--llm", "none",
            "--device", "emulated:h200", "--json", folder / "out.json",
        )  # fmt: skip
    assert status == 0
    (journal,) = (folder / "home" / "runs").iterdir()
    return journal, out, json.loads((folder / "out.json").read_text())


@pytest.fixture
def alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """No process is started: no device, no compiler."""

    def refuse(*_: Any, **__: Any) -> None:
        raise AssertionError("a process was started")

    monkeypatch.setattr(subprocess, "Popen", refuse)


@pytest.mark.usefixtures("alone")
def test_a_search_is_shown_as_it_was(run: tuple[Path, str, dict[str, Any]], tmp_path: Path) -> None:
    journal, said, outcome = run
    before = journal.read_bytes()
    status, out, _ = optiml(
        "replay", journal, "--json", tmp_path / "again.json", "--html", tmp_path / "again.html"
    )
    assert status == 0
    assert out.startswith(said.rstrip())
    assert json.loads((tmp_path / "again.json").read_text()) == outcome
    tree = out.partition("\ntree:\n")[2].splitlines()
    numbers = [int(found[1]) for line in tree if (found := re.match(r" +#(\d+) ", line))]
    assert sorted(numbers) == [step["id"] for step in outcome["steps"]]
    assert "The tree of all" in (tmp_path / "again.html").read_text()
    assert journal.read_bytes() == before


@pytest.mark.usefixtures("alone")
def test_a_run_that_was_killed_is_shown_up_to_its_end(
    run: tuple[Path, str, dict[str, Any]], tmp_path: Path
) -> None:
    raw = run[0].read_bytes()
    cut = raw[: raw.rindex(b'"evaluated":{')]
    (tmp_path / "cut.jsonl").write_bytes(cut)
    recording = Recording.read(tmp_path / "cut.jsonl")
    whole = Recording.read(run[0])
    assert [s.candidate for s, _ in recording.steps()] == [s.candidate for s, _ in whole.steps()][
        :-1
    ]
    assert "no end" in optiml("replay", tmp_path / "cut.jsonl")[1]


@pytest.mark.usefixtures("alone")
@pytest.mark.parametrize("policy", POLICIES)
def test_every_policy_searches_over_what_was_evaluated(
    run: tuple[Path, str, dict[str, Any]], policy: str, tmp_path: Path
) -> None:
    status, out, _ = optiml(
        "replay", run[0], "--policy", policy, "--budget", 5, "--json", tmp_path / "out.json"
    )
    assert status == 0
    assert "nothing ran" in out
    found = json.loads((tmp_path / "out.json").read_text())
    known = {step["title"]: step["seconds"] for step in run[2]["steps"]}
    assert 1 < found["evaluations"] <= 5
    assert all(known[step["title"]] is not None for step in found["steps"])


def test_the_policy_of_the_run_goes_the_same_way_over_its_pool(
    run: tuple[Path, str, dict[str, Any]], tmp_path: Path
) -> None:
    recording = Recording.read(run[0])
    pool = Pool.of([recording], slim=True)
    texts = [step.candidate.text for step, _ in recording.steps()]
    assert [program.text for program in pool.programs] == texts
    again = [step.candidate.text for step in pool.search("mcts", budget=3).steps]
    assert again == texts[:3]
    everything = pool.search("random", budget=99)
    assert {step.candidate.text for step in everything.steps} <= set(texts)
    assert everything.best.evaluation.measurement is not None
    assert everything.best.evaluation.measurement.seconds == pool.best.seconds
    pool.write(tmp_path / "one.pool.gz")
    assert Pool.read(tmp_path / "one.pool.gz") == pool
    (tmp_path / "none.pool.gz").write_bytes(b"no pool")
    with pytest.raises(UsageError, match="not a pool"):
        Pool.read(tmp_path / "none.pool.gz")


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["nowhere"], "no journal at"),
        (["JOURNAL", "--seed", "3"], "this one is over"),
        (["JOURNAL", "JOURNAL"], "2 runs given"),
        (["JOURNAL", "--policy", "best"], "policy is 'best'"),
        (["OLD"], f"schema 5, and this release reads {SCHEMA}"),
        (["EMPTY"], "nothing was evaluated yet"),
        (["OTHER", "JOURNAL", "--policy", "mcts"], "not runs of one task: inputs_digest differ"),
    ],
)
def test_slips_get_one_short_error(
    run: tuple[Path, str, dict[str, Any]], tmp_path: Path, words: list[str], said: str
) -> None:
    first, _, rest = run[0].read_bytes().partition(b"\n")
    places = {name: tmp_path / f"{name.lower()}.jsonl" for name in ("OLD", "EMPTY", "OTHER")}
    places["OLD"].write_bytes(first.replace(b'"schema":%d' % SCHEMA, b'"schema":5') + b"\n" + rest)
    places["EMPTY"].write_bytes(first + b"\n")
    other = re.sub(rb'"inputs_digest":"\w+"', b'"inputs_digest":"other"', first)
    places["OTHER"].write_bytes(other + b"\n" + rest)
    named = {"JOURNAL": run[0], **places}
    status, out, err = optiml("replay", *(named.get(word, word) for word in words))
    assert (status, out) == (2, "")
    assert said in err
    assert "fix:" in err


@pytest.fixture
def shell() -> Iterator[InteractiveShell]:
    InteractiveShell.clear_instance()
    shell = InteractiveShell.instance()
    shell.run_line_magic("load_ext", "optiml_magic")
    yield shell
    InteractiveShell.clear_instance()


def executed(shell: InteractiveShell, cell: str) -> Any:
    with capture_output():
        outcome = shell.run_cell(cell)
    if outcome.error_in_exec is not None:
        raise outcome.error_in_exec
    assert outcome.error_before_exec is None
    return outcome.result


@pytest.mark.usefixtures("alone")
def test_a_notebook_replays_a_search_in_its_live_view(
    shell: InteractiveShell, run: tuple[Path, str, dict[str, Any]]
) -> None:
    result = executed(shell, f"%optiml replay {run[0]}")
    assert isinstance(result, Result)
    assert repr(result) == run[1].rstrip()
    assert len(result.rows()) == run[2]["evaluations"]
    assert repr(result.best) == "<kernel transpose_naive(a, rows, cols) -> out on emulated:h200>"


ASKED = """\
from optiml_magic import Search, Settings
from optiml_magic.testing.kernels import known_task

settings = Settings(device="emulated:h200", llm="none", home=HOME)
with Search(known_task("transpose_naive", rows=128, cols=96), settings, policy=policy) as search:
    while len(search.trajectory.steps if told else ()) < 5 and (asked := search.ask(3)):
        for candidate in reversed(asked):
            told += 1
            search.tell(JUDGE)
    result = search.result
"""


@pytest.mark.parametrize(
    "judge",
    [
        "*search.evaluate(candidate)",
        "search.timed(candidate, 1e-5 / told) if told != 3 else search.failed(candidate, 'no')",
    ],
)
def test_a_search_is_asked_and_told_in_a_notebook(
    shell: InteractiveShell, home: Path, judge: str
) -> None:
    shell.user_ns |= {"HOME": home, "policy": POLICIES["greedy"](), "told": 0}
    executed(shell, ASKED.replace("JUDGE", judge))
    result = shell.user_ns["result"]
    assert isinstance(result, Result)
    assert len(result.trajectory.steps) >= 5
    assert result.trajectory.root.candidate.number == 0
    (journal,) = (home / "runs").iterdir()
    status, out, _ = optiml("replay", journal)
    assert status == 0
    assert out.splitlines()[0] == repr(result).splitlines()[0]
    if "timed" in judge:
        assert result.speedup == pytest.approx(shell.user_ns["told"])
        assert result.summary.verdicts[Outcome.WRONG] == 1


def test_a_search_by_hand_begins_from_several_programs(home: Path) -> None:
    settings = optiml_magic.Settings(device="emulated:h200", llm="none", home=home)
    task = known_task("transpose_naive", rows=64, cols=64)
    others = [known_task("transpose_tiled").text, task.text + "\n"]
    with optiml_magic.Search(task, settings, roots=others) as search:
        search.tell(search.timed(search.ask()[0], 1e-5))
        roots = search.ask(2)
        assert [candidate.parent for candidate in roots] == [None, None]
        search.tell(search.timed(roots[0], 2e-6), search.failed(roots[1], "no"))
        assert search.best.candidate.text == others[0]
        journal = search.result.summary.journal
    assert journal is not None
    status, out, _ = optiml("replay", journal)
    assert status == 0
    assert "best         2 us events: another root" in out
    assert [line[:4] for line in out.split("tree:")[1].splitlines() if line][:2] == ["  #0", "  #1"]
    again = Pool.of([Recording.read(journal)]).search("mcts", budget=3)
    assert [step.candidate.text for step in again.roots] == [task.text, *others]


def test_what_is_told_must_have_been_asked_and_clocks_are_not_mixed(home: Path) -> None:
    settings = optiml_magic.Settings(device="emulated:h200", llm="none", home=home)
    task = known_task("transpose_naive", rows=64, cols=64)
    with optiml_magic.Search(task, settings) as search:
        with pytest.raises(UsageError, match="no result was told"):
            _ = search.result
        (root,) = search.ask(4)
        assert search.ask() == []
        with pytest.raises(UsageError, match="not a time"):
            search.timed(root, 0.0)
        evaluation = search.timed(root, 1e-5)
        search.tell(evaluation)
        with pytest.raises(UsageError, match="no candidate 0 waits"):
            search.tell(evaluation)
        with pytest.raises(UsageError, match="timed elsewhere"):
            search.evaluate(*search.ask())
