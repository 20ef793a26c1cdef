"""Which entries a run begins with, what they count, and what is said of them."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from optiml_magic.experience import shipped
from optiml_magic.experience.recall import Past, told
from optiml_magic.experience.store import Experience
from optiml_magic.model.codec import from_json, to_json
from optiml_magic.model.experience import NOTHING_KNOWN, Entry, Known, known
from optiml_magic.settings import Settings

from .entries import entry, kind
from .trajectories import trajectory


@pytest.mark.parametrize(
    ("other", "distance"),
    [
        (kind(), 0),
        (kind(11, 6, 5), 1),
        (kind(12, 4, 5), 2),
        (kind(15, 6, 5), None),
        (kind(family="ampere"), 2),
        (kind(11, 6, 5, family="ampere"), 3),
        (kind(patterns=("load", "store")), None),
    ],
)
def test_how_far_apart_kinds_are(other, distance) -> None:
    assert kind().distance(other) == distance
    assert other.distance(kind()) == distance


def test_the_nearest_entries_count_most_and_the_users_own_more() -> None:
    far, near, other = entry("a", of=kind(11, 6, 5)), entry("b"), entry("c", program="q")
    found = known(kind(), "events", [other], [far, near])
    assert [one.entry for one in found.entries] == [other, near, far]
    weights = [weight for weight, _ in found.weighed("memory")]
    assert weights == sorted(weights, reverse=True)
    assert weights[0] == 1.0
    elsewhere = [weight for weight, _ in found.weighed("compute")]
    assert all(less < more for less, more in zip(elsewhere, weights, strict=True))
    guess = entry("d", source="estimated")
    for source, weight in (("events", 0.5), ("estimated", 1.0)):
        (one,) = known(kind(), source, [guess], []).weighed("memory")
        assert one == (weight, guess)


def test_of_one_kind_what_gained_most_counts_most() -> None:
    slow, fast = entry("a", gain=2.7), entry("b", gain=31.0, program="q")
    found = known(kind(), "events", [], [slow, fast])
    assert [one for _, one in found.weighed("memory")] == [fast, slow]


def test_of_one_program_and_path_the_best_stands_for_all() -> None:
    runs = [entry("a", gain=gain, run=str(gain)) for gain in (2.0, 5.0, 3.0)]
    (one,) = known(kind(), "events", runs, []).entries
    assert one.entry.gain == 5.0


def test_a_kernel_that_cannot_be_read_knows_nothing() -> None:
    assert known(None, "events", [entry("a")], []) is NOTHING_KNOWN
    assert from_json(Known, to_json(Known, NOTHING_KNOWN)) == NOTHING_KNOWN


def test_what_ships_lies_under_the_users_own_and_both_can_be_left_out(home: Path) -> None:
    file = home / "others.jsonl"
    home.mkdir()
    shipped.write(file, [entry("shipped")])
    paths = {}
    for chosen in ("all", "shipped", "none"):
        settings = Settings(experience=chosen, shipped=file)
        own = Experience(settings.experience_file if chosen == "all" else None)
        own.won(entry("own", program="q"))
        found = Past(own, settings, "events").known(kind())
        own.close()
        paths[chosen] = [one.entry.path for one in found.entries]
        assert found.kind == kind()
    assert paths == {"all": [("own",), ("shipped",)], "shipped": [("shipped",)], "none": []}


def test_a_file_of_entries_that_cannot_be_read_is_noted(tmp_path: Path) -> None:
    bad = tmp_path / "bad.jsonl"
    bad.write_text('{"kind": 3}\n')
    for file in (bad, tmp_path / "missing.jsonl"):
        past = Past(Experience(None), Settings(shipped=file), "events")
        assert past.known(kind()).entries == ()
        assert past.notes[0].startswith(f"measurements of others are not used: {file.name}: ")
    assert shipped.read(Path(os.devnull)) == ((), "")


def test_what_ships_was_timed_on_a_card_and_says_where_it_comes_from() -> None:
    found, unread = shipped.read(Settings().shipped)
    assert not unread
    for one in found:
        evidence = one.evidence
        assert evidence.source == "events"
        assert all((evidence.chip, evidence.program, evidence.input_seconds, evidence.error))
        origin = evidence.origin
        assert all((origin.run, origin.date, origin.driver, origin.compiler, origin.version))
        assert from_json(Entry, to_json(Entry, one)) == one
        assert one.gain >= 1.1 or not one.moves


@pytest.mark.parametrize(
    ("path", "end"),
    [
        (("tile 0 copy",), "it won here too"),
        (("block_size 0 block",), "it was tried, and another was better"),
        (("stage 0 loops (0,)", "tile 0 copy"), "it was not tried here"),
    ],
)
def test_a_result_says_what_it_was_told(path, end) -> None:
    run = trajectory(("tile 0 copy", 2.0), ("block_size 0 block", 4.0))
    found = known(kind(), "events", [], [entry(*path), entry(*path, program="q")])
    (said,) = told(found, run)
    rules = ", then ".join(move.split()[0] for move in path)
    assert said.startswith(f"experience: {rules} won on 2 kernels like this one (")
    assert said.endswith(end)
    assert "4x on h200, events, 2026-11-22" in said
    assert told(known(kind(), "events", [], [entry()]), run) == ()
