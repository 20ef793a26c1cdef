"""The tools that read why warps wait, which a card alone can tell."""

from __future__ import annotations

from dataclasses import replace

import pytest

from optiml_magic.findings import Subject
from optiml_magic.findings.barrier_stalls import BarrierStalls
from optiml_magic.findings.dominant_stall import _REASONS, DominantStall, stall_metric
from optiml_magic.model.counters import KernelCounters, LineCounters
from optiml_magic.model.launch import Launch, LaunchPlan
from optiml_magic.model.measurement import Measurement, Metric

from .test_subject import subject

BUSY = "smsp__issue_active.avg.pct_of_peak_sustained_active"
LAUNCH = Launch("k", (64, 1, 1), (256, 1, 1), 0, ())


def waiting(
    busy: float = 30.0, samples: dict[int, dict[str, int]] | None = None, **warps: float
) -> Subject:
    """A kernel whose warps wait so, with samples by line."""
    metrics = [
        Metric(stall_metric(reason), value, "warp", "ncu") for reason, value in warps.items()
    ]
    lines = tuple(
        LineCounters(line, 100, 3200, {"barrier": 1 if "barrier" in found else 0}, stalls=found)
        for line, found in (samples or {}).items()
    )
    counts = KernelCounters(
        "k", 100, 3200, {}, {}, (), lines, 0, None, None, None, None, source="ncu"
    )
    measured = Measurement(
        "h200", "events", 1e-5, 1.01, (Metric(BUSY, busy, "%", "ncu"), *metrics), (), (counts,)
    )
    return replace(subject(measured=measured), plan=LaunchPlan((LAUNCH,)))


def test_the_dominant_reason_is_named_with_the_line_where_most_warps_wait() -> None:
    samples = {3: {"long_scoreboard": 5}, 4: {"long_scoreboard": 50, "wait": 3}, 5: {"wait": 99}}
    (found,) = DominantStall().diagnose(
        waiting(samples=samples, long_scoreboard=7.0, wait=2.0, selected=1.0)
    )
    assert found.line == 4
    assert found.severity == "critical"
    assert "70 %" in found.cause
    assert "global or local memory" in found.cause
    assert found.actions[0].metric == stall_metric("long_scoreboard")
    assert found.actions[0].direction == "lower"


@pytest.mark.parametrize("reason", _REASONS)
def test_every_reason_is_told_with_what_helps(reason: str) -> None:
    (found,) = DominantStall().diagnose(waiting(**{reason: 9.0, "selected": 1.0}))
    assert _REASONS[reason][0] in found.cause
    assert _REASONS[reason][1] in {action.advice for action in found.actions}


@pytest.mark.parametrize(
    ("busy", "warps"),
    [
        (90.0, {"long_scoreboard": 7.0, "selected": 1.0}),  # the schedulers have enough to do
        (30.0, {"long_scoreboard": 1.0, "wait": 1.0, "lg_throttle": 1.0}),  # no one reason
        (30.0, {"not_selected": 7.0, "selected": 1.0}),  # others had their turn
        (30.0, {}),
    ],
)
def test_it_is_silent_where_no_stall_hurts(busy, warps) -> None:
    assert list(DominantStall().diagnose(waiting(busy, **warps))) == []


def test_ncus_samples_have_another_name_for_missing_instructions() -> None:
    samples = {4: {"no_instructions": 9}}
    (found,) = DominantStall().diagnose(waiting(samples=samples, no_instruction=9.0, selected=1.0))
    assert found.line == 4


def test_a_barrier_is_named_by_its_own_line() -> None:
    samples = {4: {"barrier": 0}, 5: {"wait": 9}}
    (found,) = BarrierStalls().diagnose(waiting(samples=samples, barrier=4.0, selected=6.0))
    assert found.line == 4
    assert "40 %" in found.cause


def test_few_waits_at_barriers_are_no_finding() -> None:
    assert list(BarrierStalls().diagnose(waiting(barrier=2.0, selected=8.0))) == []
