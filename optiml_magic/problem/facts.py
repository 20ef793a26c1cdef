"""The facts of a program once it is bound to a problem: sizes, roles, ranges, what aliases what."""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np

from optiml_magic import binding
from optiml_magic.chips import Chip
from optiml_magic.devices.base import Buffer
from optiml_magic.kernels.signature import Kernel
from optiml_magic.model.facts import ArrayFacts, Facts, LaunchFacts, Role
from optiml_magic.model.launch import BufferArgument, Launch, LaunchPlan, ScalarArgument
from optiml_magic.problem.inputs import whole_numbers
from optiml_magic.problem.problem import Problem
from optiml_magic.source.directives import LaunchDirective
from optiml_magic.source.program import Program

_ROLES: dict[str, Role] = {"input": "in", "output": "out", "inout": "inout"}
_LOOKED_AT = 1 << 20  # elements that tell how many are alike: ours
_ALIGNMENT = 256  # of every buffer on either device; cudaMalloc gives as much


class FactFinder:
    """Finds the facts of the programs of one problem, on the inputs that are measured."""

    def __init__(self, problem: Problem, chip: Chip) -> None:
        self._problem = problem
        self._chip = chip

    def __call__(self, program: Program, plan: LaunchPlan) -> Facts:
        """The facts of a program whose plan binds it to the first instance of the problem."""
        first, interface = self._problem.instances[0], self._problem.interface
        launched = binding.launched(program, interface.defines)
        kernels = {directive.start: kernel for directive, kernel in launched}
        running = binding.planned(program, interface, first.values, first.shapes, self._chip)
        compared = self._problem.first.case.buffers  # nothing is where smaller sizes are verified
        tolerances = [b.tolerance for b in compared if b.tolerance is not None]
        return Facts(
            launches=tuple(
                self._launch(launch, plan, directive, kernels[directive.start])
                for launch, directive in zip(plan.launches, running, strict=True)
            ),
            variables={name: self._arrays[name] for _, name in plan.variables},
            rtol=max((tolerance.rtol for tolerance in tolerances), default=0.0),
            atol=max((tolerance.atol for tolerance in tolerances), default=0.0),
            chip=self._chip.name,
            defines=interface.defines,
        )

    def _launch(
        self, launch: Launch, plan: LaunchPlan, directive: LaunchDirective, kernel: Kernel
    ) -> LaunchFacts:
        scratch = {s.name: s for s in plan.scratch}
        arrays: dict[str, ArrayFacts] = {}
        scalars: dict[str, int | float] = {}
        members: dict[str, int] = {}
        for parameter, argument in zip(kernel.parameters, launch.arguments, strict=True):
            if isinstance(argument, BufferArgument) and argument.buffer in self._arrays:
                arrays[parameter.name] = self._arrays[argument.buffer]
            elif isinstance(argument, BufferArgument):
                made = scratch[argument.buffer]
                size = np.dtype(made.dtype).itemsize if made.dtype != "bfloat16" else 2
                arrays[parameter.name] = ArrayFacts(
                    made.name, "scratch", made.dtype, (made.elements,), made.elements * size,
                    _ALIGNMENT,
                )  # fmt: skip
            elif (number := _number(argument, parameter.dtype)) is not None:
                scalars[parameter.name] = number
            elif isinstance(argument, ScalarArgument) and (of := self._structs.get(argument.raw)):
                members |= {f"{parameter.name}.{field}": number for field, number in of.items()}
        name = directive.kernel or kernel.name
        return LaunchFacts(
            name, directive.line, launch.grid, launch.block, arrays, scalars, self._inputs, members,
            self._verified,
        )  # fmt: skip

    @cached_property
    def _structs(self) -> dict[str, dict[str, int]]:
        """The whole numbers in structures of the task, by the bytes of each structure."""
        values = self._problem.instances[0].values.values()
        structs = [v for v in values if isinstance(v, np.void) and v.dtype.names]
        return {
            v.tobytes().hex(): {
                n: int(v[n]) for n in v.dtype.names or () if v[n].dtype.kind in "iu"
            }
            for v in structs
        }

    @cached_property
    def _inputs(self) -> dict[str, int]:
        return whole_numbers(self._problem.instances[0].values)

    @cached_property
    def _verified(self) -> dict[str, int]:
        return whole_numbers(self._problem.first.values)

    @cached_property
    def _buffers(self) -> dict[str, Buffer]:
        return {buffer.name: buffer for buffer in self._problem.instances[0].case.buffers}

    @cached_property
    def _arrays(self) -> dict[str, ArrayFacts]:
        loose = bool(self._problem.task.rtol or self._problem.task.atol)
        return {name: _array(buffer, loose=loose) for name, buffer in self._buffers.items()}


def _array(buffer: Buffer, *, loose: bool) -> ArrayFacts:
    array = buffer.array
    least, greatest = _range(array) if buffer.role != "output" else (None, None)
    return ArrayFacts(
        buffer.name, _ROLES[buffer.role], str(array.dtype), tuple(array.shape), array.nbytes,
        _ALIGNMENT, least, greatest,
        buffer.role != "input" and array.dtype.kind in "biu" and not loose,
        None if buffer.role == "output" else _alike(array),
    )  # fmt: skip


def _range(array: Any) -> tuple[float | None, float | None]:
    """The least and the greatest number; None where numbers have no order, or one is NaN."""
    if not array.size or array.dtype.kind not in "iufb":
        return None, None
    least, greatest = float(np.min(array)), float(np.max(array))
    return (None, None) if np.isnan(least) else (least, greatest)


def _alike(array: Any) -> float | None:
    """How many whole numbers in a row are the same, in the mean of the first ones."""
    if not array.size or array.dtype.kind not in "iu":
        return None
    first = array.reshape(-1)[:_LOOKED_AT]
    return float(first.size / (1 + np.count_nonzero(first[1:] != first[:-1])))


def _number(argument: ScalarArgument, dtype: str | None) -> int | float | None:
    if dtype is None or dtype == "bfloat16" or np.dtype(dtype).kind not in "iufb":
        return None
    raw = bytes.fromhex(argument.raw)
    return np.frombuffer(raw, dtype)[0].item() if len(raw) == np.dtype(dtype).itemsize else None
