"""What a candidate leaves in its outputs, read back and compared where it cannot be forged."""

from __future__ import annotations

import numpy as np

from optiml_magic.devices.base import Array, Buffer, Device, Job, Order
from optiml_magic.devices.compare import compare
from optiml_magic.model.dtypes import numbers, part
from optiml_magic.model.verdict import Outcome, OutputCheck, Verdict
from optiml_magic.problem import Instance
from optiml_magic.problem.references import References
from optiml_magic.verifiers.compiled import Compiled
from optiml_magic.verifiers.hazards import Inspector
from optiml_magic.verifiers.verify import blamed, fresh_poison, judge

_ORDERS: tuple[Order, ...] = ("forward", "reverse")


def read_back(
    device: Device,
    program: Compiled,
    instance: Instance,
    instructions: int,
    inspector: Inspector | None,
    references: References | None,
) -> Verdict:
    """Two runs of a case, compared once more in this process and with one another.

    An output that has the same bits twice is compared once, where ``references`` are computed.
    """
    case, plan = instance.case, program.plan(instance)
    written = [b for b in case.buffers if b.role != "input"]
    first: dict[str, Array] = {}
    checks: dict[str, OutputCheck] = {}
    differing: list[str] = []
    for order in _ORDERS:
        job = Job(case.key, plan, fresh_poison(), False, instructions, order)
        verdict = judge(device.execute(program.build, job), instance.condition)
        if not verdict.passed:
            return blamed(verdict, inspector, program.build, job, instance.condition)
        for buffer in written:
            got = device.read(case.key, buffer.name)
            if buffer.name in first and same_bits(first[buffer.name], got):
                continue
            differing += [buffer.name] if buffer.name in first else []
            first.setdefault(buffer.name, got)
            if _is_wanted(buffer):
                checks[buffer.name] = _checked(buffer, got, references)
        if any(not check.passed for check in checks.values()):
            wrong = next(name for name, check in checks.items() if not check.passed)
            return Verdict(
                Outcome.WRONG,
                f"`{wrong}` was right on the device, and read back it is not",
                checks=tuple(checks.values()),
            )
    notes = [f"`{name}` is not bitwise reproducible from run to run" for name in differing]
    return Verdict(Outcome.PASSED, "", checks=tuple(checks.values()), notes=tuple(notes))


def _is_wanted(buffer: Buffer) -> bool:
    return buffer.expected is not None and buffer.tolerance is not None


def _checked(buffer: Buffer, got: Array, references: References | None) -> OutputCheck:
    assert buffer.tolerance is not None
    if references is not None:
        return references.compared(buffer, got)
    return compare(buffer.name, got, buffer.expected, buffer.tolerance, None)


def same_bits(one: Array, two: Array) -> bool:
    """Number by number: the padding of a struct is nothing."""
    pairs = ((part(one, number), part(two, number)) for number in numbers(one.dtype))
    return all(np.array_equal(a.view(np.uint8), b.view(np.uint8)) for a, b in pairs)
