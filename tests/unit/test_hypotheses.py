"""A promise against two measurements: when it counts as kept."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from optiml_magic.hypotheses import LEAST_CHANGE, assess
from optiml_magic.model.codec import from_json, to_json
from optiml_magic.model.counters import KernelCounters, Sampled
from optiml_magic.model.evaluation import Evaluation
from optiml_magic.model.hypothesis import TIME, Hypothesis, HypothesisTest
from optiml_magic.model.measurement import Measurement, Metric, Source
from optiml_magic.model.verdict import Outcome, Verdict

LOWER = Hypothesis("sectors", "lower", "fewer", (2.0, 8.0))
HIGHER = Hypothesis("sectors", "higher")


def measured(
    value: float | None,
    *,
    seconds: float = 1e-3,
    source: Source = "emulated",
    chip: str = "h200",
    sampled: float = 0.0,
) -> Measurement:
    metrics = () if value is None else (Metric("sectors", value, "sector", source),)
    kernel = KernelCounters(
        "k", 1, 1, {}, {}, (), (), 0, 0, 0, 0, 0, Sampled(1, 2, sampled) if sampled else None
    )
    return Measurement(chip, "estimated", seconds, 1.4, metrics, (), (kernel,))


def passed(found: Measurement | None) -> Evaluation:
    return Evaluation(1, "x", Verdict(Outcome.PASSED, ""), found)


@pytest.mark.parametrize(
    ("hypothesis", "before", "after", "state"),
    [
        (LOWER, 100.0, 12.5, "confirmed"),
        (LOWER, 100.0, 94.0, "confirmed"),
        (LOWER, 100.0, 96.0, "refuted"),
        (LOWER, 100.0, 100.0, "refuted"),
        (LOWER, 100.0, 800.0, "refuted"),
        (LOWER, 100.0, 0.0, "confirmed"),
        (LOWER, 0.0, 0.0, "refuted"),
        (LOWER, 0.0, 5.0, "refuted"),
        (HIGHER, 100.0, 106.0, "confirmed"),
        (HIGHER, 100.0, 104.0, "refuted"),
        (HIGHER, 0.0, 1.0, "confirmed"),
        (HIGHER, 0.0, 0.0, "refuted"),
    ],
)
def test_a_change_counts_beyond_five_percent_the_promised_way(
    hypothesis: Hypothesis, before: float, after: float, state: str
) -> None:
    found = assess(hypothesis, measured(before), passed(measured(after)))
    assert (found.state, found.before, found.after) == (state, before, after)
    assert (found.reason == "") == (state == "confirmed")


@given(before=st.floats(0.0, 1e15), after=st.floats(0.0, 1e15), direction=st.sampled_from("lh"))
def test_no_two_opposite_promises_are_both_kept(
    before: float, after: float, direction: str
) -> None:
    states = [
        assess(hypothesis, measured(before), passed(measured(after))).state
        for hypothesis in (LOWER, HIGHER)
    ]
    assert states.count("confirmed") <= 1
    moved = max(before, after) > min(before, after) * (1 + LEAST_CHANGE)
    assert ("confirmed" in states) == moved


@given(value=st.floats(0.0, 1e15), factor=st.sampled_from([0.5, 0.9, 1.0, 1.02, 1.2, 4.0]))
def test_a_promise_mirrors_when_parent_and_child_change_places(value: float, factor: float) -> None:
    one, other = measured(value), measured(value * factor)
    forth = assess(LOWER, one, passed(other)).state
    back = assess(HIGHER, other, passed(one)).state
    assert (forth == "confirmed") == (back == "confirmed")


def test_counts_of_a_sample_have_to_move_beyond_their_error() -> None:
    before, after = measured(100.0, sampled=0.04), measured(90.0, sampled=0.04)
    assert assess(LOWER, before, passed(after)).state == "refuted"
    exact = [replace(m, kernels=()) for m in (before, after)]
    assert assess(LOWER, exact[0], passed(exact[1])).state == "confirmed"


def test_times_have_to_move_beyond_their_interval() -> None:
    faster = Hypothesis(TIME, "lower")
    before = measured(1.0, seconds=1.4e-3)
    within = assess(faster, before, passed(measured(1.0, seconds=1.01e-3)))
    beyond = assess(faster, before, passed(measured(1.0, seconds=0.99e-3)))
    assert (within.state, beyond.state) == ("refuted", "confirmed")
    assert (beyond.source, beyond.unit) == ("estimated", "s")


@pytest.mark.parametrize(
    ("parent", "child", "reason"),
    [
        (measured(None), measured(1.0), "only one of the two programs has sectors"),
        (measured(None), measured(None), "neither of the two programs has sectors"),
        (measured(2.0), measured(1.0, source="ncu"), "emulated before and ncu after"),
        (measured(2.0), measured(1.0, chip="t4"), "h200 before and on t4 after"),
        (None, measured(1.0), "its parent was not measured"),
    ],
)
def test_what_cannot_be_compared_is_not_measurable_and_says_why(
    parent: Measurement | None, child: Measurement, reason: str
) -> None:
    found = assess(LOWER, parent, passed(child))
    assert found.state == "not_measurable"
    assert reason in found.reason
    assert reason in str(found)


def test_a_candidate_that_failed_tested_nothing() -> None:
    failed = Evaluation(1, "x", Verdict(Outcome.WRONG, "3 wrong"), measured(1.0))
    found = assess(LOWER, measured(2.0), failed)
    assert (found.state, found.reason) == ("not_measurable", "the candidate failed (wrong)")


def test_both_are_told_in_words_and_survive_the_journal() -> None:
    found = assess(LOWER, measured(100.0), passed(measured(12.5)))
    assert str(LOWER) == "sectors 2x to 8x lower"
    assert str(HIGHER) == "sectors higher"
    assert str(found) == "confirmed: from 100 to 12.5 sector, emulated, 8x lower; the time alike"
    assert from_json(HypothesisTest, to_json(HypothesisTest, found)) == found
    assert from_json(Hypothesis, to_json(Hypothesis, LOWER)) == LOWER


@pytest.mark.parametrize(
    ("after", "seconds", "time", "kept", "told"),
    [
        (50.0, 1e-3, "alike", "confirmed", "2x lower; the time alike"),
        (50.0, 1.3e-3, "alike", "confirmed", "2x lower; the time alike"),  # noise is 1.4
        (50.0, 5e-4, "shorter", "confirmed", "2x lower; the time 2x shorter"),
        (50.0, 2e-3, "longer", "refuted", "2x lower; the time 2x longer: not kept"),
        (200.0, 2e-3, "longer", "refuted", "it went the other way; the time 2x longer"),
        (200.0, 5e-4, "shorter", "refuted", "it went the other way; the time 2x shorter"),
    ],
)
def test_the_time_is_judged_beside_the_metric(
    after: float, seconds: float, time: str, kept: str, told: str
) -> None:
    test = assess(LOWER, measured(100.0), passed(measured(after, seconds=seconds)))
    assert (test.time, test.kept) == (time, kept)
    assert test.state == ("confirmed" if after < 100 else "refuted")
    assert str(test).endswith(told)


def test_a_metric_that_moved_in_a_time_of_another_source_kept_nothing() -> None:
    child = replace(measured(50.0), source="events")
    test = assess(LOWER, measured(100.0), passed(child))
    assert (test.state, test.time, test.kept) == ("confirmed", "", "not_measurable")


def test_a_promise_of_time_says_it_once() -> None:
    slower = passed(measured(1.0, seconds=2e-3))
    test = assess(Hypothesis(TIME, "lower"), measured(1.0), slower)
    assert (test.state, test.time, test.kept) == ("refuted", "longer", "refuted")
    assert "the time" not in str(test)


def test_what_an_earlier_release_wrote_is_read() -> None:
    test = assess(LOWER, measured(100.0), passed(measured(50.0)))
    evaluation = replace(passed(measured(50.0)), test=test)
    written = json.loads(to_json(Evaluation, evaluation))
    del written["answered"], written["test"]["time"], written["test"]["times"]
    read = from_json(Evaluation, json.dumps(written))
    assert read.test is not None
    assert (read.test.state, read.test.kept) == ("confirmed", "not_measurable")
    assert read.answered is None
