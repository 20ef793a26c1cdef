"""Results that last: listed, compared, saved, killed and gone on with, in a real IPython shell."""

from __future__ import annotations

import json
import pickle
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from threading import Event
from typing import Any

import numpy as np
import pytest
from IPython.core.interactiveshell import InteractiveShell
from IPython.utils.capture import capture_output

import optiml_magic
from optiml_magic.background import Handle
from optiml_magic.cli import main
from optiml_magic.errors import OptimlError, UsageError
from optiml_magic.magics.first import as_line
from optiml_magic.result import Result
from tests.e2e.test_magics import SETUP, TRANSPOSE

SEARCH = "optimize --ref transpose_ref --llm none --device emulated:h200"
EVIL = "<script>alert(1)</script>"


@pytest.fixture
def shell(monkeypatch: pytest.MonkeyPatch) -> Iterator[InteractiveShell]:
    monkeypatch.setenv("OPTIML_EXPERIENCE", "none")
    InteractiveShell.clear_instance()
    shell = InteractiveShell.instance()
    shell.run_line_magic("load_ext", "optiml_magic")
    shell.run_cell(SETUP)
    yield shell
    InteractiveShell.clear_instance()


def ran(shell: InteractiveShell, text: str) -> tuple[Any, str]:
    """What a cell returns and what it prints; raises its error."""
    with capture_output() as captured:
        outcome = shell.run_cell(text)
    outcome.raise_error()
    return outcome.result, captured.stdout


def wrong(shell: InteractiveShell, line: str) -> str:
    """What a user reads of an error."""
    with pytest.raises(OptimlError) as raised:
        ran(shell, line)
    return "\n".join(raised.value._render_traceback_())


def test_a_result_outlives_its_session(
    shell: InteractiveShell, tmp_path: Path, home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    result, _ = ran(shell, f"%%optiml {SEARCH} --budget 5\n{TRANSPOSE}")
    other, _ = ran(shell, f"%%optiml {SEARCH} slower --budget 1\n{TRANSPOSE}")
    run, newest = result.summary.journal.stem, other.summary.journal.stem

    history, shown = ran(shell, "%optiml history")
    assert [r.run for r in history.runs] == [newest, run]
    assert [(r.state, r.evaluations) for r in history.runs] == [("done", 1), ("done", 5)]
    assert run in shown
    assert "no gain" in shown
    assert f"{history.runs[1].speedup:.3g}x estimated" in shown
    last, _ = ran(shell, "%optiml history --last 1")
    assert "the newest 1 of 2 runs" in repr(last)

    compared, shown = ran(shell, f"%optiml compare {run} slower")
    assert f"{run} is {result.speedup:.3g}x faster than slower, estimated" in shown
    assert compared.differing == []
    assert compared.diff().splitlines()[0] == f"--- {run} (best)"
    same, _ = ran(shell, f"%optiml compare transpose {run}")
    assert "are the same run" in same.headline

    file = tmp_path / "result.json"
    ran(shell, f"%optiml save transpose {file}")
    assert "exists" in wrong(shell, f"%optiml save transpose {file}")
    ran(shell, f"%optiml save {file} --force")  # the last result
    ran(shell, f"%optiml save {run} {file} --force")
    assert str(home) not in file.read_text()
    again, _ = ran(shell, f"%optiml load {file} again")
    assert shell.user_ns["again"] is again
    a = shell.user_ns["a"]
    assert repr(again) == repr(result)
    assert np.array_equal(again.best(a), a.T)
    assert again.export(tmp_path / "k.cu").read_text() == (
        result.export(tmp_path / "l.cu").read_text()
    )
    # The run by its journal alone can be called as well.
    past, _ = ran(shell, f"%optiml replay {run} --view text")
    small = np.arange(60, dtype=np.float32).reshape(12, 5)
    assert np.array_equal(past.best(small), small.T)

    for words, said in (
        (["history"], run),
        (["compare", run, str(file)], "are the same run"),
        (["save", run, str(tmp_path / "line.json")], "written: "),
        (["load", str(tmp_path / "line.json")], "tree:"),
    ):
        assert main(words) == 0
        assert said in capsys.readouterr().out
    assert main(["resume", run]) == 2
    assert f"%optiml resume {run} goes on there" in capsys.readouterr().err


def test_the_file_has_what_a_viewer_needs_that_computes_nothing(
    shell: InteractiveShell, tmp_path: Path
) -> None:
    body = TRANSPOSE.replace("int col =", f"// {EVIL}\n    int col =")
    result, _ = ran(shell, f"%%optiml {SEARCH} --budget 3\n{body}")
    path = optiml_magic.save(result, tmp_path / "r.json")
    assert optiml_magic.load(path).program == result.program
    found = json.loads(path.read_text())
    assert (found["format"], found["schema"]) == ("optiml run", 1)
    assert found["run"] == result.summary.journal.stem
    nodes, steps = found["view"]["nodes"], found["summary"]["trajectory"]["steps"]
    assert [n["number"] for n in nodes] == [s["candidate"]["number"] for s in steps]
    assert [n["parent"] for n in nodes] == [s["candidate"]["parent"] for s in steps]
    assert nodes[0]["diff"] == ""
    assert all(n["diff"].startswith(f"--- #{n['parent']}\n+++ #{n['number']}\n") for n in nodes[1:])
    assert found["view"]["winner"] == result.summary.winner.candidate.number
    assert {n["number"] for n in nodes if n["on_path"]} >= {0, found["view"]["winner"]}
    first = steps[0]["evaluation"]
    assert first["verdict"]["outcome"] == "passed"
    assert first["findings"][0]["tool"] == "uncoalesced_access"
    assert first["measurement"]["source"] == "estimated"
    for page in (result.tree, result.diff(), result.best):
        html = page._repr_html_()
        assert "<script" not in html
    assert "&lt;script" in result.original._repr_html_()


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{", "is not a saved run"),
        ("[1]", "is not a saved run"),
        ('{"format": "optiml run", "schema": 99, "release": "9.0"}', "has schema 99"),
        ('{"format": "optiml run", "schema": 1}', "is damaged"),
        (None, "No such file"),
    ],
)
def test_a_file_that_is_not_one_is_refused(
    shell: InteractiveShell, tmp_path: Path, text: str | None, message: str
) -> None:
    path = tmp_path / "r.json"
    if text is not None:
        path.write_text(text)
    shown = wrong(shell, f"%optiml load {path}")
    assert message in shown
    assert "fix:" in shown


