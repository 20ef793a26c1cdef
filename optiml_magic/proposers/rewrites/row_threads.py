"""How many threads a row gets, by how long it is and how many there are."""

from __future__ import annotations

from collections.abc import Sequence

from optiml_magic.chips import CHIPS
from optiml_magic.kernels.primitives.base import Kernel
from optiml_magic.kernels.primitives.effects import Effects
from optiml_magic.kernels.primitives.sizes import around, threads
from optiml_magic.kernels.reading import Axis
from optiml_magic.model.space import Point

A_LANE = 16  # elements of a row for each lane, where there are enough
_AGAIN = 4  # times as many where a loop goes through a row in each of its rounds: ours
_SCHEDULERS = 4  # of a multiprocessor; CUDA C++ Programming Guide, "Compute Capabilities"
_WARP = 32


def few_threads(kernel: Kernel) -> bool:
    """Whether a thread for each row leaves a chip without a warp for each of its schedulers."""
    count, chip = threads(kernel), CHIPS.get(kernel.chip)
    return count is not None and chip is not None and count < _SCHEDULERS * _WARP * chip.sms


def of_rows(
    kernel: Kernel, found: Sequence[Axis], length: int, counts: Sequence[int]
) -> tuple[Point, ...]:
    """So many threads that each has a few elements, as many as there may be for few rows.

    Fewer where a row is gone through again and again, since all of them combine as often.
    """
    if not length:
        return ({},)
    most = counts[-1]
    each, rows = (_AGAIN * A_LANE, 1) if any(_again(kernel, a) for a in found) else (A_LANE, 4)
    count, chip = threads(kernel), CHIPS.get(kernel.chip)
    fit = max((n for n in counts if n * each <= length + each), default=counts[0])
    if fit >= most or (count is not None and chip is not None and count < rows * chip.sms):
        return ({"THREADS": most}, {"THREADS": most // 2})
    return ({"THREADS": fit}, {"THREADS": 2 * fit})


def _again(kernel: Kernel, axis: Axis) -> bool:
    """Whether a loop is made again over the same elements, and not in each round over others."""
    inside, outer = kernel.reading.symbols.inside, {a.name for a in around(kernel, axis)}
    return any(
        not outer & inside(access.offset)
        for access in Effects(kernel).accesses(axis.node)
        if outer and access.space == "global" and access.offset is not None
    )
