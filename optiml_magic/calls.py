"""Calling a program on a user's arrays: sizes matched, outputs made, one launch plan run.

NumPy arrays go through the device host and are guarded there; arrays that lie on a GPU already are
passed as they are, in this process (``inprocess.py``).
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from optiml_magic import binding
from optiml_magic.chips import Chip
from optiml_magic.compilers.base import CompileOptions, Compiler
from optiml_magic.devices.base import Array, Buffer, Case, Job
from optiml_magic.errors import BindingError, KernelFailed, UsageError
from optiml_magic.evaluation import Tools
from optiml_magic.model.build import Build, CompileFailure
from optiml_magic.model.launch import LaunchPlan
from optiml_magic.preparation import compiled
from optiml_magic.problem import Instance, Problem
from optiml_magic.reports.printed import block
from optiml_magic.source.program import Program, parse_program
from optiml_magic.verifiers.verify import failure, judge


def call(problem: Problem, tools: Tools, text: str, values: Mapping[str, Any]) -> dict[str, Array]:
    """The outputs of one run by name; a UserWarning tells of elements that were never written.

    Raises BindingError where an argument does not fit or a size is not determined, UsageError where
    the kernel faults on these arrays.
    """
    program = parse_program(text)
    buffers, build, plan = prepared(
        problem, tools.compiler, tools.options, tools.chip, program, values
    )
    tools.device.put(Case("call", buffers))
    outputs = _outputs(tools, build, plan, buffers, poison=0)
    for name in outputs.arrays.keys() & values.keys() - _inouts(problem):
        np.copyto(values[name], outputs.arrays[name])
        outputs.arrays[name] = values[name]
    second: dict[str, Array] = {}
    for name, count in outputs.unwritten:
        if not count:
            continue
        # What lies there by chance and what was never written: only the latter changes with poison.
        second = second or _outputs(tools, build, plan, buffers, poison=1).arrays
        one, two = (a.reshape(-1).view(np.uint8) for a in (outputs.arrays[name], second[name]))
        size = outputs.arrays[name].itemsize
        missing = int(np.count_nonzero((one != two).reshape(-1, size).any(axis=1)))
        if missing:
            warnings.warn(
                f"the kernel left {missing} of {outputs.arrays[name].size} elements of `{name}` "
                "unwritten; they hold random bits",
                stacklevel=2,
            )
    return outputs.arrays


def prepared(  # a compilation and the arrays it is for
    problem: Problem,
    compiler: Compiler,
    options: CompileOptions,
    chip: Chip,
    program: Program,
    values: Mapping[str, Any],
) -> tuple[tuple[Buffer, ...], Build, LaunchPlan]:
    """Everything that a run on these values needs: buffers in the task's order, code, launches."""
    complete = sized(problem, program, values)
    starts = {d.buffer: d.value for d in program.inits if isinstance(d.value, str)}
    buffers = tuple(
        _buffer(problem, place, complete, starts.get(place.name))
        for place in problem.interface.buffers
    )
    for place, buffer in zip(problem.interface.buffers, buffers, strict=True):
        binding.check_array(place, buffer.array)
    bound = compiled(program, problem.interface, compiler, options, chip)
    if isinstance(bound, UsageError):
        raise bound
    if isinstance(bound, CompileFailure):
        raise KernelFailed(bound.errors[0].message, line=bound.errors[0].line)
    shapes = {buffer.name: buffer.array.shape for buffer in buffers}
    return buffers, bound.build, bound.plan(complete, shapes)


def _inouts(problem: Problem) -> set[str]:
    return {bound.name for bound in problem.interface.named("inout")}


@dataclass(frozen=True)
class _Outputs:
    """The arrays that one run left, by name, and how much of each still holds its poison."""

    arrays: dict[str, Array]
    unwritten: tuple[tuple[str, int], ...]


def _outputs(
    tools: Tools, build: Build, plan: LaunchPlan, buffers: tuple[Buffer, ...], *, poison: int
) -> _Outputs:
    execution = tools.device.execute(build, Job("call", plan, poison, False, tools.instructions))
    if not poison:  # a second run with another poison would say the same again
        lines = block(execution.printed, most=len(execution.printed))
        sys.stdout.write("".join(f"{line}\n" for line in lines))
    verdict = judge(execution)
    if not verdict.passed:
        raise failure(verdict)
    arrays = {b.name: tools.device.read("call", b.name) for b in buffers if b.role != "input"}
    return _Outputs(arrays, execution.unwritten)


