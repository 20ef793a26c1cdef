from __future__ import annotations

import json
from dataclasses import asdict

import pytest

from optiml_magic.model.evaluation import Step
from optiml_magic.model.refusal import Refusal
from optiml_magic.widgets.frame import Board, Frame
from tests.unit.widgets.steps import EVIL, SUBJECT, finding, some, step


def frame(steps: list[Step]) -> Frame:
    board = Board(SUBJECT)
    for one in steps:
        board.add(one)
    return board.frame()


def test_before_the_first_step_there_is_nothing() -> None:
    assert frame([]) == Frame()


def test_the_best_is_verified_and_carries_interval_and_source() -> None:
    best = frame(some()).best
    assert (best["id"], best["title"], best["source"]) == (3, "pad the tile", "estimated")
    assert best["significant"]
    assert best["speedup"] == pytest.approx(5)
    assert (best["low"], best["high"]) == pytest.approx((5 / 1.3, 5 * 1.3))


def test_a_gain_within_the_interval_is_shown_but_not_significant() -> None:
    shown = frame([step(0), step(1, 0, 0.9e-5)])
    assert shown.best["id"] == 1
    assert not shown.best["significant"]
    assert shown.program == step(0).candidate.text
    assert shown.diff == ""


def test_program_and_diff_are_of_the_winner() -> None:
    shown = frame(some())
    assert shown.program == "program 3\nline two\n"
    assert "-program 0" in shown.diff
    assert "+program 3" in shown.diff


def test_rows_tell_parent_verdict_and_speedup_of_each_step() -> None:
    rows = frame(some()).steps
    assert [row["parent"] for row in rows] == [None, 0, 0, 1, 1]
    assert [row["verdict"] for row in rows] == ["passed", "passed", "wrong", "passed", "duplicate"]
    assert rows[2]["detail"] == "why 2"
    assert rows[2]["speedup"] is None
    assert rows[4]["detail"] == "same as #1"
    assert rows[3]["speedup"] == pytest.approx(5)


def test_verdicts_are_counted() -> None:
    assert frame(some()).verdicts == {"passed": 3, "wrong": 1, "duplicate": 1}


def test_findings_are_of_the_best_or_of_the_nearest_that_it_was_made_from() -> None:
    later = step(5, 0, 9e-6, findings=(finding("of a slow one"),))
    shown = frame([*some(), later]).findings
    assert [(f["step"], f["cause"]) for f in shown] == [(3, "bank conflicts")]
    shown = frame([*some(), later, step(6, 3, 1e-6)]).findings
    assert [f["step"] for f in shown] == [3]
    assert [f["step"] for f in frame(some()[:2]).findings] == [0]


def test_a_node_is_a_step_with_its_program_and_the_diff_against_its_parent() -> None:
    board = Board(SUBJECT)
    for one in some():
        board.add(one)
    shown = board.node(3)
    assert shown is not None
    assert (shown["id"], shown["parent"], shown["title"]) == (3, 1, "pad the tile")
    assert shown["program"] == step(3).candidate.text
    assert shown["diff"].splitlines()[1:3] == ["-program 1", "+program 3"]
    assert [f["cause"] for f in shown["findings"]] == ["bank conflicts"]
    failed, root, repeated = board.node(2), board.node(0), board.node(4)
    assert failed
    assert root
    assert repeated
    assert (failed["verdict"], failed["why"], failed["speedup"]) == ("wrong", "why 2", None)
    assert (root["diff"], root["parent"]) == ("", None)
    assert (repeated["verdict"], repeated["why"]) == ("duplicate", "same as #1")
    assert json.loads(json.dumps(shown, allow_nan=False)) == shown
    for unknown in (9, None, "3", [3]):
        assert board.node(unknown) is None


def test_a_failed_input_kernel_is_a_frame_too() -> None:
    shown = frame([step(0, seconds=None)])
    assert shown.best["speedup"] == 1.0
    assert not shown.best["significant"]
    assert shown.steps[0]["verdict"] == "wrong"


def test_frames_are_plain_json_whatever_the_texts_hold() -> None:
    shown = frame([step(0, title=EVIL, findings=(finding(EVIL),)), step(1, 0, None, title=EVIL)])
    assert json.loads(json.dumps(asdict(shown), allow_nan=False)) == asdict(shown)


def test_frames_share_no_list_with_later_ones() -> None:
    board = Board(SUBJECT)
    board.add(step(0))
    first = board.frame()
    board.add(step(1))
    assert len(first.steps) == 1


def test_what_was_refused_is_told_by_program_as_it_stands_now() -> None:
    board = Board(SUBJECT)
    refused = {0: (Refusal("tile", EVIL, 9),)}
    for at, one in enumerate(some()):
        board.add(one, refused if at else {})
        told = board.frame().refused
        assert [group["program"] for group in told] == (["the input kernel"] if at else [])
    assert told[0]["reasons"] == [f"tile: {EVIL}, line 9"[:240]]
    board.add(step(9, 3, 1.9e-5), refused | {3: (Refusal("swap", "no axis"),)})
    assert [group["program"] for group in board.frame().refused] == [
        "the best program",
        "the input kernel",
    ]
