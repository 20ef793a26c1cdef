"""The roofline class of a kernel: what kind of limit it runs into.

Two readings, as in KernelPro (arXiv 2606.26453, second-hand): arithmetic intensity against the
ridge point of the chip, and the resource that the measurement says is busiest. Between memory and
compute the theoretical bound wins a disagreement. The thresholds are ours.
"""

from __future__ import annotations

from optiml_magic.chips import Chip
from optiml_magic.model.finding import RooflineClass
from optiml_magic.model.measurement import Measurement

_FAMILY: dict[str, RooflineClass] = {
    "dram": "memory",
    "l2": "memory",
    "lsu": "memory",
    "issue": "compute",
    "fp32": "compute",
    "fp64": "compute",
    "int": "compute",
    "sfu": "compute",
    "latency": "latency",
    "blocks": "launch",
    "launch": "launch",
}
_DOMINANT = 1.5  # a limit counts as the only one when the next family is this factor below
_INTENSITY_MARGIN = 4.0  # intensity this factor off the ridge point leaves no doubt


def roofline_class(
    chip: Chip, measured: Measurement, *, flops: int | None = None, bytes_: int | None = None
) -> RooflineClass:
    """The class of a measured kernel; ``flops`` and ``bytes_`` are the task's, where declared."""
    if measured.source == "events":
        return _theoretical(chip, measured, flops, bytes_) or "mixed"
    families: dict[RooflineClass, float] = {}
    for bound in measured.bounds:
        family = _FAMILY[bound.resource]
        families[family] = max(families.get(family, 0.0), bound.seconds)
    ranked = sorted(families, key=lambda name: -families[name])
    top, second = ranked[0], ranked[1]
    if families[top] < _DOMINANT * families[second] and {top, second} != {"memory", "compute"}:
        return "mixed"
    if top in ("memory", "compute"):
        return _theoretical(chip, measured, flops, bytes_) or top
    return top


def intensity(
    measured: Measurement, flops: int | None = None, bytes_: int | None = None
) -> float | None:
    """Operations per byte of DRAM traffic; None where one of them is zero or unknown."""
    operations = flops if flops is not None else measured.get("flop_count.sum")
    moved = bytes_ if bytes_ is not None else measured.get("dram__bytes.sum")
    return operations / moved if operations and moved else None


def _theoretical(
    chip: Chip, measured: Measurement, flops: int | None, bytes_: int | None
) -> RooflineClass | None:
    found = intensity(measured, flops, bytes_)
    ridge = chip.fp32_flops / chip.dram_bandwidth
    if found is not None and found < ridge / _INTENSITY_MARGIN:
        return "memory"
    if found is not None and found > ridge * _INTENSITY_MARGIN:
        return "compute"
    return None
