"""Runs that learn from those before them, and those that must not."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from benchmarks.search.ship import entries
from optiml_magic.cli import main
from optiml_magic.experience import shipped
from optiml_magic.experience.entries import path_of
from optiml_magic.model.codec import from_json, to_json
from optiml_magic.model.experience import Entry, Evidence, Kind, Move, Origin
from optiml_magic.optimize import optimize
from optiml_magic.reports.summary import Summary
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


def moves(summary: Summary) -> list[str]:
    return [step.candidate.proposal.move for step in summary.trajectory.steps]


def entry_of(journal: Path, *path: Move) -> Entry:
    """What a run of the kernel of a journal would be taken to have found."""
    lines = [json.loads(line) for line in journal.read_text().splitlines()]
    (told,) = (line["known"]["kind"] for line in lines if line.get("known"))
    kind = from_json(Kind, json.dumps(told))
    origin = Origin("elsewhere", "2026-11-22", "CUDA 13", "nvrtc", "0.1.0")
    return Entry(kind, "", path, (), Evidence(origin, "h200", "events", "other", 9.0, 1.0, 1.01))


def test_what_ships_comes_first_in_a_fresh_home_and_cannot_make_a_wrong_program(
    home: Path, tmp_path: Path
) -> None:
    task = known_task("transpose_naive", rows=96, cols=64)
    settings = resolve({"device": "emulated", "llm": "none", "budget": 3})
    alone = optimize(task, replace(settings, experience="none")).summary
    assert not settings.experience_file.exists()
    assert alone.journal is not None
    offered = {
        idea["proposal"]["move"]
        for line in map(json.loads, alone.journal.read_text().splitlines())
        for idea in (line.get("expansion") or {"ideas": []})["ideas"]
    }
    unlikely = min(offered - {moves(alone)[1], ""})
    # Numbers that no program has, a move that nothing offers, and one that comes late by itself.
    points = {"BLOCK": 7, "BLOCK_X": 3, "TILE": 5, "x": 1}
    file = tmp_path / "others.jsonl"
    shipped.write(
        file,
        [
            entry_of(alone.journal, Move(unlikely, points), Move("no_rule 0 at all", points)),
            entry_of(alone.journal, Move("no_rule 7 anywhere", points)),
        ],
    )
    told = optimize(task, replace(settings, experience="shipped", shipped=file)).summary
    assert moves(told)[1] == unlikely
    assert all(step.evaluation.verdict.passed for step in told.trajectory.steps)
    assert any(note.startswith("experience: ") for note in told.notes)
    assert not settings.experience_file.exists()

    assert entries([settings.runs])[0] == []  # estimated times never ship
    first, second = entries([settings.runs], any_source=True)[0], [alone, told]
    assert len(first) == 1  # the better of two runs of one program
    assert first[0].evidence.origin.run in {run.journal.stem[-8:] for run in second if run.journal}
    assert "transpose" not in to_json(Entry, first[0]).replace("transpose_tile 0", "")


@pytest.mark.slow
def test_a_path_that_won_is_gone_at_once_the_next_time(home: Path) -> None:
    task = known_task("transpose_naive", rows=96, cols=64)
    settings = resolve({"device": "emulated", "llm": "none", "budget": 4})
    one, two = (optimize(task, settings).summary for _ in range(2))
    won = path_of(one.trajectory, one.trajectory.best)
    assert won
    assert tuple(moves(two)[1 : 1 + len(won)]) == won
    assert any("it won here too" in note for note in two.notes)
    resumed = optimize(task, settings, resume=two.journal).summary
    assert moves(resumed) == moves(two)


@pytest.mark.slow
def test_on_request_a_run_neither_learns_nor_teaches(tmp_path: Path, home: Path) -> None:
    task = tmp_path / "task.py"
    task.write_text(TASK)
    words = ["optimize", str(task), "--budget", "2", "--llm", "none", "--device", "emulated"]
    assert main([*words, "--experience", "none"]) == 0
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
