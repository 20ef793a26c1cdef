"""Every bit of the outputs as the input kernel has it, where a user wants nothing else."""

from __future__ import annotations

from collections.abc import Sequence

from optiml_magic.devices.base import Array, Device, Job, Order
from optiml_magic.errors import KernelFailed, OracleError
from optiml_magic.model.launch import LaunchPlan
from optiml_magic.problem import Instance
from optiml_magic.verifiers.compiled import Compiled
from optiml_magic.verifiers.readback import same_bits
from optiml_magic.verifiers.verify import fresh_poison, judge

_ORDERS: tuple[Order, ...] = ("forward", "reverse")


class Exactness:
    """Knows the bits of the input kernel's outputs on every set of inputs that was learned."""

    def __init__(self, device: Device, instructions: int) -> None:
        self._device = device
        self._instructions = instructions
        self._wanted: dict[str, dict[str, Array]] = {}  # by case, then by output

    def learn(self, root: Compiled, plans: Sequence[tuple[Instance, LaunchPlan]]) -> None:
        """Run the input kernel twice on each set of inputs, its blocks in both orders.

        Raises OracleError where the two differ in a bit: no candidate can be held to either.
        """
        for instance, plan in plans:
            readings = []
            for order in _ORDERS:
                job = Job(instance.case.key, plan, fresh_poison(), False, self._instructions, order)
                verdict = judge(self._device.execute(root.build, job), instance.condition)
                if not verdict.passed:
                    raise KernelFailed(
                        f"the input kernel passed before, and now: {verdict.summary}"
                    )
                readings.append(self._read(instance))
            for name, wanted in readings[0].items():
                if not same_bits(wanted, readings[1][name]):
                    raise OracleError(
                        f"the input kernel gives `{name}` other bits from run to run "
                        f"(on {instance.condition}), so --exact cannot compare with them",
                        fix="leave out --exact",
                    )
            self._wanted[instance.case.key] = readings[0]

    def difference(self, instance: Instance) -> str:
        """What differs in what the device ran last on ``instance``; "" where every bit is right."""
        wanted = self._wanted.get(instance.case.key)
        if wanted is None:  # the input kernel itself, which is learned next
            return ""
        for name, got in self._read(instance).items():
            if not same_bits(wanted[name], got):
                return (
                    f"`{name}` is within the tolerance, but its bits are not those of the input "
                    f"kernel (on {instance.condition}), and --exact asks for them"
                )
        return ""

    def _read(self, instance: Instance) -> dict[str, Array]:
        case = instance.case
        return {
            buffer.name: self._device.read(case.key, buffer.name)
            for buffer in case.buffers
            if buffer.role != "input"
        }
