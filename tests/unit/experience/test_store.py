"""The file of what earlier runs learned: many writers, no row twice, never in the way."""

from __future__ import annotations

import math
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest

from optiml_magic.experience.recorder import Recorder
from optiml_magic.experience.store import SCHEMA, Experience, Setting
from optiml_magic.model.candidate import Candidate, Proposal
from optiml_magic.model.evaluation import Evaluation, Step, Trajectory
from optiml_magic.model.finding import Answered
from optiml_magic.model.hit_rates import Tally
from optiml_magic.model.hypothesis import HypothesisTest
from optiml_magic.model.idea import Idea, Ideas
from optiml_magic.model.measurement import Measurement
from optiml_magic.model.verdict import Outcome, Verdict
from optiml_magic.model.view import View
from optiml_magic.reports import experience as report
from optiml_magic.search.loop import at_once

from .entries import entry

HERE = Setting("events", "hopper")


def evaluation(number: int, seconds: float | None, state: str = "confirmed") -> Evaluation:
    verdict = Verdict(Outcome.PASSED if seconds else Outcome.WRONG, "")
    found = Measurement("h200", "events", seconds, 1.01, (), (), ()) if seconds else None
    test = HypothesisTest(state, reason="x", time="alike") if number else None  # type: ignore[arg-type]
    answered = Answered("far", 3, "lanes far apart") if number else None
    return Evaluation(
        number, str(number), verdict, found, roofline="memory", test=test, answered=answered
    )


def candidate(number: int, rule: str = "tile", answers: str = "far") -> Candidate:
    parent = 0 if number else None
    return Candidate(number, parent, Proposal(f"text {number}", "", rule, answers=answers))


STEPS = {
    0: evaluation(0, 8.0),
    1: evaluation(1, 4.0),
    2: evaluation(2, 7.9, "refuted"),
    3: evaluation(3, None, "not_measurable"),
}


def run(experience: Experience, name: str = "a run", numbers: range = range(4)) -> None:
    """One proposal round and the evaluations of a small run."""
    recorder = Recorder(experience, name, HERE)
    found = Ideas(tuple(Idea.of(candidate(n).proposal) for n in range(1, 6)))
    root = Step(candidate(0), STEPS[0])
    assert recorder.expand(lambda *_: found)(View(root, root, ()), 8) == found
    begin = recorder.evaluate(at_once(lambda asked: [STEPS[c.number] for c in asked]))
    for number in numbers:
        begin([candidate(number)])()


def tallies(path: Path) -> tuple[Tally, ...]:
    with closing(Experience(path)) as experience:
        assert experience.notes == ()
        return experience.tallies()


@pytest.fixture
def path(home: Path) -> Path:
    return home / "experience.sqlite"


def test_a_run_is_counted_by_tool_action_and_rule(path: Path) -> None:
    with closing(Experience(path)) as experience:
        run(experience)
        found = experience.tallies()
        assert experience.tallies(Setting("estimated", "hopper")) == ()
        assert experience.tallies(HERE) == found
    assert [(t.kind, t.name) for t in found] == [
        ("tool", "far"),
        ("action", "far > tile"),
        ("rule", "tile"),
    ]
    for t in found:
        assert (t.source, t.family, t.roofline) == ("events", "hopper", "memory")
        assert (t.proposed, t.applied, t.confirmed, t.refuted, t.not_measurable) == (5, 3, 1, 1, 1)
        assert (t.gained, t.measured) == (1, 2)
        assert t.log_gain == pytest.approx(math.log(2.0) + math.log(8.0 / 7.9))
        assert t.mean_gain == pytest.approx((2.0 * 8.0 / 7.9) ** 0.5)


def test_an_edit_that_changed_nothing_of_a_finding_is_no_try_of_its_tool(path: Path) -> None:
    with closing(Experience(path)) as experience:
        experience.apply("r", HERE, candidate(1), STEPS[0], replace(STEPS[1], answered=None))
        experience.apply("r", HERE, candidate(2), STEPS[0], STEPS[2])
        found = {t.kind: t for t in experience.tallies()}
    assert (found["tool"].applied, found["tool"].gained) == (1, 0)
    assert (found["action"].applied, found["action"].gained) == (1, 0)
    assert (found["rule"].applied, found["rule"].gained) == (2, 1)


