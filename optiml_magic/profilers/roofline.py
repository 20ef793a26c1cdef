"""The roofline class of a kernel, and how far above the task's floor it is.

Two readings, as in KernelPro (arXiv 2606.26453, second-hand): the arithmetic intensity of the task
against the ridge point of the roofs, and the resource that the measurement says is busiest. Between
memory and compute the theoretical bound wins a disagreement. The thresholds are ours, but for the
60 % of Nsight Compute's rule SOLBottleneck.
"""

from __future__ import annotations

from optiml_magic.model.finding import RooflineClass
from optiml_magic.model.measurement import Measurement
from optiml_magic.model.roofline import Roofs, Standing, Work

_FAMILY: dict[str, RooflineClass] = {
    "dram": "memory",
    "l2": "memory",
    "lsu": "memory",
    "atomics": "memory",
    "issue": "compute",
    "fp32": "compute",
    "fp64": "compute",
    "int": "compute",
    "sfu": "compute",
    "latency": "latency",
    "blocks": "launch",
    "launch": "launch",
}
_LONGEST: dict[RooflineClass, str] = {
    "memory": "memory accesses",
    "compute": "instructions",
    "latency": "waits for results",
    "launch": "launches",
}
_DOMINANT = 1.5  # a limit counts as the only one when the next family is this factor below
_INTENSITY_MARGIN = 4.0  # intensity this factor off the ridge point leaves no doubt
_BUSY = 60.0  # per cent of its peak from which on a resource is a limit
_CLOSE = 10.0  # per cent between two busy resources that are both the limit
_SHORT = 1.5  # times the seconds of an empty launch

_COMPUTE = ("sm__throughput.avg.pct_of_peak_sustained_elapsed",)
_MEMORY = (
    "gpu__dram_throughput.avg.pct_of_peak_sustained_elapsed",
    "lts__throughput.avg.pct_of_peak_sustained_elapsed",
    "l1tex__throughput.avg.pct_of_peak_sustained_active",
)
_WARPS = "sm__warps_active.avg.pct_of_peak_sustained_active"


def stand(measured: Measurement, work: Work, roofs: Roofs) -> Standing:
    """Where a measured kernel stands. ``work`` is the task's, not this kernel's."""
    theory = _theoretical(work, roofs)
    kind, because = (
        _estimated(measured, theory)
        if measured.bounds and measured.source == "estimated"
        else _on_a_card(measured, theory, work, roofs)
    )
    return Standing(kind, because, work, roofs, measured.seconds)


def _theoretical(work: Work, roofs: Roofs) -> RooflineClass | None:
    if work.intensity is None:
        return None
    ridge = roofs.ridge(work.precision)
    if work.intensity < ridge / _INTENSITY_MARGIN:
        return "memory"
    return "compute" if work.intensity > ridge * _INTENSITY_MARGIN else None


def _estimated(measured: Measurement, theory: RooflineClass | None) -> tuple[RooflineClass, str]:
    families: dict[RooflineClass, float] = {}
    for bound in measured.bounds:
        family = _FAMILY[bound.resource]
        families[family] = max(families.get(family, 0.0), bound.seconds)
    ranked = sorted(families, key=lambda name: -families[name])
    top, second = ranked[0], ranked[1]
    if families[top] < _DOMINANT * families[second] and {top, second} != {"memory", "compute"}:
        return "mixed", f"{_LONGEST[top]} and {_LONGEST[second]} take about as long"
    if top in ("memory", "compute") and theory is not None and theory != top:
        return theory, f"the task's intensity says so, though {_LONGEST[top]} take longest"
    return top, f"by the estimate, {_LONGEST[top]} take longest"


def _on_a_card(
    measured: Measurement, theory: RooflineClass | None, work: Work, roofs: Roofs
) -> tuple[RooflineClass, str]:
    if measured.seconds < _SHORT * roofs.launch:
        return "launch", f"an empty launch takes {roofs.launch * 1e6:.3g} us"
    compute, memory = _busiest(measured, _COMPUTE), _busiest(measured, _MEMORY)
    if compute is None or memory is None:
        return _from_time(measured, theory, work, roofs)
    seen = f"compute {compute:.0f} %, memory {memory:.0f} % of the peak"
    if max(compute, memory) < _BUSY:
        warps = measured.get(_WARPS)
        resident = "" if warps is None else f", {warps:.0f} % of the warps resident"
        return "latency", f"nothing is busy: {seen}{resident}"
    if abs(compute - memory) < _CLOSE:
        return theory or "mixed", f"both are busy: {seen}"
    top: RooflineClass = "compute" if compute > memory else "memory"
    if theory is not None and theory != top:
        return theory, f"the task's intensity says so, though ncu saw {seen}"
    return top, seen


def _from_time(
    measured: Measurement, theory: RooflineClass | None, work: Work, roofs: Roofs
) -> tuple[RooflineClass, str]:
    """Without counters: what the task needs, over the time that it took."""
    shares: dict[RooflineClass, float] = {}
    if work.bytes is not None:
        shares["memory"] = work.bytes / measured.seconds / roofs.memory
    if work.flops is not None:
        shares["compute"] = work.flops / measured.seconds / roofs.compute(work.precision)
    told = ", ".join(f"{100 * share:.0f} % of the {name} roof" for name, share in shares.items())
    if theory is not None:
        return theory, f"the task's intensity says so; it reaches {told}, no counters"
    if not shares:
        return "mixed", "neither counters nor the task's work are known"
    return "mixed", f"the task's intensity is near the ridge; it reaches {told}, no counters"


def _busiest(measured: Measurement, names: tuple[str, ...]) -> float | None:
    known = [value for value in map(measured.get, names) if value is not None]
    return max(known, default=None)