def sized(problem: Problem, program: Program, values: Mapping[str, Any]) -> dict[str, Any]:
    """``values`` with every scalar: given, derived from a shape, or the task's where nothing grew.

    A scalar of the task that equals exactly one extent of its inputs follows that extent.
    """
    interface = problem.interface
    first = problem.instances[0]
    complete = dict(values)
    for bound in interface.named("input", "inout"):
        if bound.place == "variable":  # without a value it keeps the task's
            given = {bound.name: complete.get(bound.name, first.values[bound.name])}
            complete[bound.name] = binding.content(bound, given)
            binding.check_array(bound, complete[bound.name])
            continue
        if bound.name not in complete:
            raise BindingError(f"the input `{bound.name}` is missing", fix="pass it")
        binding.check_array(bound, complete[bound.name])
        rank = len(first.shapes[bound.name])
        if complete[bound.name].ndim != rank:
            raise BindingError(
                f"`{bound.name}` has {complete[bound.name].ndim} axes, in the task it had {rank}",
                fix="pass an array of the same number of axes",
            )
    shapes = {b.name: complete[b.name].shape for b in interface.named("input", "inout")}
    directives = {d.name: d.expression for d in program.sizes}
    for name in binding.scalars(program, interface):
        if name in complete:
            continue
        if name in directives:
            complete[name] = directives[name].evaluate({}, shapes)
        elif name in first.values:
            complete[name] = _followed(first, name, shapes)
    return complete


def _followed(first: Instance, name: str, shapes: Mapping[str, tuple[int, ...]]) -> Any:
    before = {n: first.shapes[n] for n in shapes}
    value = first.values[name]
    if before == dict(shapes) or not isinstance(value, (int, np.integer)):
        return value
    places = [
        (array, axis)
        for array, shape in before.items()
        for axis, extent in enumerate(shape)
        if extent == value
    ]
    moved = {shapes[array][axis] for array, axis in places if axis < len(shapes[array])}
    twins = [n for n, v in first.values.items() if isinstance(v, (int, np.integer)) and v == value]
    if len(moved) == 1 and twins == [name]:
        return moved.pop()
    raise BindingError(
        f"`{name}` does not follow from the shapes of the inputs",
        fix=f"pass {name}=..., or write #pragma optiml size {name} = shape(array, axis)",
    )


def _buffer(
    problem: Problem, bound: binding.BoundBuffer, values: Mapping[str, Any], start: str | None
) -> Buffer:
    if bound.role != "output":
        return Buffer(bound.name, bound.role, values[bound.name])
    if start is not None:
        known = {**problem.instances[0].values, **values}
        return Buffer(bound.name, "inout", known[start])
    first = problem.instances[0]
    before = first.shapes[bound.name]
    if bound.name in values:
        return Buffer(bound.name, "output", values[bound.name])
    names = [b.name for b in problem.interface.named("input", "inout")]
    same = all(values[n].shape == first.shapes[n] for n in names)
    shape = before if same else tuple(_extent(bound, e, first, values, names) for e in before)
    return Buffer(bound.name, "output", np.empty(shape, bound.dtype))


def _extent(
    bound: binding.BoundBuffer,
    extent: int,
    first: Instance,
    values: Mapping[str, Any],
    names: list[str],
) -> int:
    """An output's extent at other sizes: that of the scalars and axes that equalled it."""
    now = {int(values[n]) for n, v in first.values.items() if n in values and _is_size(v, extent)}
    for name in names:
        pairs = zip(first.shapes[name], values[name].shape, strict=False)
        now |= {new for old, new in pairs if old == extent}
    if len(now) == 1:
        return now.pop()
    raise BindingError(
        f"the shape of the output `{bound.name}` does not follow from these inputs",
        fix="call it with arrays of the task's shapes, or optimise a task with distinct sizes",
        line=bound.line,
    )


def _is_size(value: Any, extent: int) -> bool:
    return isinstance(value, (int, np.integer)) and int(value) == extent
