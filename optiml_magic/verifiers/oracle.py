"""The input kernel as its own oracle, where the task has no reference.

It runs twice on each case, over two different poisons. What still holds the bits of both was not
written, what differs by more than rounding was not written the same way twice, and such an oracle
is refused.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from optiml_magic.devices.base import Array, Buffer, Device, Job
from optiml_magic.devices.compare import compare
from optiml_magic.errors import OracleError
from optiml_magic.model.build import Build
from optiml_magic.model.dtypes import kind, widened
from optiml_magic.model.launch import LaunchPlan
from optiml_magic.model.verdict import Verdict
from optiml_magic.problem import Instance
from optiml_magic.problem.tolerance import scale_of, tolerance
from optiml_magic.verifiers.verify import judge

_CHANCE = 4  # times as many elements as random bits make alike: ours


def answered(
    device: Device,
    build: Build,
    plans: Sequence[tuple[Instance, LaunchPlan]],
    *,
    instructions: int,
    rtol: float | None = None,
    atol: float | None = None,
) -> tuple[Instance, ...] | Verdict:
    """The instances with the kernel's own outputs as the wanted ones; a verdict where it faults."""
    found = []
    for instance, plan in plans:
        readings, left = [], list[dict[str, int]]()
        for poison in (1, 2):
            execution = device.execute(
                build, Job(instance.case.key, plan, poison, False, instructions)
            )
            verdict = judge(execution, instance.condition)
            if not verdict.passed:
                return verdict
            left.append(dict(execution.unwritten))
            readings.append(
                {
                    b.name: device.read(instance.case.key, b.name)
                    for b in instance.case.buffers
                    if b.role != "input"
                }
            )
        for buffer in instance.case.buffers:
            _written(buffer, min(held.get(buffer.name, 0) for held in left))
        buffers = tuple(
            _expecting(
                buffer,
                readings[0][buffer.name],
                readings[1][buffer.name],
                rtol,
                atol,
                max(held.get(buffer.name, 0) for held in left),
            )
            if buffer.role != "input"
            else buffer
            for buffer in instance.case.buffers
        )
        found.append(replace(instance, case=replace(instance.case, buffers=buffers)))
    return tuple(found)


def _written(buffer: Buffer, left: int) -> None:
    """Raise OracleError where more elements hold their poison than chance has the kernel write."""
    array = buffer.array
    if left > _CHANCE * array.size / 2.0 ** min(8 * array.dtype.itemsize, 64):
        raise _refused(buffer.name, left, "")


def _expecting(
    buffer: Buffer, one: Array, two: Array, rtol: float | None, atol: float | None, left: int
) -> Buffer:
    with np.errstate(all="ignore"):
        wide = one.astype(widened(one.dtype))
    scale = _scale(buffer, one, wide)
    limits = tolerance(wide, one.dtype, rtol=rtol, atol=atol, narrow_oracle=True, scale=scale)
    check = compare(buffer.name, two, wide, limits, None)
    if check.wrong:
        index = ", ".join(map(str, check.first_index))
        if not left and (buffer.role == "inout" or buffer.array.dtype.itemsize > 1):
            raise OracleError(
                f"{check.wrong} elements of the input kernel's `{buffer.name}` differ from run to"
                f" run, first [{index}], so it cannot be the oracle",
                fix="give a reference whose result any order of its threads has, or sort what they"
                " append by atomic operations",
            )
        raise _refused(buffer.name, check.wrong, f" or different from run to run, first [{index}]")
    return replace(buffer, expected=wide, tolerance=limits)


def _scale(buffer: Buffer, found: Array, wide: Array) -> float | None:
    """The greater of two medians where the kernel leaves elements as they were: of all, of others.

    A size may be tried beside arrays that stay as they are, of which a kernel then computes little.
    """
    if buffer.role != "inout" or kind(found.dtype) not in "fc":
        return None
    changed = found != buffer.array
    return max(scale_of(wide), scale_of(wide[changed])) if changed.any() else None


def _refused(name: str, count: int, more: str) -> OracleError:
    return OracleError(
        f"the input kernel leaves {count} elements of `{name}` unwritten{more}, "
        "so it cannot be the oracle",
        fix=f"give a reference, or say what `{name}` holds before: #pragma optiml init({name}) = 0,"
        f" or --inout {name} where it begins as the array of that name",
    )
