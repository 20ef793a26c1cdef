from __future__ import annotations

import fcntl
import threading
from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from optiml_magic.errors import MachineError, UsageError
from optiml_magic.journal import SCHEMA, Journal, RunHeader, in_use, read_lines
from optiml_magic.model.evaluation import Trajectory
from optiml_magic.model.idea import Idea, Ideas
from optiml_magic.model.refusal import Refusal
from optiml_magic.model.suggestion import Suggestion
from optiml_magic.model.view import View
from optiml_magic.search.loop import ONE, Batches, Budget, at_once, run
from optiml_magic.search.search import TreeSearch
from tests.unit.search import toy

EVALUATE = at_once(toy.evaluate)
HEADER = RunHeader(
    SCHEMA,
    "r",
    "toy",
    "000000",
    "d",
    "ref",
    "rd",
    "toy",
    "cc",
    0,
    "mcts",
    1,
    ("toy",),
    (),
    False,
    "od",
)


def search(journal: Journal, evaluated: list[int], batches: Batches = ONE) -> Trajectory:
    def counting(candidates):  # type: ignore[no-untyped-def]
        evaluated.extend(c.number for c in candidates)
        return toy.evaluate(candidates)

    mcts = TreeSearch(toy.proposal("0" * toy.BITS), journal.remember_expand(toy.expand, toy.expand))
    begin = journal.remember_evaluate(at_once(counting))
    trajectory = run(mcts, begin, Budget(evaluations=20), batches=batches)
    journal.close()
    return trajectory


