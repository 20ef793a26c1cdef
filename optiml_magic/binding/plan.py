"""The launches of a candidate with every size and argument resolved for one case."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from optiml_magic.binding.elements import element_dtype, wanted
from optiml_magic.binding.interface import (
    BoundBuffer,
    Interface,
    check_own_names,
    launched,
    pairs,
)
from optiml_magic.binding.packing import pack
from optiml_magic.chips import Chip
from optiml_magic.errors import BindingError, RequirementError, SourceError, nearest
from optiml_magic.kernels.signature import Kernel, Parameter
from optiml_magic.kernels.unit import lift_program
from optiml_magic.kernels.variables import DeviceVariable, device_variables
from optiml_magic.model.build import Build
from optiml_magic.model.dtypes import DType, title
from optiml_magic.model.launch import (
    Argument,
    BufferArgument,
    Launch,
    LaunchPlan,
    ScalarArgument,
    Scratch,
)
from optiml_magic.source.directives import LaunchDirective
from optiml_magic.source.expressions import Expression
from optiml_magic.source.program import Program

Shapes = Mapping[str, tuple[int, ...]]
_LARGEST_GRID = (2**31 - 1, 65535, 65535)
_LARGEST_BLOCK = (1024, 1024, 64)
_MOST_ROUNDS = 10_000
_MOST_SCRATCH = 2 << 30  # bytes


def plan(
    program: Program,
    found: Interface,
    build: Build,
    values: Mapping[str, Any],
    shapes: Shapes,
    chip: Chip,
) -> LaunchPlan:
    """The launches of a candidate with every size resolved; of a dispatch the one that runs.

    Args:
        program: a concrete program; its buffers and scalars must be those of the interface.
        found: the task's interface.
        build: what the program was compiled to, with ``name_expressions``.
        values: the scalars of this case.
        shapes: of the interface's buffers.
        chip: for ``sm_count`` and the limits of a launch.

    Raises:
        BindingError: a name that the task does not have, a size that is out of range.
        SourceError: an expression that cannot be evaluated, a directive that takes a name of the
            task's.
        RequirementError: a ``require`` that does not hold.
    """
    buffers = {buffer.name: buffer for buffer in found.buffers}
    check_own_names(program, buffers, found.scalars, found.defines)
    integers = {**found.constants, **_integers(values, program, chip)}
    scratch = tuple(_scratch(program, integers, shapes))
    shapes = {**shapes, **{one.name: (one.elements,) for one in scratch}}
    for requirement in program.requires:
        if not requirement.condition.evaluate(integers, shapes):
            raise RequirementError(
                f"`require {requirement.condition}` does not hold for these sizes",
                fix="choose sizes for which it does, or a program without it",
                line=requirement.line,
            )
    known: dict[str, BoundBuffer | Scratch] = {**buffers, **{s.name: s for s in scratch}}
    own = {name: value for name, value in values.items() if name not in program.values}
    env = _Environment(own, integers, shapes, chip, known, found.structs)
    kernels = {x.start: kernel for x, kernel in launched(program, found.defines)}
    running = _running(program, integers, shapes)
    launches = [_launch(x, kernels[x.start], build.names, env) for x in running]
    zeros = tuple(d.buffer for d in program.zeros)
    for name, line in [(d.buffer, d.line) for d in (*program.zeros, *program.inits)]:  # type: ignore[attr-defined]
        if name not in known:
            raise SourceError(
                f"there is no buffer `{name}`",
                fix=nearest(name, known) or f"name a buffer: {', '.join(known)}",
                line=line,
            )
        if name not in buffers and name not in zeros:
            raise SourceError(
                f"`{name}` is scratch, which `init` does not set",
                fix=f"let a kernel fill it in a launch before, or write zero({name})",
                line=line,
            )
        found_buffer = buffers.get(name)
        if name in zeros and found_buffer is not None and found_buffer.role != "output":
            raise BindingError(
                f"`{name}` is an {found_buffer.role} of the task and cannot be cleared",
                fix=f"remove `zero({name})`",
                line=line,
            )
    fills = tuple(
        (d.buffer, repr(float(d.value))) for d in program.inits if not isinstance(d.value, str)
    )
    zeroed = sum(_bytes(known[name], shapes) for name in zeros)
    for directive, launch in zip(running, launches, strict=True):
        _check_registers(directive, launch, build, chip)
    rounds = tuple(
        _renamed(launches[at], names) for at, names in _repeated(running, integers, shapes)
    )
    variables = tuple(_variables(program, found, build, shapes))
    return LaunchPlan(rounds, scratch, zeros, fills, zeroed, variables)


def planned(
    program: Program, found: Interface, values: Mapping[str, Any], shapes: Shapes, chip: Chip
) -> tuple[LaunchDirective, ...]:
    """The directive behind each launch of the plan on these values, in order."""
    integers = {**found.constants, **_integers(values, program, chip)}
    scratch = _scratch(program, integers, shapes)
    shapes = {**shapes, **{one.name: (one.elements,) for one in scratch}}
    running = _running(program, integers, shapes)
    return tuple(running[at] for at, _ in _repeated(running, integers, shapes))


def _running(
    program: Program, integers: Mapping[str, int], shapes: Shapes
) -> list[LaunchDirective]:
    """The launches that run on these values, each once: of a dispatch the first that may."""
    return [
        next(x for x in step if x.condition is None or x.condition.evaluate(integers, shapes))
        for step in program.alternatives
    ]


def _variables(
    program: Program, found: Interface, build: Build, shapes: Shapes
) -> Iterator[tuple[str, str]]:
    """The lowered name of each variable that is filled, with its buffer."""
    sizes = {variable.name: variable.nbytes for variable in build.variables}
    for variable, bound in bound_variables(program, found):
        lowered = build.names[f"&{variable.name}"]
        given = _bytes(bound, shapes)
        if sizes[lowered] != given:
            raise BindingError(
                f"`{bound.name}` has {given} bytes, and the variable in the code {sizes[lowered]}",
                fix="make the array as large as the variable; the rest is not filled with zeros",
                line=variable.line,
            )
        yield lowered, bound.name


def bound_variables(
    program: Program, found: Interface
) -> Iterator[tuple[DeviceVariable, BoundBuffer]]:
    """The variables of this program that the task fills, each with its buffer."""
    buffers = {b.name: b for b in found.buffers if b.place == "variable"}
    for variable in device_variables(lift_program(program, found.defines)):
        bound = buffers.get(variable.bare_name)
        if variable.initialised:
            continue
        if bound is None:
            if variable.space == "constant":
                raise BindingError(
                    f"the task has no value for the __constant__ variable `{variable.name}`",
                    fix=nearest(variable.bare_name, buffers) or "initialise it in the code",
                    line=variable.line,
                )
            continue
        struct = variable.dtype is None and bound.dtype.names is not None  # see checked_text
        if not struct and (variable.dtype != bound.dtype or variable.lanes != bound.lanes):
            raise BindingError(
                f"`{bound.name}` holds {title(bound.dtype)}, and this variable is of "
                f"{variable.ctype}",
                fix="keep the types of the task's variables",
                line=variable.line,
            )
        yield variable, bound


def _bytes(buffer: BoundBuffer | Scratch, shapes: Shapes) -> int:
    elements = buffer.elements if isinstance(buffer, Scratch) else math.prod(shapes[buffer.name])
    return elements * np.dtype(buffer.dtype).itemsize


def _scratch(program: Program, integers: Mapping[str, int], shapes: Shapes) -> Iterator[Scratch]:
    """The temporaries, within what a program may ask for."""
    total = 0
    for directive in program.scratch:
        elements = directive.count.evaluate(integers, shapes)
        total += elements * np.dtype(directive.dtype).itemsize
        if elements < 1 or total > _MOST_SCRATCH:
            raise BindingError(
                f"scratch {directive.name} of {elements} elements{told(directive.count, integers)}",
                fix=f"ask for at least one element, and at most {_MOST_SCRATCH >> 30} GB in all",
                line=directive.line,
            )
        yield Scratch(directive.name, directive.dtype, elements)


def told(expression: Expression, integers: Mapping[str, int]) -> str:
    """Where a size comes from: its expression, and the values of the names in it."""
    names = sorted(expression.names & integers.keys())
    values = " and ".join(f"{name} = {integers[name]}" for name in names)
    return f", from `{expression}` with {values}" if names else ""


def name_expressions(program: Program, found: Interface) -> tuple[str, ...]:
    """The kernels that a program launches and the variables that are filled, each once."""
    kernels = [_expression_of(x, k) for x, k in launched(program, found.defines)]
    filled = [f"&{variable.name}" for variable, _ in bound_variables(program, found)]
    return tuple(dict.fromkeys([*kernels, *filled]))


def _integers(values: Mapping[str, Any], program: Program, chip: Chip) -> dict[str, int]:
    integers = {name: int(value) for name, value in values.items() if _is_integer(value)}
    return {**integers, **program.values, "sm_count": chip.sms}


def _is_integer(value: Any) -> bool:
    if isinstance(value, np.ndarray):
        return value.ndim == 0 and value.dtype.kind in "iu"
    return isinstance(value, (int, np.integer))


@dataclass(frozen=True)
class _Environment:
    """What the expressions of a program may read, and what the chip allows."""

    values: Mapping[str, Any]
    integers: Mapping[str, int]
    shapes: Shapes
    chip: Chip
    known: Mapping[str, BoundBuffer | Scratch]
    structs: Mapping[str, DType]

    def evaluate(self, expression: Expression) -> int:
        return expression.evaluate(self.integers, self.shapes)


def _launch(
    directive: LaunchDirective, kernel: Kernel, names: Mapping[str, str], env: _Environment
) -> Launch:
    # Arguments first: a scalar of the wrong type is named as such, not as a name that is unknown.
    arguments = tuple(_argument(p, e, env) for p, e in pairs(directive, kernel))
    grid = _extent("grid", directive.grid, env, directive.line, _LARGEST_GRID)
    block = _extent("block", directive.block, env, directive.line, _LARGEST_BLOCK)
    if block[0] * block[1] * block[2] > 1024:
        raise BindingError(
            f"a block of {block[0]} x {block[1]} x {block[2]} threads",
            fix="use at most 1024 threads in a block",
            line=directive.line,
        )
    shared = env.evaluate(directive.shared) if directive.shared else 0
    if not 0 <= shared <= env.chip.shared_bytes_per_block:
        raise BindingError(
            f"shared({shared})",
            fix=f"use at most {env.chip.shared_bytes_per_block} bytes, all that a block has",
            line=directive.line or None,
        )
    return Launch(names[_expression_of(directive, kernel)], grid, block, shared, arguments)


def _extent(
    what: str,
    expressions: Sequence[Expression],
    env: _Environment,
    line: int,
    largest: tuple[int, int, int],
) -> tuple[int, int, int]:
    axes = [env.evaluate(expression) for expression in expressions]
    axes += [1] * (3 - len(axes))
    for value, limit, axis in zip(axes, largest, "xyz", strict=True):
        if not 1 <= value <= limit:
            source = told(expressions["xyz".index(axis)], env.integers)
            raise BindingError(
                f"{what}.{axis} is {value}{source}",
                fix=f"use a value between 1 and {limit}",
                line=line or None,
            )
    return axes[0], axes[1], axes[2]


def _argument(parameter: Parameter, expression: Expression, env: _Environment) -> Argument:
    if parameter.pointer:
        name = expression.text
        buffer = env.known.get(name)
        if buffer is None:
            raise BindingError(
                f"the kernel asks for a buffer `{name}` that the task does not have",
                fix=nearest(name, env.known) or f"declare it: #pragma optiml scratch {name} f4[n]",
                line=parameter.line,
            )
        held, own = np.dtype(buffer.dtype), element_dtype(parameter)
        if held != own and (held.names is None or own is not None):
            raise BindingError(
                f"`{name}` holds {title(held)}, and this kernel's pointer is to {parameter.ctype}",
                fix="keep the types of the task's buffers",
                line=parameter.line,
            )
        return BufferArgument(name)
    value = env.values.get(expression.text)
    if value is None:
        value = env.evaluate(expression)
    layout = env.structs.get(expression.text)
    if layout is not None and getattr(value, "dtype", None) != layout:
        raise BindingError(
            f"`{parameter.name}` is {wanted(parameter)}, which the task gave as {title(layout)}",
            fix="pass a structured scalar of that dtype",
            line=parameter.line,
        )
    return ScalarArgument(pack(parameter, value).hex())


def _expression_of(launch: LaunchDirective, kernel: Kernel) -> str:
    return launch.kernel or kernel.name


def _check_registers(directive: LaunchDirective, launch: Launch, build: Build, chip: Chip) -> None:
    """A warp gets registers in steps of 256. CUDA C++ Guide, "Compute Capabilities"."""
    warps = -(-math.prod(launch.block) // 32)
    known = build.resources.get(launch.kernel)
    used = known.registers if known else 0
    if warps * (-(-used * 32 // 256) * 256) > chip.registers_per_sm:
        raise BindingError(
            f"{warps} warps of {used} registers a thread are more than the "
            f"{chip.registers_per_sm} registers of a multiprocessor",
            fix=f"take a smaller block, or declare __launch_bounds__({math.prod(launch.block)})",
            line=directive.line,
        )


def _repeated(
    running: Sequence[LaunchDirective], integers: Mapping[str, int], shapes: Shapes
) -> Iterator[tuple[int, dict[str, str]]]:
    """The place of each launch in order, rounds of ``repeat`` written out with what is swapped."""
    at = 0
    while at < len(running):
        repeat = running[at].repeat
        if repeat is None:
            yield at, {}
            at += 1
            continue
        end = at
        while end < len(running) and running[end].repeat is repeat:
            end += 1
        rounds = repeat.count.evaluate(integers, shapes)
        if not 0 <= rounds <= _MOST_ROUNDS:
            raise SourceError(
                f"repeat({rounds})",
                fix=f"repeat between 0 and {_MOST_ROUNDS} times",
                line=repeat.line,
            )
        names: dict[str, str] = {}
        for _ in range(rounds):
            yield from ((place, dict(names)) for place in range(at, end))
            for one, two in repeat.swaps:
                names[one], names[two] = names.get(two, two), names.get(one, one)
        at = end


def _renamed(launch: Launch, names: Mapping[str, str]) -> Launch:
    return replace(
        launch,
        arguments=tuple(
            BufferArgument(names.get(a.buffer, a.buffer)) if isinstance(a, BufferArgument) else a
            for a in launch.arguments
        ),
    )
