"""Device events to a measurement: a candidate and the baseline in turn, on one stream.

The seconds of a candidate are those of the baseline times the ratio of the two medians, so that a
clock that drifts in the course of a search falls on both alike.
"""

from __future__ import annotations

import statistics

from optiml_magic.chips import Chip
from optiml_magic.devices.base import Execution, Fault, Job, TimedDevice, Timing
from optiml_magic.model.build import Build
from optiml_magic.model.measurement import Bound, Measurement, Source
from optiml_magic.profilers.emulated import fitted, static

_SAMPLES = 15
_FINAL_SAMPLES = 60
_LEAST_ERROR = 0.01  # a gain below 1 % is never called one
_SIGMAS = 3.0


class EventsProfiler:
    """Times by events; counters come from elsewhere."""

    source: Source = "events"

    def __init__(self, device: TimedDevice, chip: Chip) -> None:
        self._device = device
        self._chip = chip
        self._baseline: tuple[Build, Job] | None = None
        self._seconds = 0.0

    def measure(self, build: Build, job: Job) -> Measurement | Fault | Execution:
        if self._baseline is None:
            timed = self._device.time([(build, job)], _SAMPLES)
            if isinstance(timed, Fault):
                return timed
            if (after := _unlike(timed[0])) is not None:
                return after
            self._baseline, self._seconds = (build, job), statistics.median(timed[0].samples)
            return self._measurement(build, job, self._seconds, timed[0], timed[0])
        timed = self._device.time([self._baseline, (build, job)], _SAMPLES)
        if isinstance(timed, Fault):
            return timed
        after = _unlike(timed[1])
        return self._against(build, job, timed[0], timed[1]) if after is None else after

    def remember(self, build: Build, job: Job, seconds: float) -> None:
        """The baseline of a run that is resumed."""
        self._baseline, self._seconds = (build, job), seconds

    def settle(self, finalists: list[tuple[Build, Job]]) -> list[Measurement | Execution] | Fault:
        """The baseline and the finalists timed once more, all in turn, with more samples."""
        assert self._baseline is not None
        timed = self._device.time([self._baseline, *finalists], _FINAL_SAMPLES)
        if isinstance(timed, Fault):
            return timed
        self._seconds = statistics.median(timed[0].samples)
        runs = [self._baseline, *finalists]
        return [
            _unlike(found) or self._against(build, job, timed[0], found)
            for (build, job), found in zip(runs, timed, strict=True)
        ]

    def _against(self, build: Build, job: Job, baseline: Timing, found: Timing) -> Measurement:
        ratio = statistics.median(found.samples) / statistics.median(baseline.samples)
        return self._measurement(build, job, self._seconds * ratio, baseline, found)

    def _measurement(
        self, build: Build, job: Job, seconds: float, baseline: Timing, found: Timing
    ) -> Measurement:
        error = max(
            _LEAST_ERROR, _SIGMAS * (_relative(baseline) ** 2 + _relative(found) ** 2) ** 0.5
        )
        fits = fitted(self._chip, build, job.plan)
        least = min(fits, key=lambda fit: fit.percent)
        return Measurement(
            chip=self._chip.name,
            source="events",
            seconds=seconds,
            ratio_error=1 + error,
            metrics=tuple(static(build, job.plan, least)),
            bounds=(Bound("measured", seconds),),
            kernels=(),
        )


def _unlike(timing: Timing) -> Execution | None:
    """What was found after the timing, where that is not what the oracle wants."""
    after = timing.after
    if after is None:
        return None
    right = after.fault is None and not after.modified_inputs
    return None if right and all(check.passed for check in after.checks) else after


def _relative(timing: Timing) -> float:
    """Standard error of the median over the median; 1.2533 for samples that are roughly normal."""
    if len(timing.samples) < 2:
        return 0.0
    spread = statistics.stdev(timing.samples) / len(timing.samples) ** 0.5
    return float(1.2533 * spread / statistics.median(timing.samples))
