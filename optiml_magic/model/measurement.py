"""How fast and by what means: every figure with its unit, its source and its chip."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from optiml_magic.model.counters import KernelCounters

Source = Literal["emulated", "modelled", "sass", "estimated", "compiler", "events", "ncu"]


@dataclass(frozen=True)
class Metric:
    """One figure. ``name`` is Nsight Compute's where it has one; ``note`` qualifies the source."""

    name: str
    value: float
    unit: str
    source: Source
    note: str = ""

    @property
    def origin(self) -> str:
        """The source with what is to be known of it: ``emulated, sampled 512 of 65536 blocks``."""
        return f"{self.source}, {self.note}" if self.note else self.source


@dataclass(frozen=True)
class Bound:
    """One term of a time model: the seconds that this resource alone would need."""

    resource: str
    seconds: float


@dataclass(frozen=True)
class RuleFact:
    """What one of Nsight Compute's own rules said of a launch.

    ``speedup`` is its estimate in percent of the run time, None where it gave none.
    """

    rule: str  # its identifier, ``UncoalescedGlobalAccess``
    message: str
    speedup: float | None = None
    kernel: str = ""  # lowered name
    line: int = 0  # 1-based line of the kernel text; 0 when the whole kernel is meant


@dataclass(frozen=True)
class Measurement:
    """One program on one chip. A metric that was not to be had is absent; it is never NaN.

    ``seconds`` is the duration of one run of the whole launch plan. ``ratio_error`` is the factor
    by which a *ratio* of two durations from this source may be off: 1.3 means between r / 1.3 and
    1.3 r.
    """

    chip: str
    source: Source  # of seconds
    seconds: float
    ratio_error: float
    metrics: tuple[Metric, ...]
    bounds: tuple[Bound, ...]  # longest first
    kernels: tuple[KernelCounters, ...]
    rules: tuple[RuleFact, ...] = ()

    def get(self, name: str) -> float | None:
        """The value of a metric, or None where it was not measured."""
        return next((m.value for m in self.metrics if m.name == name), None)


def speedup_interval(root: Measurement, best: Measurement) -> tuple[float, float, float]:
    """Speed-up of ``best`` over ``root`` with its interval: ``(speedup, low, high)``.

    Both must come from the same source on the same chip.
    """
    if (root.source, root.chip) != (best.source, best.chip):
        raise ValueError(f"{root.source}@{root.chip} and {best.source}@{best.chip} do not compare")
    ratio = root.seconds / best.seconds
    error = max(root.ratio_error, best.ratio_error)
    return ratio, ratio / error, ratio * error
