"""The profiler seam: how a verified candidate is measured on its device."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from optiml_magic.devices.base import Device, Execution, Fault, Job
from optiml_magic.model.build import Build
from optiml_magic.model.measurement import Measurement, Metric, Missing, Source


class Profiler(Protocol):
    """Measures builds on one device. The first one of a problem is the baseline of the others."""

    @property
    def source(self) -> Source:
        """Of the seconds of its measurements."""

    @property
    def settles(self) -> bool:
        """Whether a second look at the finalists can change a figure."""

    @property
    def notes(self) -> tuple[str, ...]:
        """What there is to say beside the measurements."""

    def begin(self) -> None:
        """Forget the baseline: the next one measured is the input kernel of a problem."""

    def measure(
        self, build: Build, job: Job, best: float = float("inf")
    ) -> Measurement | Fault | Execution:
        """The measurement of one job's launch plan; a fault where it did not end by itself.

        An execution where what it left behind is not what the oracle wants. ``best`` is the seconds
        of the fastest so far: what is far slower need not be measured as well.
        """

    def follow(self, build: Build, job: Job, measured: Measurement) -> None:
        """This one may win: later ones may be timed beside it, where the baseline is slow."""

    def remember(self, build: Build, job: Job, seconds: float) -> None:
        """The baseline of a run that is resumed, and what it took then."""

    def settle(
        self, finalists: Sequence[tuple[Build, Job]]
    ) -> Sequence[Measurement | Execution] | Fault:
        """The baseline and the finalists measured once more, in turn; empty where none settles."""


class AddedProfiler(Protocol):
    """Adds figures of its own to what was measured: the seam for other packages."""

    @property
    def name(self) -> str:
        """What its notes and missing figures are called by."""

    def measure(
        self, device: Device, build: Build, job: Job, measured: Measurement
    ) -> Sequence[Metric] | Missing:
        """Metrics beside those of ``measured``, or why there are none."""
