"""Device events to a measurement: a candidate and the baseline in turn, on one stream.

The seconds of a candidate are those of the baseline times the ratio of the two medians, so that a
clock that drifts in the course of a search falls on both alike. The baseline is timed against
itself first, as two runs: by what that ratio misses 1, every later interval is wider. One so slow
that this would take seconds is timed as one run, against its own other samples.

Most samples of a slow baseline would be spent on itself. Once there is a far faster program that
may win, candidates are timed beside that one, and its own ratio stands between: both errors count.
So are the finalists, and that program and the baseline once more in turn.
"""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from dataclasses import dataclass, replace

from optiml_magic.chips import Chip
from optiml_magic.devices.base import Execution, Fault, Job, Sampling, TimedDevice, Timing
from optiml_magic.devices.ratio import Ratio, ratio
from optiml_magic.model.build import Build
from optiml_magic.model.condition import Conditions
from optiml_magic.model.measurement import Bound, Measurement, Source
from optiml_magic.profilers.emulated import fitted, static

# All of these are ours.
_USUAL = Sampling(least=10, most=100, seconds=1.0)
_FINAL = Sampling(least=30, most=200, seconds=2.0)
_LONG = 0.02  # seconds of a baseline that is not timed against itself as two runs
_SLOW = 2e-3  # seconds of a baseline that is no longer timed in each round
_FAR = 2.0  # times faster than what others are timed beside
_HOPELESS = 1.25  # times slower than the fastest so far: it is not timed any better
_LEAST_ERROR = 0.01  # a gain below 1 % is never called one


@dataclass(frozen=True)
class _Beside:
    """A program that takes so many ``times`` as long as the baseline, within ``error``."""

    build: Build
    job: Job
    times: float
    error: float


class EventsProfiler:
    """Times by events; counters come from elsewhere.

    ``itself`` is the ratio of the baseline to itself, where it was timed here.
    """

    source: Source = "events"
    settles = True

    def __init__(self, device: TimedDevice, chip: Chip) -> None:
        self._device = device
        self._chip = chip
        self._baseline: tuple[Build, Job] | None = None
        self._seconds = 0.0
        self._beside: _Beside | None = None  # what candidates are timed beside
        self._remarks: dict[str, None] = {}
        self.itself: Ratio | None = None

    @property
    def notes(self) -> tuple[str, ...]:
        """The baseline against itself, and what the card said of its state while it was timed."""
        if self.itself is None:
            return tuple(self._remarks)
        return (f"timed against itself, the input kernel gives {self.itself}", *self._remarks)

    @property
    def _ample(self) -> float:
        """Times faster than a slow baseline, beyond which one round in turn with it is enough."""
        return _FAR if self._seconds > _LONG else 0.0

    def begin(self) -> None:
        """Forget the baseline: the next one measured is the input kernel of a problem."""
        self._baseline, self._seconds, self.itself = None, 0.0, None
        self._beside = None
        self._remarks.clear()

    def measure(
        self, build: Build, job: Job, best: float = float("inf")
    ) -> Measurement | Fault | Execution:
        if self._baseline is None:
            return self._first(build, job)
        beside = self._beside or _Beside(*self._baseline, 1.0, 1.0)
        limit = _HOPELESS * min(best, self._seconds) / (self._seconds * beside.times)
        sampling = replace(_USUAL, hopeless=limit, ample=0.0 if self._beside else self._ample)
        timed = self._device.time([(beside.build, beside.job), (build, job)], sampling)
        if isinstance(timed, Fault):
            return timed
        return _unlike(timed[1]) or self._against(build, job, timed[0], timed[1], beside)

    def follow(self, build: Build, job: Job, measured: Measurement) -> None:
        """Only where the baseline is slow, and this one far faster than what stands there."""
        times = measured.seconds / self._seconds
        before = self._beside.times if self._beside else 1.0
        if self._seconds > _SLOW and times * _FAR < before:
            self._beside = _Beside(build, job, times, measured.ratio_error)

    def remember(self, build: Build, job: Job, seconds: float) -> None:
        """The baseline of a run that is resumed."""
        self._baseline, self._seconds, self._beside = (build, job), seconds, None

    def settle(
        self, finalists: Sequence[tuple[Build, Job]]
    ) -> list[Measurement | Execution] | Fault:
        """The baseline and the finalists timed once more, all in turn, with more samples.

        Beside a baseline that is slow, and far slower, the finalists alone are timed so; it and
        what stands between in turn with each other, not for longer than one candidate.
        """
        assert self._baseline is not None
        first, beside = self._baseline, self._beside
        runs = [(beside.build, beside.job) if beside else first, *finalists]
        timed = self._device.time(runs, _FINAL)
        once = replace(_USUAL, ample=self._ample)
        between = self._device.time([first, runs[0]], once) if beside else timed
        for one in (timed, between):
            if isinstance(one, Fault):
                return one
        assert not isinstance(timed, Fault)
        assert not isinstance(between, Fault)
        self._seconds = statistics.median(between[0].samples)
        if beside:
            stands = ratio(between[0].samples, between[1].samples)
            beside = replace(beside, times=stands.value, error=stands.error)
        return [
            _unlike(between[0]) or self._against(*first, between[0], between[0]),
            *(
                _unlike(found) or self._against(build, job, timed[0], found, beside)
                for (build, job), found in zip(finalists, timed[1:], strict=True)
            ),
        ]

    def _first(self, build: Build, job: Job) -> Measurement | Fault | Execution:
        """The baseline as two runs, each with buffers of its own; a slow one as one."""
        timed = self._device.time([(build, job)] * 2, replace(_USUAL, alone=_LONG))
        if isinstance(timed, Fault):
            return timed
        for one in timed:
            if (after := _unlike(one)) is not None:
                return after
        self._baseline = (build, job)
        self.itself = ratio(timed[0].samples, timed[-1].samples)
        self._seconds = statistics.median([s for one in timed for s in one.samples])
        return self._measurement(build, job, 1.0, self.itself.error, timed[0].conditions)

    def _against(
        self, build: Build, job: Job, other: Timing, found: Timing, beside: _Beside | None = None
    ) -> Measurement:
        """``other`` is the timing of what it was timed ``beside``, else of the baseline."""
        measured = ratio(other.samples, found.samples)
        times, error = (beside.times, beside.error) if beside else (1.0, 1.0)
        return self._measurement(
            build, job, measured.value * times, measured.error * error, found.conditions
        )

    def _measurement(
        self, build: Build, job: Job, times: float, error: float, conditions: Conditions | None
    ) -> Measurement:
        """``times`` as long as the baseline; the interval is symmetric, as its wider side asks."""
        seconds = self._seconds * times
        beyond = self.itself.beyond if self.itself else 1.0
        fits = fitted(self._chip, build, job.plan)
        least = min(fits, key=lambda fit: fit.percent)
        self._remarks.update(dict.fromkeys(conditions.remarks if conditions else ()))
        return Measurement(
            chip=self._chip.name,
            source="events",
            seconds=seconds,
            ratio_error=max(1 + _LEAST_ERROR, error * beyond),
            metrics=tuple(static(build, job.plan, least)),
            bounds=(Bound("measured", seconds),),
            kernels=(),
            conditions=conditions,
        )


def _unlike(timing: Timing) -> Execution | None:
    """What was found after the timing, where that is not what the oracle wants."""
    after = timing.after
    if after is None:
        return None
    right = after.fault is None and not after.modified_inputs
    return None if right and all(check.passed for check in after.checks) else after
