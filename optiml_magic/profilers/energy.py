"""Energy and clocks of a run: NVML's counters around a loop of at least a second.

The sensor samples a part of the time only, so a single run of microseconds says nothing (Yang et
al., "Part-time power measurements", SC 2024). The loop runs from warm caches, unlike the timing.
"""

from __future__ import annotations

from optiml_magic.devices.base import DrawingDevice, Fault, Job
from optiml_magic.model.build import Build
from optiml_magic.model.measurement import Metric, Missing

SECONDS = 2.0


class EnergyProfiler:
    """Measures energy on one card, for ``seconds`` a program."""

    def __init__(self, device: DrawingDevice, seconds: float = SECONDS) -> None:
        self._device = device
        self.seconds = max(1.0, seconds)

    def measure(self, build: Build, job: Job) -> tuple[Metric, ...] | Missing:
        drawn = self._device.draw(build, job, self.seconds)
        if isinstance(drawn, Fault):
            return Missing("energy", f"the loop did not end by itself: {drawn.message}")
        if drawn.joules is None:
            return Missing("energy", drawn.refused)
        note = f"mean of {drawn.launches} runs in {drawn.seconds:.1f} s, warm"
        found = [
            ("nvml__energy.sum", drawn.joules / drawn.launches, "J"),
            ("nvml__power.avg", drawn.joules / drawn.seconds, "W"),
            ("nvml__clock_sm.avg", drawn.sm_hertz, "Hz"),
            ("nvml__clock_memory.avg", drawn.memory_hertz, "Hz"),
            ("nvml__temperature.max", drawn.celsius, "degC"),
        ]
        return tuple(
            Metric(name, value, unit, "nvml", note) for name, value, unit in found if value
        )
