"""Emulated counts to a measurement: what was counted, and the time estimated from it."""

from __future__ import annotations

from collections.abc import Sequence

from optiml_magic.chips import Chip
from optiml_magic.model.build import Build
from optiml_magic.model.counters import KernelCounters
from optiml_magic.model.launch import LaunchPlan
from optiml_magic.model.measurement import Bound, Measurement, Metric
from optiml_magic.profilers import metrics
from optiml_magic.profilers.estimate import RATIO_ERROR, estimate
from optiml_magic.profilers.occupancy import occupancy


def measure(
    chip: Chip, build: Build, plan: LaunchPlan, counters: Sequence[KernelCounters]
) -> Measurement:
    """The measurement of one run: counters as counted, seconds as estimated for ``chip``."""
    resources = [build.resources[launch.kernel] for launch in plan.launches]
    fits = [occupancy(chip, *pair) for pair in zip(plan.launches, resources, strict=True)]
    estimates = [
        estimate(chip, launch, counted, fit)
        for launch, counted, fit in zip(plan.launches, counters, fits, strict=True)
    ]
    slowest = max(range(len(estimates)), key=lambda at: estimates[at].seconds)
    dram = sum(e.dram_bytes for e in estimates)
    flops = sum(sum(k.flops.values()) for k in counters)
    return Measurement(
        chip=chip.name,
        source="estimated",
        seconds=sum(e.seconds for e in estimates),
        ratio_error=RATIO_ERROR,
        metrics=(
            *metrics.counted(counters, "emulated"),
            Metric("dram__bytes.sum", dram, "byte", "estimated"),
            Metric("flop_count.sum", flops, "flop", "emulated"),
            *metrics.compiled(resources, plan.launches),
            *metrics.fitted(fits[slowest]),
        ),
        bounds=_summed([e.bounds for e in estimates]),
        kernels=tuple(counters),
    )


def _summed(groups: Sequence[tuple[Bound, ...]]) -> tuple[Bound, ...]:
    totals: dict[str, float] = {}
    for bound in (b for group in groups for b in group):
        totals[bound.resource] = totals.get(bound.resource, 0.0) + bound.seconds
    return tuple(sorted((Bound(n, s) for n, s in totals.items()), key=lambda b: -b.seconds))
