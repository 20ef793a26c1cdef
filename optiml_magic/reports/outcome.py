"""What stands on top of every report: how much faster, between which bounds, what limits it now."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from optiml_magic.model.evaluation import EXHAUSTED, Step
from optiml_magic.model.finding import RooflineClass
from optiml_magic.reports.quantities import number_of, ratio, seconds
from optiml_magic.reports.standing import above_floor
from optiml_magic.reports.summary import Summary, step_speedup

_MENTIONED = 1.05  # speed-up from which a candidate that is not claimed is mentioned: ours

_LIMITS: dict[RooflineClass, str] = {
    "memory": "device memory",
    "compute": "arithmetic",
    "latency": "latency",
    "launch": "the launch",
    "mixed": "several things alike",
}


@dataclass(frozen=True)
class Bar:
    """One duration beside the others; ``role`` is ``before``, ``after`` or ``other``."""

    name: str
    seconds: float
    told: str
    role: str


def claim(summary: Summary) -> str:
    """What came out, in a few words."""
    if not summary.root.evaluation.verdict.passed:
        return f"{summary.baseline} failed"
    if summary.peer is not None and summary.saving is None:
        return _beside(summary)
    if summary.winner is summary.root:
        tried = len(summary.trajectory.steps) - 1
        if not tried and summary.trajectory.stopped == EXHAUSTED:
            rules = {refusal.rule for refusal in summary.root.refused}
            why = f"; {number_of(len(rules), 'rule')} came close and refused" if rules else ""
            return f"no rule found a place to change{why}"
        return f"no significant change found in {number_of(tried, 'candidate')}{_within(summary)}"
    saved, least, _ = summary.saving or (1.0, 1.0, 1.0)
    if least > 1.0:
        return f"{ratio(saved)} fewer joules at {ratio(summary.speedup)} the speed"
    return f"{ratio(summary.speedup)} faster"


def _within(summary: Summary) -> str:
    """The fastest candidate, where its gain is within the error of its time."""
    steps = (step for step in summary.trajectory.steps if step.evaluation.verdict.passed)
    fastest = max((step_speedup(summary, step) or 1.0 for step in steps), default=1.0)
    if fastest < _MENTIONED:
        return ""
    return f"; the fastest, {ratio(fastest)}, is within the error of its time"


def bounds(summary: Summary) -> str:
    """Within which bounds that is claimed; empty where nothing is."""
    if not summary.root.evaluation.verdict.passed:
        return ""
    if summary.winner is summary.root and summary.peer is None:
        return ""
    saved = summary.saving
    low, high = saved[1:] if saved and saved[1] > 1.0 else summary.interval
    return f"between {ratio(low)} and {ratio(high)}"


def _beside(summary: Summary) -> str:
    """How the winner compares with the peer."""
    assert summary.peer is not None
    (low, high), found = summary.interval, summary.speedup
    if low > 1:
        return f"{ratio(found)} faster than {summary.peer.name}"
    if high < 1:
        return f"slower than {summary.peer.name}, {ratio(found)} its speed"
    return f"about as fast as {summary.peer.name}, {ratio(found)} its speed"


def bars(summary: Summary) -> Sequence[Bar]:
    """What speed-ups are over, the winner, and the floor of the task where it is known."""
    found, source = [], summary.source
    if summary.peer is not None:
        told = f"{seconds(summary.peer.seconds)} {source}"
        found.append(Bar(summary.peer.name, summary.peer.seconds, told, "before"))
    ends = [(summary.start, summary.root)]
    if summary.winner is not summary.root:
        ends.append(("best", summary.winner))
    for name, step in ends:
        if (measured := step.evaluation.measurement) is not None:
            told = f"{seconds(measured.seconds)} {measured.source}"
            role = "after" if step is summary.winner and found else "before"
            found.append(Bar(name, measured.seconds, told, role))
    standing = summary.root.evaluation.standing
    if found and standing is not None and standing.floor is not None:
        found.append(Bar("floor", standing.floor, seconds(standing.floor), "other"))
    return found


def limit(step: Step) -> str:
    """What limits one kernel, and how far it is above the floor; empty where nobody knows."""
    standing, measured = step.evaluation.standing, step.evaluation.measurement
    if standing is None or measured is None:
        return ""
    place = above_floor(replace(standing, seconds=measured.seconds))
    return f"limited by {_LIMITS[standing.kind]} ({standing.because}), {place}"
