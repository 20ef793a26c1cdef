"""What a task needs at least: as it declares, as its reference does, or as its kernel was counted.

The least traffic is each input read once, each output written once; where the kernel, which gives
the right answer, was seen to touch less of them, that.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from optiml_magic.devices.base import Buffer
from optiml_magic.model.measurement import Measurement
from optiml_magic.model.roofline import Basis, Precision, Work
from optiml_magic.model.task import Task
from optiml_magic.profilers.tracing import traced_flops

_SECTOR = 32


class LeastWork:
    """The work of one task, found out with the first measurement, which is its input kernel's."""

    def __init__(self, task: Task, values: Mapping[str, Any], buffers: Sequence[Buffer]) -> None:
        self._given = (task, values, buffers)
        self._found: Work | None = None

    def __call__(self, root: Measurement) -> Work:
        if self._found is None:
            self._found = work_of(*self._given, root)
        return self._found


def work_of(
    task: Task, values: Mapping[str, Any], buffers: Sequence[Buffer], root: Measurement
) -> Work:
    """The work of a task on given inputs; ``root`` is the measurement of its input kernel."""
    flops, flops_basis = _flops(task, values, root)
    moved, bytes_basis = _bytes(task, buffers, root)
    return Work(flops, moved, flops_basis, bytes_basis, _precision(buffers))


def _flops(task: Task, values: Mapping[str, Any], root: Measurement) -> tuple[float | None, Basis]:
    if task.flops is not None:
        return float(task.flops), "declared"
    counted = root.get("flop_count.sum")
    traced = traced_flops(task.reference, values) if task.reference is not None else None
    # A reference may do more than the task needs: a kernel that is right shows it.
    if traced is not None and not (counted and counted < traced):
        return traced, "traced"
    return counted, "unknown" if counted is None else "counted"


def _bytes(task: Task, buffers: Sequence[Buffer], root: Measurement) -> tuple[float | None, Basis]:
    if task.bytes is not None:
        return float(task.bytes), "declared"
    traced = float(sum(b.array.nbytes * (2 if b.role == "inout" else 1) for b in buffers))
    sectors = [(k.read_sectors_unique, k.write_sectors_unique) for k in root.kernels]
    if len(sectors) == 1 and None not in sectors[0]:
        counted = float(_SECTOR * sum(n or 0 for n in sectors[0]))
        if 0 < counted < traced:
            return counted, "counted"
    return traced, "traced"


def _precision(buffers: Sequence[Buffer]) -> Precision:
    """That of the roof: the widest floating-point type that the kernel is given or gives."""
    kinds = {np.dtype(b.array.dtype) for b in buffers}
    floating = [d.itemsize for d in kinds if d.kind in "fc" or d.kind == "V"]
    if any(size >= 8 for size in floating):
        return "fp64"
    return "tensor" if floating and max(floating) <= 2 else "fp32"