def test_a_search_in_the_background_is_seen_stopped_and_gone_on_with(
    shell: InteractiveShell,
) -> None:
    handle, _ = ran(shell, f"%%optiml {SEARCH} --budget 300 --background\n{TRANSPOSE}")
    while handle.evaluations < 2:
        time.sleep(0.05)
    status, _ = ran(shell, "%optiml status")
    assert status.here[0][:2] == ("transpose", "running")
    (run,) = status.runs
    assert run.state == "running"
    shell.user_ns["handle"] = handle
    assert "so there is no result yet" in wrong(shell, "%optiml compare handle transpose")
    assert "did you mean `transpose`?" in wrong(shell, "%optiml stop transpos")
    assert "is still running" in wrong(shell, "%optiml resume transpose")
    with pytest.raises(UsageError, match="cannot be pickled"):
        pickle.dumps(handle)
    assert "paused after the evaluation in flight" in ran(shell, "%optiml pause")[1]
    assert ran(shell, "%optiml status")[0].here[0][1] == "paused"
    assert ran(shell, "%optiml resume")[0] is handle
    assert handle.state == "running"
    assert "stopping" in ran(shell, "%optiml stop")[1]
    done = len(handle.result(60).trajectory.steps)
    assert "no search runs" in wrong(shell, "%optiml stop")
    assert "transpose" in repr(ran(shell, "%optiml status")[0])
    assert ran(shell, "%optiml history")[0].runs[0].state == "stopped"

    again, _ = ran(shell, f"%optiml resume transpose --budget {done + 2}")
    result = again.result(60)
    assert result.summary.journal.stem == run.run
    assert len(result.trajectory.steps) == done + 2
    assert shell.user_ns["transpose"] is result


