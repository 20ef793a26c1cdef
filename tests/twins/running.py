"""A program on the emulated device: compiled by the real compiler, and what it leaves behind."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Any

from optiml_magic import binding
from optiml_magic.chips import chip
from optiml_magic.compilers.base import CompileOptions
from optiml_magic.compilers.nvrtc import NvrtcCompiler
from optiml_magic.devices.base import Array, Job
from optiml_magic.devices.emulated import EmulatedDevice
from optiml_magic.model.build import Build
from optiml_magic.model.task import Task
from optiml_magic.verifiers.problem import prepare

_CHIP = chip("h200")
_INSTRUCTIONS = 100_000_000


@cache
def _compiler() -> NvrtcCompiler:
    return NvrtcCompiler()


def outputs(text: str, values: Mapping[str, Any]) -> dict[str, Array]:
    """What every output of the program in ``text`` holds afterwards, by name.

    Raises AssertionError where it does not compile or does not run to its end.
    """
    problem = prepare(Task(text, inputs=values), seeds=1)
    first = problem.first
    names = binding.name_expressions(problem.program, problem.interface)
    checked = binding.checked_text(problem.program, problem.interface)
    build = _compiler().compile(checked, names, _CHIP, CompileOptions())
    assert isinstance(build, Build), f"{build}\n{text}"
    plan = binding.plan(
        problem.program, problem.interface, build, first.values, first.shapes, _CHIP
    )
    device = EmulatedDevice("h200")
    device.put(first.case)
    execution = device.execute(build, Job(first.case.key, plan, 0, False, _INSTRUCTIONS))
    assert execution.fault is None, f"{execution.fault}\n{text}"
    assert not execution.modified_inputs, text
    return {
        buffer.name: device.read(first.case.key, buffer.name)
        for buffer in first.case.buffers
        if buffer.role != "input"
    }