@pytest.fixture(scope="module", params=[ONE, Batches(3, 1)], ids=str)
def whole(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> tuple[bytes, Trajectory, Batches]:
    path = tmp_path_factory.mktemp("journal") / "run.jsonl"
    trajectory = search(Journal.create(path, HEADER), [], request.param)
    return path.read_bytes(), trajectory, request.param


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_a_kill_at_any_byte_resumes_to_the_same_run(
    whole: tuple[bytes, Trajectory, Batches],
    tmp_path_factory: pytest.TempPathFactory,
    data: st.DataObject,
) -> None:
    raw, trajectory, batches = whole
    cut = data.draw(st.integers(raw.index(b"\n") + 1, len(raw)))
    path = tmp_path_factory.mktemp("cut") / "run.jsonl"
    path.write_bytes(raw[:cut])
    finished = raw[:cut].count(b'"evaluated":{')
    complete = sum(b'"evaluated":{' in line for line in raw[:cut].splitlines(keepends=True)
                   if line.endswith(b"\n"))  # fmt: skip
    evaluated: list[int] = []
    journal = Journal.resume(path, HEADER)
    resumed = search(journal, evaluated, batches)
    assert resumed == trajectory
    assert journal.replayed == complete
    assert len(evaluated) == len(trajectory.steps) - complete
    assert finished - complete in (0, 1)
    assert path.read_bytes() == raw


def test_a_finished_run_resumes_without_evaluating(tmp_path: Path) -> None:
    path = tmp_path / "run.jsonl"
    first = search(Journal.create(path, HEADER), [])
    evaluated: list[int] = []
    assert search(Journal.resume(path, HEADER), evaluated) == first
    assert evaluated == []


def test_what_is_replayed_is_told(tmp_path: Path) -> None:
    path = tmp_path / "run.jsonl"
    search(Journal.create(path, HEADER), [])
    heard: list[int] = []
    journal = Journal.resume(path, HEADER)
    mcts = TreeSearch(toy.proposal("0" * toy.BITS), journal.remember_expand(toy.expand, toy.expand))
    begin = journal.remember_evaluate(EVALUATE, lambda c, _: heard.append(c.number))
    run(mcts, begin, Budget(evaluations=5))
    journal.close()
    assert heard == [0, 1, 2, 3, 4]


class Flips:
    """Proposes as the toy does, but bit 2 is stuck; knows what it was asked to make."""

    def __init__(self) -> None:
        self.made: list[str] = []
        self.asked = 0

    def __call__(self, view: View, count: int) -> Ideas:
        self.asked += 1
        found = toy.expand(view, count)
        ideas = [replace(idea, make=partial(self._make, view, idea)) for idea in found.ideas]
        ready = Idea.of(toy.proposal("".join(reversed(view.step.candidate.text))))
        return Ideas((ready, *ideas), (Refusal("flop", "there is no flop"),))

    def _make(self, view: View, idea: Idea) -> str | Refusal:
        self.made.append(f"{view.step.candidate.text} {idea.key}")
        return Refusal("toy", "bit 2 is stuck", 2) if idea.key == "flip 2" else idea.make()


def flipped(journal: Journal, flips: Flips, again: Flips, evaluations: int) -> Trajectory:
    mcts = TreeSearch(toy.proposal("010000"), journal.remember_expand(flips, again))
    begin = journal.remember_evaluate(EVALUATE)
    trajectory = run(mcts, begin, Budget(evaluations=evaluations))
    journal.close()
    return trajectory


def test_a_resumed_run_makes_only_the_texts_that_were_not_made(tmp_path: Path) -> None:
    whole = flipped(Journal.create(tmp_path / "whole", HEADER), Flips(), Flips(), 16)
    first, path = Flips(), tmp_path / "run"
    flipped(Journal.create(path, HEADER), first, Flips(), 8)
    fresh, again = Flips(), Flips()
    resumed = flipped(Journal.resume(path, HEADER), fresh, again, 16)
    assert resumed == whole
    assert any(refusal.line == 2 for step in whole.steps for refusal in step.refused)
    assert again.made
    assert not set(first.made) & set(again.made)
    assert path.read_bytes() == (tmp_path / "whole").read_bytes()


def test_an_idea_that_its_rule_no_longer_has_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "run"
    flipped(Journal.create(path, HEADER), Flips(), Flips(), 2)

    def nothing(view: View, count: int) -> Ideas:
        del view, count
        return Ideas()

    journal = Journal.resume(path, HEADER)
    mcts = TreeSearch(toy.proposal("010000"), journal.remember_expand(nothing, nothing))
    trajectory = run(mcts, journal.remember_evaluate(EVALUATE), Budget(evaluations=9))
    journal.close()
    assert len(trajectory.steps) == 2
    assert Refusal("toy", "it no longer has this idea") in trajectory.root.refused


@pytest.mark.parametrize(
    ("field", "value"),
    [("seed", 1), ("device", "emulated:t4"), ("inputs_digest", "other"), ("exact", True)],
)
def test_another_run_is_refused_by_name(tmp_path: Path, field: str, value: object) -> None:
    path = tmp_path / "run.jsonl"
    Journal.create(path, HEADER).close()
    with pytest.raises(UsageError, match=f"{field} differ"):
        Journal.resume(path, replace(HEADER, **{field: value}))


def test_somebody_who_looks_at_a_journal_does_not_keep_a_run_from_it(tmp_path: Path) -> None:
    path = tmp_path / "run.jsonl"
    Journal.create(path, HEADER).close()
    with path.open("rb") as looking:
        fcntl.flock(looking, fcntl.LOCK_SH)
        threading.Timer(0.1, fcntl.flock, (looking, fcntl.LOCK_UN)).start()
        journal = Journal.resume(path, HEADER)
    assert in_use(path)
    with pytest.raises(UsageError, match="another run writes"):
        Journal.resume(path, HEADER)
    journal.close()


def test_a_disk_that_is_full_is_named(tmp_path: Path) -> None:
    with Path("/dev/full").open("wb", buffering=0) as full:
        journal = Journal(tmp_path / "run.jsonl", full, ())
        with pytest.raises(MachineError, match=r"run\.jsonl cannot be written: No space left"):
            journal.suggest(Suggestion(0, "a program"))
    with pytest.raises(MachineError, match="cannot be written") as refused:
        Journal.create(Path("/dev/null/runs/run.jsonl"), HEADER)
    assert "OPTIML_HOME" in refused.value.fix


def test_a_journal_is_never_overwritten(tmp_path: Path) -> None:
    path = tmp_path / "run.jsonl"
    Journal.create(path, HEADER).close()
    with pytest.raises(UsageError, match="exists already"):
        Journal.create(path, HEADER)


@pytest.mark.parametrize("content", [b"", b"{}\n", b"not json\n", b"\x80\x04pickle\n"])
def test_anything_else_is_no_journal(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "run.jsonl"
    path.write_bytes(content)
    for look in (read_lines, partial(Journal.resume, header=HEADER)):
        with pytest.raises(UsageError, match="not a journal"):
            look(path)


def test_a_line_that_cannot_be_read_costs_no_other_line(tmp_path: Path) -> None:
    path = tmp_path / "run.jsonl"
    search(Journal.create(path, HEADER), [])
    lines = path.read_bytes().splitlines(keepends=True)
    broken = b"".join([*lines[:3], b"garbage\n", *lines[4:]])
    path.write_bytes(broken)
    with pytest.raises(UsageError, match="line 4"):
        Journal.resume(path, HEADER)
    assert path.read_bytes() == broken