def test_a_paused_search_goes_on_by_its_name(shell: InteractiveShell) -> None:
    gone_on: list[str] = []

    class Paused(Handle[Any]):
        state = "paused"  # type: ignore[assignment]

        def resume(self) -> None:
            gone_on.append(self.name)

    ran(shell, "%optiml status")  # the magic takes its place with its first use
    magics = shell.find_line_magic("optiml").__self__
    over = Event()
    held = Paused(lambda _progress, _controls: over.wait(60), name="k")
    magics.searches.add(held)
    assert ran(shell, "%optiml resume k")[0] is held
    assert gone_on == ["k"]
    over.set()
    held.result(60)


def test_a_search_that_is_stopping_is_not_paused(shell: InteractiveShell) -> None:
    ran(shell, "%optiml status")
    over = Event()
    held: Handle[Any] = Handle(lambda _progress, _controls: over.wait(60), name="k")
    shell.find_line_magic("optiml").__self__.searches.add(held)
    ran(shell, "%optiml stop k")
    assert "`k` is stopping" in wrong(shell, "%optiml pause k")
    over.set()
    held.result(60)


KILLED = f"""
import os, signal, time
from IPython.core.interactiveshell import InteractiveShell
shell = InteractiveShell.instance()
shell.run_line_magic("load_ext", "optiml_magic")
shell.run_cell({SETUP!r})
shell.run_cell({f"%%optiml {SEARCH} faster --budget 5 --background{chr(10)}{TRANSPOSE}"!r})
while shell.user_ns["_"].evaluations < 2:
    time.sleep(0.05)
os.kill(os.getpid(), signal.SIGKILL)
"""


@pytest.mark.slow
def test_a_search_that_was_killed_goes_on_in_another_session(shell: InteractiveShell) -> None:
    done = subprocess.run([sys.executable, "-c", KILLED], capture_output=True, check=False)
    assert done.returncode == -signal.SIGKILL
    (run,) = ran(shell, "%optiml history")[0].runs
    assert run.state == "cut short"
    handle, _ = ran(shell, "%optiml resume transpose")  # the newest run of this kernel
    result = handle.result(60)
    assert (result.summary.journal.stem, len(result.trajectory.steps)) == (run.run, 5)
    assert shell.user_ns["faster"] is result
    shell.run_cell("a = a + 1")
    shown = wrong(shell, f"handle = %optiml resume {run.run}\nhandle.result()")
    assert "is of another run" in shown
    assert "inputs" in shown


def test_a_command_on_the_line_is_gone_on_with_on_the_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "t.py").write_text(
        "from optiml_magic.testing.kernels import known_task\n"
        'task = known_task("transpose_naive", rows=64, cols=96)\n'
    )
    words = ["optimize", str(tmp_path / "t.py"), "--llm", "none", "--device", "emulated:h200"]
    assert main([*words, "--budget", "2"]) == 0
    assert main(["resume", "transpose_naive", "--budget", "3"]) == 0
    assert "3 in " in capsys.readouterr().out
    assert main(["history"]) == 0
    assert "1 run" in capsys.readouterr().out


def test_a_result_pickles_into_another_process(shell: InteractiveShell, tmp_path: Path) -> None:
    shell.run_cell("factor = 1\ntranspose_ref = (lambda k: lambda a: k * a.T)(factor)")
    result, _ = ran(shell, f"%%optiml {SEARCH} --budget 2\n{TRANSPOSE}")
    assert isinstance(result, Result)
    result.best(shell.user_ns["a"])  # what it opened is not part of it
    path = tmp_path / "r.pickle"
    path.write_bytes(pickle.dumps(result))
    program = (
        "import pickle, sys, numpy as np\n"
        f"r = pickle.load(open({str(path)!r}, 'rb'))\n"
        "b = np.arange(6, dtype=np.float32).reshape(2, 3)\n"
        "assert np.array_equal(r.best(b), b.T)\n"
        "sys.stdout.write(repr(r))"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, check=True)
    assert done.stdout.decode() == repr(result)
    assert repr(pickle.loads(pickle.dumps(result.diff()))) == repr(result.diff())


