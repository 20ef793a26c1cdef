"""Emulated counts to a measurement: what was counted, and the time estimated from it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from optiml_magic.chips import Chip
from optiml_magic.devices.base import Device, Fault, Job
from optiml_magic.model.build import Build, MachineInstruction
from optiml_magic.model.counters import KernelCounters
from optiml_magic.model.launch import LaunchPlan
from optiml_magic.model.measurement import Bound, Measurement, Metric, Source
from optiml_magic.profilers import metrics
from optiml_magic.profilers.estimate import RATIO_ERROR, estimate, zeroing
from optiml_magic.profilers.machine import (
    Weighted,
    weigh,
    weighted_metrics,
    with_machine_lines,
)
from optiml_magic.profilers.occupancy import Occupancy, occupancy

Disassemble = Callable[[bytes], Mapping[str, Sequence[MachineInstruction]] | None]


class EmulatedProfiler:
    """One more run with counters on; seconds are estimated for the chip.

    A launch of more than ``sample`` thread instructions is counted on some of its blocks (0: all).
    ``disassemble``, cubin to code by kernel, adds counts that are weighted by the machine code.
    """

    source: Source = "estimated"
    settles = False  # the same counts give the same estimate

    def __init__(
        self,
        device: Device,
        chip: Chip,
        *,
        sample: int = 0,
        disassemble: Disassemble | None = None,
    ) -> None:
        self._device = device
        self._chip = chip
        self._sample = sample
        self._disassemble = disassemble
        self.notes: tuple[str, ...] = ()

    def begin(self) -> None:
        """Nothing to forget: nothing is measured against a baseline."""

    def measure(
        self,
        build: Build,
        job: Job,
        best: float = float("inf"),  # noqa: ARG002  # one run is enough for whoever is slow
    ) -> Measurement | Fault:
        execution = self._device.execute(build, replace(job, count=True, sample=self._sample))
        if execution.fault is not None and self._sample:
            # Blocks that wait for others need them all: only a whole grid says what is a fault.
            execution = self._device.execute(build, replace(job, count=True))
        if execution.fault is not None:
            return execution.fault
        counters, chip = execution.counters, self._chip
        fits = fitted(chip, build, job.plan)
        estimates = [
            estimate(chip, launch, counted, fit)
            for launch, counted, fit in zip(job.plan.launches, counters, fits, strict=True)
        ]
        slowest = max(range(len(estimates)), key=lambda at: estimates[at].seconds)
        dram = sum(e.dram_bytes for e in estimates) + job.plan.zeroed_bytes
        flops = sum(sum(k.flops.values()) for k in counters)
        weights = self._weights(build, counters)
        note = "; ".join(dict.fromkeys(str(k.sampled) for k in counters if k.sampled))
        return Measurement(
            chip=chip.name,
            source="estimated",
            seconds=sum(e.seconds for e in estimates) + zeroing(chip, job.plan),
            ratio_error=RATIO_ERROR * (1 + _sampling_error(counters)),
            metrics=(
                *(replace(m, note=note) for m in metrics.counted(counters, "emulated")),
                *(replace(m, note=note) for m in metrics.cached(counters)),
                Metric("dram__bytes.sum", dram, "byte", "estimated"),
                Metric("flop_count.sum", flops, "flop", "emulated", note),
                *weighted_metrics(weights, note),
                *static(build, job.plan, fits[slowest]),
            ),
            bounds=_summed([e.bounds for e in estimates]),
            kernels=tuple(with_machine_lines(k, w) for k, w in zip(counters, weights, strict=True))
            if weights
            else counters,
        )

    def follow(self, build: Build, job: Job, measured: Measurement) -> None:
        """Nothing is measured beside another."""

    def remember(self, build: Build, job: Job, seconds: float) -> None:
        """Nothing is measured against a baseline."""

    def settle(self, finalists: Sequence[tuple[Build, Job]]) -> tuple[Measurement, ...]:  # noqa: ARG002
        return ()

    def _weights(self, build: Build, counters: Sequence[KernelCounters]) -> list[Weighted]:
        """For each launch; none where they were not asked for, or nvdisasm is not installed."""
        code = self._disassemble(build.cubin) if self._disassemble else None
        return [weigh(build.ptx, code[k.kernel], k) for k in counters] if code else []


def _sampling_error(counters: Sequence[KernelCounters]) -> float:
    return max((k.sampled.error for k in counters if k.sampled), default=0.0)


def fitted(chip: Chip, build: Build, plan: LaunchPlan) -> list[Occupancy]:
    """The occupancy of each launch."""
    return [occupancy(chip, launch, build.resources[launch.kernel]) for launch in plan.launches]


def static(build: Build, plan: LaunchPlan, fit: Occupancy) -> list[Metric]:
    """What is known without a run: the compiler's resources, and the occupancy they allow."""
    resources = [build.resources[launch.kernel] for launch in plan.launches]
    return [*metrics.compiled(resources, plan.launches), *metrics.fitted(fit)]


def _summed(groups: Sequence[tuple[Bound, ...]]) -> tuple[Bound, ...]:
    totals: dict[str, float] = {}
    for bound in (b for group in groups for b in group):
        totals[bound.resource] = totals.get(bound.resource, 0.0) + bound.seconds
    return tuple(sorted((Bound(n, s) for n, s in totals.items()), key=lambda b: -b.seconds))