@pytest.mark.parametrize(
    ("time", "counts"), [("shorter", (1, 0, 0)), ("alike", (1, 0, 0)), ("longer", (0, 1, 0)), ("", (0, 0, 1))]
)  # fmt: skip
def test_a_promise_is_kept_on_time_as_well(
    path: Path, time: str, counts: tuple[int, int, int]
) -> None:
    moved = HypothesisTest("confirmed", 8.0, 1.0, time=time)  # type: ignore[arg-type]
    with closing(Experience(path)) as experience:
        experience.apply("r", HERE, candidate(1), STEPS[0], replace(STEPS[1], test=moved))
        for t in experience.tallies():
            assert (t.confirmed, t.refuted, t.not_measurable) == counts


def test_a_gain_of_just_ten_percent_is_a_hit(path: Path) -> None:
    with closing(Experience(path)) as experience:
        for number, seconds in ((1, 8.0 / 1.101), (2, 8.0 / 1.099)):
            own = evaluation(number, seconds)
            experience.apply("r", HERE, candidate(number), STEPS[0], own)
        assert {t.gained for t in experience.tallies()} == {1}


def test_a_run_that_is_resumed_repeats_nothing(path: Path) -> None:
    with closing(Experience(path)) as experience:
        run(experience, numbers=range(2))
    with closing(Experience(path)) as experience:
        run(experience)
        run(experience)
        once = experience.tallies()
        run(experience, "another run")
        twice = experience.tallies()
    assert once[0].applied == 3
    assert [(t.applied, t.proposed) for t in twice] == [(6, 10)] * 3


def test_a_finalist_that_fails_in_the_end_is_no_hit(path: Path) -> None:
    steps = tuple(Step(candidate(n), STEPS[n]) for n in range(4))
    race = Verdict(Outcome.RACE, "two threads meet")
    with closing(Experience(path)) as experience:
        run(experience)
        settled = Trajectory(steps, "spent").settled({1: race})
        assert Recorder(experience, "a run", HERE).settle(settled) is settled
        (tally,) = [t for t in experience.tallies() if t.kind == "rule"]
        run(experience)  # a run that is resumed brings nothing back
        assert experience.tallies()[-1] == tally
    assert (tally.gained, tally.confirmed, tally.not_measurable, tally.measured) == (0, 0, 2, 1)
    test = settled.steps[1].evaluation.test
    assert test is not None
    assert str(test) == "not measurable: the candidate failed (race)"


_WRITER = """
import sys
from pathlib import Path
sys.path.insert(0, sys.argv[1])
from tests.unit.experience.test_store import Experience, run
experience = Experience(Path(sys.argv[2]))
for number in range(20):
    run(experience, f"{sys.argv[3]} {number}")
assert experience.notes == (), experience.notes
"""


def test_many_processes_write_at_a_time_and_lose_nothing(path: Path) -> None:
    root = str(Path(__file__).parents[3])
    writers = [
        subprocess.Popen([sys.executable, "-c", _WRITER, root, str(path), name]) for name in "abc"
    ]
    assert [writer.wait() for writer in writers] == [0, 0, 0]
    assert {(t.applied, t.proposed) for t in tallies(path)} == {(3 * 20 * 3, 3 * 20 * 5)}


_FINDER = """
import sys
from pathlib import Path
sys.path.insert(0, sys.argv[1])
from tests.unit.experience.test_store import Experience, entry
experience = Experience(Path(sys.argv[2]))
for number in range(20):
    experience.won(entry("tile 0 copy", run=f"{sys.argv[3]} {number}"))
    assert len(experience.entries()) > number
assert experience.notes == (), experience.notes
"""


