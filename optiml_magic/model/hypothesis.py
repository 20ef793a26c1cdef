"""What an edit is expected to do to one metric, and what came of it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from optiml_magic.model.finding import Direction

TIME = "gpu__time_duration.sum"  # ncu's name; a measurement has it in its seconds

HypothesisState = Literal["confirmed", "refuted", "not_measurable"]
TimeState = Literal["shorter", "alike", "longer", ""]


@dataclass(frozen=True)
class Hypothesis:
    """Which metric an edit moves, which way, and how far.

    ``factor`` is how many times lower or higher the metric becomes, as a range from the least to
    the most; ``(1.0, 1.0)`` promises no more than the direction.
    """

    metric: str
    direction: Direction
    because: str = ""
    factor: tuple[float, float] = (1.0, 1.0)

    @property
    def is_counted(self) -> bool:
        """Whether it takes counters to tell; the time alone is measured anyway."""
        return self.metric != TIME

    def __str__(self) -> str:
        low, high = self.factor
        if high <= 1.0:
            return f"{self.metric} {self.direction}"
        low_, high_ = (f"{x:.3g}x" if x < 1000 else f"{x:.0f}x" for x in (low, high))
        times = low_ if low == high else f"{low_} to {high_}"
        return f"{self.metric} {times} {self.direction}"


@dataclass(frozen=True)
class HypothesisTest:
    """What became of a hypothesis: the candidate measured against the program it was made from.

    ``before`` and ``after`` are the metric of parent and child, None where it was not measured;
    ``source`` is that of both. ``reason`` says why, where the state alone would not. ``state`` is
    about the metric alone; ``time`` says how the times of the two compare beyond noise, "" where
    they cannot be compared, and ``times`` is that of the candidate over its parent's.
    """

    state: HypothesisState
    before: float | None = None
    after: float | None = None
    unit: str = ""
    source: str = ""
    reason: str = ""
    time: TimeState = ""
    times: float | None = None

    @property
    def kept(self) -> HypothesisState:
        """Of the promise as a whole: the metric moved as promised, and the time is no longer."""
        if self.state != "confirmed" or self.time in ("shorter", "alike"):
            return self.state
        return "refuted" if self.time == "longer" else "not_measurable"

    @property
    def change(self) -> float | None:
        """After over before; None where either is missing or there was nothing before."""
        if not self.before or self.after is None:
            return None
        return self.after / self.before

    def __str__(self) -> str:
        state = self.state.replace("_", " ")
        if self.before is None or self.after is None:
            return f"{state}: {self.reason}"
        unit = f" {self.unit}" if self.unit else ""
        went = f"from {self.before:.4g} to {self.after:.4g}{unit}, {self.source}{self._times}"
        reason = f"; {self.reason}" if self.reason else ""
        return f"{state}: {went}{reason}{self._time}"

    @property
    def _time(self) -> str:
        if not self.time or not self.times or self.unit == "s":
            return ""
        if self.time == "alike":
            return "; the time alike"
        longer = self.time == "longer"
        times = self.times if longer else 1 / self.times
        broken = ": not kept" if longer and self.state == "confirmed" else ""
        return f"; the time {times:.3g}x {self.time}{broken}"

    @property
    def _times(self) -> str:
        change = self.change
        if not change:
            return ""
        times, way = (change, "higher") if change > 1.0 else (1 / change, "lower")
        told = f"{times:.3g}x"
        return "" if told == "1x" else f", {told} {way}"


def untested(outcome: str) -> HypothesisTest:
    """Of a candidate that failed: whatever it moved, it did not compute the same."""
    return HypothesisTest("not_measurable", reason=f"the candidate failed ({outcome})")