def test_what_a_result_has_is_shown_shortly(shell: InteractiveShell) -> None:
    result, _ = ran(shell, f"%%optiml {SEARCH} --budget 4\n{TRANSPOSE}")
    for name in (
        "best",
        "trajectory",
        "summary",
        "trajectory.steps[1]",
        "trajectory.best.evaluation",
    ):
        _, shown = ran(shell, f"transpose.{name}")
        assert shown.startswith("Out[")
        assert len(shown) < 300
    assert ran(shell, "transpose.best")[1].endswith(
        "<kernel transpose(a, rows, cols) -> out on emulated:h200>\n"
    )
    assert ran(shell, "transpose.tree")[1].count("#") == 4
    diff = result.diff()
    assert isinstance(diff, str)
    assert diff == result.summary.diff()
    assert f"{diff}" in ran(shell, "transpose.diff()")[1]
    assert "background-color" in diff._repr_html_()
    html = shell.display_formatter.formatters["text/html"]  # type: ignore[union-attr]
    table = html(result.trajectory)
    assert table.count("<tr") == 5
    assert repr(result) == ran(shell, "transpose")[1].partition(": ")[2].strip()


HELP = (
    "%%optiml", "%%optiml\n\n", "%%optiml -h", "%%optiml optimize -h", "%%optiml optimize --help\n",
    "%optiml", "%optiml help", "%optiml -h", "%optiml help optimize", "%optiml optimize -h",
    "%%optiml optimize -h\n__global__ void k() { }",
)  # fmt: skip


@pytest.mark.parametrize("text", HELP)
def test_help_is_wherever_it_is_looked_for(shell: InteractiveShell, text: str) -> None:
    _, shown = ran(shell, text)
    one = "optimize" in text
    assert ("usage: %%optiml optimize [name] [options]" in shown) == one
    assert ("%optiml  history" in shown) == (not one)


@pytest.mark.parametrize("text", ["%%optiml?", "%optiml?"])
def test_the_question_mark_has_the_commands(shell: InteractiveShell, text: str) -> None:
    with capture_output() as captured:
        shell.run_cell(text)
    assert "%%optiml optimize" in captured.stdout


def test_help_comes_in_the_first_cell_too() -> None:
    """IPython refuses a cell magic without a body before the magic sees it."""
    InteractiveShell.clear_instance()
    shell = InteractiveShell.instance()
    shell.run_line_magic("load_ext", "optiml_magic")
    assert "usage: %%optiml optimize" in ran(shell, "%%optiml optimize -h")[1]
    InteractiveShell.clear_instance()


def test_a_cell_that_is_empty_or_names_no_command_says_so(shell: InteractiveShell) -> None:
    assert "there is no kernel in this cell" in wrong(
        shell, "%%optiml optimize --ref transpose_ref"
    )
    assert "nothing was run" in ran(shell, f"%%optiml\n{TRANSPOSE}")[1]
    assert "did you mean `optimize`?" in wrong(shell, f"%%optiml optimise\n{TRANSPOSE}")
    shell.run_line_magic("reload_ext", "optiml_magic")
    assert shell.input_transformers_cleanup.count(as_line) == 1


@pytest.mark.parametrize(
    ("line", "message", "fix"),
    [
        ("save r.json", "nothing was optimised yet", "%%optiml optimize"),
        ("compare a b", "`a` is of type ndarray, not a result", "history lists"),
        ("compare nothing b", "there is no result and no run called `nothing`", "history lists"),
        ("resume", "there is no run in", "optimize something first"),
        ("stop", "no search runs in the background", "interrupt"),
        ("history --last 0", "--last is 0", "above zero"),
    ],
)
def test_names_that_mean_nothing_are_short_errors(
    shell: InteractiveShell, line: str, message: str, fix: str
) -> None:
    shown = wrong(shell, f"%optiml {line}")
    assert message in shown
    assert fix in shown
    assert len(shown.splitlines()) <= 3


def test_a_journal_of_another_release_is_listed_as_unreadable(
    shell: InteractiveShell, home: Path
) -> None:
    (home / "runs").mkdir(parents=True)
    (home / "runs" / "old-1.jsonl").write_text('{"header": {"schema": 1}}\n')
    (run,) = ran(shell, "%optiml history")[0].runs
    assert (run.run, run.state) == ("old-1", "unreadable")
    assert "release" in wrong(shell, "%optiml resume old-1")
    assert [path.name for path in (home / "runs").iterdir()] == ["old-1.jsonl"]