def test_what_runs_found_is_kept_once_a_run_whoever_writes(path: Path) -> None:
    root = str(Path(__file__).parents[3])
    writers = [
        subprocess.Popen([sys.executable, "-c", _FINDER, root, str(path), name]) for name in "abc"
    ]
    assert [writer.wait() for writer in writers] == [0, 0, 0]
    with closing(Experience(path)) as experience:
        found = experience.entries()
        assert len({one.evidence.origin.run for one in found}) == len(found) == 60
        experience.won(entry("tile 0 copy", gain=9.0, run="a 0"))  # it was resumed
        again = experience.entries()
    assert [one.gain for one in again if one.evidence.origin.run == "a 0"] == [9.0]
    assert len(again) == 60


def test_the_file_of_an_earlier_release_is_set_aside(path: Path) -> None:
    tallies(path)
    with closing(sqlite3.connect(path)) as earlier, earlier:
        earlier.execute(f"PRAGMA user_version = {SCHEMA - 1}")
    with closing(Experience(path)) as experience:
        assert "is of an earlier release" in experience.notes[0]
        assert experience.entries() == ()


def broken(path: Path) -> Iterator[tuple[str, str]]:
    """Writes what is no experience; yields what it is and what the note says."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(b"no database at all, but longer than a header of one" * 20)
    yield "text", "not a database"
    path.unlink(missing_ok=True)
    with closing(sqlite3.connect(path)) as other, other:
        other.execute("CREATE TABLE theirs (a)")
    yield "foreign", "is not an experience file"
    path.unlink(missing_ok=True)
    with closing(Experience(path)) as experience:
        run(experience)
    raw = bytearray(path.read_bytes())
    raw[4096:8192] = b"\xff" * 4096
    path.write_bytes(raw)
    yield "damaged", ""


def test_a_file_that_is_broken_or_foreign_is_set_aside_with_a_note(path: Path) -> None:
    for number, (what, said) in enumerate(broken(path), start=1):
        before = path.read_bytes()
        with closing(Experience(path)) as experience:
            aside = path.with_name(f"experience.aside-{number}.sqlite")
            (note,) = experience.notes
            assert said in note, what
            assert aside.name in note
            run(experience)
            assert experience.tallies()
        assert aside.read_bytes() == before, what


def test_the_file_of_a_later_release_is_left_alone(path: Path) -> None:
    tallies(path)
    with closing(sqlite3.connect(path)) as later, later:
        later.execute(f"PRAGMA user_version = {SCHEMA + 1}")
    before = path.read_bytes()
    with closing(Experience(path)) as experience:
        assert "later release" in experience.notes[0]
        run(experience)
        assert experience.tallies() == ()
    assert path.read_bytes() == before


def test_where_no_file_can_be_made_the_search_goes_on_without(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    with closing(Experience(tmp_path / "file" / "experience.sqlite")) as experience:
        run(experience)
        assert "is not used" in experience.notes[0]
    with closing(Experience(None)) as nothing:
        run(nothing)
        assert (nothing.notes, nothing.tallies()) == ((), ())


def test_a_file_that_goes_bad_in_use_is_said_once(path: Path) -> None:
    with closing(Experience(path)) as experience:
        with closing(sqlite3.connect(path)) as other, other:
            other.execute("DROP TABLE applied")
        run(experience)
        assert len(experience.notes) == 1
        assert "is not used" in experience.notes[0]


def test_the_tables_show_every_tally_with_its_rate(path: Path) -> None:
    with closing(Experience(path)) as experience:
        run(experience)
        found = experience.tallies()
    shown = report.text(found)
    for word in ("far > tile", "hopper", "events", "1.42x", "31 %"):
        assert word in shown
        assert word.replace(">", "&gt;") in report.fragment(found)
    assert "no experience yet" in report.text(())
    evil = replace(found[0], name="<script>")
    assert "<script>" not in report.fragment([evil])
    assert report.rows(found)[0]["hit_rate"] == pytest.approx((4 * 0.3 + 1) / 7)
