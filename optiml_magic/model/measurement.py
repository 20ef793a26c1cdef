"""How fast and by what means: every figure with its unit, its source and its chip."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

from optiml_magic.model.condition import Conditions
from optiml_magic.model.counters import KernelCounters
from optiml_magic.model.vocabulary import VOCABULARY, Source

__all__ = ["Bound", "Measurement", "Metric", "Missing", "RuleResult", "Source", "speedup_interval"]


@dataclass(frozen=True)
class Metric:
    """One figure, always finite. ``name`` is in the vocabulary; ``note`` qualifies the source."""

    name: str
    value: float
    unit: str
    source: Source
    note: str = ""

    def __post_init__(self) -> None:
        if not math.isfinite(self.value):
            raise ValueError(f"{self.name} is {self.value}: a missing metric is a Missing")

    @property
    def origin(self) -> str:
        """The source with what is to be known of it: ``emulated, sampled 512 of 65536 blocks``."""
        return f"{self.source}, {self.note}" if self.note else self.source


@dataclass(frozen=True)
class Missing:
    """A metric that was not to be had, or a whole level of the vocabulary, and why."""

    name: str
    reason: str


@dataclass(frozen=True)
class RuleResult:
    """What a rule of Nsight Compute says of one launch, in NVIDIA's words.

    ``speedup`` is the rule's own estimate as a factor, None where it gives none; ``scope`` says
    whether it means the kernel's time or that of one part of it. ``line`` is 1-based, 0 if unknown.
    """

    rule: str  # its identifier, such as UncoalescedGlobalAccess
    title: str
    message: str
    kind: Literal["optimization", "warning", "ok", "error", "none"]
    kernel: str  # lowered name
    speedup: float | None = None
    scope: Literal["global", "local", "unknown"] = "unknown"
    line: int = 0
    metrics: tuple[tuple[str, float], ...] = ()  # those that the rule says it is about


@dataclass(frozen=True)
class Bound:
    """One term of a time model: the seconds that this resource alone would need."""

    resource: str
    seconds: float


@dataclass(frozen=True)
class Measurement:
    """One program on one chip. A metric that was not to be had is absent; ``why`` tells why.

    ``seconds`` is the duration of one run of the whole launch plan. ``ratio_error`` is the factor
    by which a *ratio* of two durations from this source may be off: 1.3 means between r / 1.3 and
    1.3 r. ``kernels`` are the counts of each launch, by source line, from ncu or emulated.
    """

    chip: str
    source: Source  # of seconds
    seconds: float
    ratio_error: float
    metrics: tuple[Metric, ...]
    bounds: tuple[Bound, ...]  # longest first
    kernels: tuple[KernelCounters, ...]
    conditions: Conditions | None = None  # of the card, where it was timed
    missing: tuple[Missing, ...] = ()
    rules: tuple[RuleResult, ...] = ()

    def __repr__(self) -> str:
        return f"<{self.seconds:.3g} s {self.source} on {self.chip}, {len(self.metrics)} metrics>"

    def metric(self, name: str) -> Metric | None:
        """A metric with its source, the first where several gave it; None where none did."""
        return next((m for m in self.metrics if m.name == name), None)

    def get(self, name: str) -> float | None:
        """The value of a metric, or None where it was not measured."""
        found = self.metric(name)
        return None if found is None else found.value

    def why(self, name: str) -> str:
        """Why a metric is absent; the empty string where it is there."""
        if self.metric(name) is not None:
            return ""
        reasons = {m.name: m.reason for m in self.missing}
        if name in reasons:
            return reasons[name]
        entry = VOCABULARY.get(name)
        if entry is None:  # what is in no vocabulary is taken for one of ncu's
            return reasons.get("counters", "no such metric")
        if "counters" in entry.levels and "counters" not in reasons:
            return "not requested from ncu"
        refused = [reasons[level] for level in entry.levels if level in reasons]
        return "; ".join(dict.fromkeys(refused)) or "not requested"


def speedup_interval(root: Measurement, best: Measurement) -> tuple[float, float, float]:
    """Speed-up of ``best`` over ``root`` with its interval: ``(speedup, low, high)``.

    Both must come from the same source on the same chip.
    """
    if (root.source, root.chip) != (best.source, best.chip):
        raise ValueError(f"{root.source}@{root.chip} and {best.source}@{best.chip} do not compare")
    ratio = root.seconds / best.seconds
    error = max(root.ratio_error, best.ratio_error)
    return ratio, ratio / error, ratio * error
