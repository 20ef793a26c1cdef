"""Runs that learn from those before them, and those that must not."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from optiml_magic.cli import main
from optiml_magic.optimize import optimize
from optiml_magic.settings import resolve
from optiml_magic.testing.kernels import known_task

TASK = """\
from optiml_magic.testing.kernels import known_task
task = known_task("transpose_naive", rows=96, cols=64)
"""


def first_line(journal: Path) -> dict:  # type: ignore[type-arg]
    with journal.open() as file:
        return json.loads(file.readline())  # type: ignore[no-any-return]


def test_a_run_adds_to_the_experience_and_the_next_one_begins_with_it(home: Path) -> None:
    task = known_task("transpose_naive", rows=96, cols=64)
    settings = resolve({"device": "emulated", "llm": "none", "budget": 2})
    one, two = (optimize(task, settings).summary for _ in range(2))
    assert one.journal is not None
    assert two.journal is not None
    assert first_line(one.journal)["hit_rates"]["tallies"] == []
    learned = first_line(two.journal)["hit_rates"]["tallies"]
    assert {t["kind"] for t in learned} == {"tool", "action", "rule"}
    assert sum(t["applied"] for t in learned if t["kind"] == "rule") == 1
    assert {(t["source"], t["family"]) for t in learned} == {("estimated", "hopper")}

    def priors(journal: Path) -> dict[str, float]:
        lines = [json.loads(line) for line in journal.read_text().splitlines()]
        expansion = next(x["expansion"] for x in lines if x.get("expansion"))
        return {i["proposal"]["title"]: i["proposal"]["prior"] for i in expansion["ideas"]}

    before, after = priors(one.journal), priors(two.journal)
    assert before.keys() == after.keys()
    assert before != after


@pytest.mark.slow
def test_on_request_a_run_neither_learns_nor_teaches(tmp_path: Path, home: Path) -> None:
    task = tmp_path / "task.py"
    task.write_text(TASK)
    words = ["optimize", str(task), "--budget", "2", "--llm", "none", "--device", "emulated"]
    assert main([*words, "--no-experience"]) == 0
    assert not (home / "experience.sqlite").exists()
    assert main(words) == 0
    assert (home / "experience.sqlite").exists()


@pytest.mark.slow
def test_resuming_a_run_counts_nothing_twice(tmp_path: Path, home: Path) -> None:
    task = known_task("transpose_naive", rows=96, cols=64)
    settings = resolve({"device": "emulated", "llm": "none", "budget": 2})
    result = optimize(task, settings)
    before = tables(tmp_path)
    optimize(task, settings, resume=result.summary.journal)
    assert tables(tmp_path) == before
    assert sum(row["applied"] for row in before if row["kind"] == "rule") == 1


def tables(folder: Path) -> list[dict]:  # type: ignore[type-arg]
    out = folder / "experience.json"
    assert main(["experience", "--json", str(out), "--html", str(folder / "e.html")]) == 0
    assert "<table" in (folder / "e.html").read_text() or json.loads(out.read_text()) == []
    return json.loads(out.read_text())  # type: ignore[no-any-return]


def test_the_demo_teaches_nothing(
    home: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    small = [known_task("transpose_naive", rows=64, cols=32)]
    monkeypatch.setattr("optiml_magic.terminal.DEMO", ("one",))
    monkeypatch.setattr("optiml_magic.terminal.known_task", lambda _: small[0])
    assert main(["demo", "--budget", "2", "--llm", "none", "--device", "emulated"]) == 0
    assert not (home / "experience.sqlite").exists()
    assert tables(tmp_path) == []
    assert "no experience yet" in capsys.readouterr().out
