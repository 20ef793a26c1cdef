"""Names and values to a kernel's parameters: roles from the code, types checked, launches resolved.

Nothing is cast and nothing is guessed in silence: what does not fit is a BindingError that names
the parameter, its line and the change to make.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np

from optiml_magic.chips import Chip
from optiml_magic.errors import BindingError, SourceError
from optiml_magic.model.launch import (
    Argument,
    BufferArgument,
    Launch,
    LaunchPlan,
    ScalarArgument,
    Scratch,
)
from optiml_magic.model.task import Task
from optiml_magic.source.directives import LaunchDirective
from optiml_magic.source.expressions import Expression, nearest, parse_expression
from optiml_magic.source.program import Program
from optiml_magic.source.signature import Kernel, Parameter, kernels, select

BufferRole = Literal["input", "output", "inout"]
Shapes = Mapping[str, tuple[int, ...]]
_LARGEST_GRID = (2**31 - 1, 65535, 65535)
_LARGEST_BLOCK = (1024, 1024, 64)
_MOST_ROUNDS = 10_000


@dataclass(frozen=True)
class BoundBuffer:
    """A pointer parameter of the task: its role, its numpy dtype, and lanes of a vector type."""

    name: str
    role: BufferRole
    dtype: str
    lanes: int
    line: int


@dataclass(frozen=True)
class Interface:
    """What every candidate of a task must bind to: buffers and scalars by name."""

    buffers: tuple[BoundBuffer, ...]
    scalars: tuple[str, ...]

    def named(self, *roles: BufferRole) -> tuple[BoundBuffer, ...]:
        """The buffers of these roles, in the order of the parameters."""
        return tuple(buffer for buffer in self.buffers if buffer.role in roles)


def launched(program: Program) -> tuple[tuple[LaunchDirective, Kernel], ...]:
    """Each launch with the kernel it names; SourceError where there is none."""
    known = kernels(program.text)
    if not known:
        raise SourceError(
            "there is no kernel here", fix="write a `__global__ void name(...)` function"
        )
    return tuple((launch, select(known, launch)) for launch in program.launches)


def interface(program: Program, task: Task, values: Mapping[str, Any]) -> Interface:
    """The interface that the input program gives its task; ``values`` are its inputs by name."""
    temporary = {directive.name for directive in program.scratch}
    set_before = {d.buffer for d in program.zeros} | {d.buffer for d in program.inits}
    buffers: dict[str, BoundBuffer] = {}
    scalars: dict[str, None] = {}
    for launch, kernel in launched(program):
        for parameter, expression in _pairs(launch, kernel):
            if not parameter.pointer:
                scalars.update(dict.fromkeys(sorted(expression.names)))
                continue
            name = expression.text
            if name in temporary:
                continue
            role = _role(parameter, name, task, set_before, values)
            earlier = buffers.get(name)
            if earlier is not None and earlier.role != role:
                # A later launch reads what an earlier one wrote, or the other way round.
                role = earlier.role if earlier.role == "output" else "inout"
            buffers[name] = BoundBuffer(
                name, role, _dtype(parameter, name), parameter.lanes, parameter.line
            )
    return Interface(tuple(buffers.values()), tuple(scalars))


def check_values(found: Interface, values: Mapping[str, Any]) -> None:
    """Every input is there, an array of the right dtype, contiguous; every scalar a number."""
    for buffer in found.named("input", "inout"):
        if buffer.name not in values:
            raise BindingError(
                f"no array named `{buffer.name}`",
                fix=nearest(buffer.name, values)
                or f"define `{buffer.name}` as a {buffer.dtype} array",
                line=buffer.line,
            )
        check_array(buffer, values[buffer.name])
    for name in found.scalars:
        if name not in values:
            raise BindingError(
                f"no value for the parameter `{name}`",
                fix=nearest(name, values) or f"define `{name}`, or give it in the task's inputs",
            )


def check_array(buffer: BoundBuffer, value: Any) -> None:
    """Whether an array can be passed for a pointer parameter as it is."""
    if not isinstance(value, np.ndarray):
        raise BindingError(
            f"`{buffer.name}` is a {type(value).__name__}, and the kernel wants an array",
            fix=f"make it a NumPy array of {buffer.dtype}",
            line=buffer.line,
        )
    wanted = np.dtype(buffer.dtype)
    if value.dtype != wanted and not (
        value.dtype.names and value.dtype.itemsize % wanted.itemsize == 0
    ):
        raise BindingError(
            f"`{buffer.name}` holds {value.dtype}, and the kernel's pointer is to {wanted.name}",
            fix=f"pass `{buffer.name}.astype(np.{wanted.name})`, or change the parameter's type",
            line=buffer.line,
        )
    if not value.flags.c_contiguous:
        raise BindingError(
            f"`{buffer.name}` is not contiguous (a view or a transpose)",
            fix=f"pass `np.ascontiguousarray({buffer.name})`",
            line=buffer.line,
        )
    if buffer.lanes > 1 and value.size % buffer.lanes:
        raise BindingError(
            f"`{buffer.name}` has {value.size} elements, no multiple of the {buffer.lanes} lanes",
            fix="pad it, or take the vector type away",
            line=buffer.line,
        )


def plan(
    program: Program,
    found: Interface,
    names: Mapping[str, str],
    values: Mapping[str, Any],
    shapes: Shapes,
    chip: Chip,
) -> LaunchPlan:
    """The launches of a candidate with every size resolved.

    Args:
        program: a concrete program; its buffers and scalars must be those of the interface.
        found: the task's interface.
        names: lowered names by name expression.
        values: the scalars of this case.
        shapes: of the interface's buffers.
        chip: for ``sm_count`` and the limits of a launch.

    Raises:
        BindingError: a name that the task does not have, a size that is out of range.
        SourceError: an expression that cannot be evaluated, a ``require`` that does not hold.
    """
    integers = _integers(values, program, chip)
    for requirement in program.requires:
        if not requirement.condition.evaluate(integers, shapes):
            raise SourceError(
                f"`require {requirement.condition}` does not hold for these sizes",
                fix="choose sizes for which it does, or a program without it",
                line=requirement.line,
            )
    scratch = tuple(
        Scratch(d.name, d.dtype, d.count.evaluate(integers, shapes)) for d in program.scratch
    )
    buffers = {buffer.name: buffer for buffer in found.buffers}
    known: dict[str, BoundBuffer | Scratch] = {**buffers, **{s.name: s for s in scratch}}
    launches = [
        _launch(launch, kernel, names, known, values, integers, shapes)
        for launch, kernel in launched(program)
    ]
    zeros = tuple(d.buffer for d in program.zeros)
    for name, line in [(d.buffer, d.line) for d in (*program.zeros, *program.inits)]:  # type: ignore[attr-defined]
        if name not in known:
            raise SourceError(
                f"there is no buffer `{name}`",
                fix=nearest(name, known) or f"buffers here: {', '.join(known)}",
                line=line,
            )
    fills = tuple((d.buffer, float(d.value)) for d in program.inits if not isinstance(d.value, str))
    return LaunchPlan(tuple(_repeated(program, launches, integers, shapes)), scratch, zeros, fills)


def kernel_names(program: Program) -> tuple[str, ...]:
    """The name expressions that a program launches, each once."""
    return tuple(dict.fromkeys(_expression_of(x, k) for x, k in launched(program)))


def _pairs(launch: LaunchDirective, kernel: Kernel) -> Sequence[tuple[Parameter, Expression]]:
    """Each parameter with the expression passed for it: its own name, or an entry of ``args``."""
    if launch.args is None:
        return [(p, parse_expression(p.name)) for p in kernel.parameters]
    if len(launch.args) != len(kernel.parameters):
        raise BindingError(
            f"`{kernel.name}` takes {len(kernel.parameters)} arguments, the launch gives "
            f"{len(launch.args)}",
            fix=f"its parameters are {', '.join(p.name for p in kernel.parameters)}",
            line=launch.line or kernel.line,
        )
    return list(zip(kernel.parameters, launch.args, strict=True))


def _role(
    parameter: Parameter,
    name: str,
    task: Task,
    set_before: set[str],
    values: Mapping[str, Any],
) -> BufferRole:
    if name in task.inout:
        return "inout"
    if name in task.outputs:
        return "output"
    if parameter.const or (parameter.certain and not parameter.writes):
        return "input"
    if not parameter.certain:
        raise BindingError(
            f"what the kernel does with `{name}` cannot be read from the code",
            fix=f"say it: --out {name} or --inout {name}",
            line=parameter.line,
        )
    if not parameter.reads or name in set_before:
        return "output"
    if name in values:
        return "inout"
    raise BindingError(
        f"`{name}` is read and written, and there is no array to start from",
        fix=f"define `{name}`, or say --out {name}, or clear it: #pragma optiml zero({name})",
        line=parameter.line,
    )


def _dtype(parameter: Parameter, name: str) -> str:
    if parameter.dtype is None or parameter.dtype == "bfloat16":
        raise BindingError(
            f"`{name}` points to `{parameter.ctype}`, which has no NumPy dtype here",
            fix="use a built-in type, or name the template's type in the launch: kernel<float>",
            line=parameter.line,
        )
    return parameter.dtype


def _integers(values: Mapping[str, Any], program: Program, chip: Chip) -> dict[str, int]:
    integers = {
        name: int(value) for name, value in values.items() if isinstance(value, (int, np.integer))
    }
    return {**integers, **program.values, "sm_count": chip.sms}


def _launch(
    directive: LaunchDirective,
    kernel: Kernel,
    names: Mapping[str, str],
    known: Mapping[str, BoundBuffer | Scratch],
    values: Mapping[str, Any],
    integers: Mapping[str, int],
    shapes: Shapes,
) -> Launch:
    grid = _extent("grid", directive.grid, integers, shapes, directive.line, _LARGEST_GRID)
    block = _extent("block", directive.block, integers, shapes, directive.line, _LARGEST_BLOCK)
    if block[0] * block[1] * block[2] > 1024:
        raise BindingError(
            f"a block of {block[0]} x {block[1]} x {block[2]} threads",
            fix="a block holds 1024 threads at most",
            line=directive.line,
        )
    shared = directive.shared.evaluate(integers, shapes) if directive.shared else 0
    return Launch(
        names[_expression_of(directive, kernel)],
        grid,
        block,
        shared,
        tuple(
            _argument(parameter, expression, known, values, integers, shapes)
            for parameter, expression in _pairs(directive, kernel)
        ),
    )


def _extent(
    what: str,
    expressions: Sequence[Expression],
    integers: Mapping[str, int],
    shapes: Shapes,
    line: int,
    largest: tuple[int, int, int],
) -> tuple[int, int, int]:
    axes = [expression.evaluate(integers, shapes) for expression in expressions]
    axes += [1] * (3 - len(axes))
    for value, limit, axis in zip(axes, largest, "xyz", strict=True):
        if not 1 <= value <= limit:
            raise BindingError(
                f"{what}.{axis} is {value}",
                fix=f"it must lie between 1 and {limit}",
                line=line or None,
            )
    return axes[0], axes[1], axes[2]


def _argument(
    parameter: Parameter,
    expression: Expression,
    known: Mapping[str, BoundBuffer | Scratch],
    values: Mapping[str, Any],
    integers: Mapping[str, int],
    shapes: Shapes,
) -> Argument:
    if parameter.pointer:
        name = expression.text
        buffer = known.get(name)
        if buffer is None:
            raise BindingError(
                f"the kernel asks for a buffer `{name}` that the task does not have",
                fix=nearest(name, known) or f"declare it: #pragma optiml scratch {name} f4[n]",
                line=parameter.line,
            )
        if buffer.dtype != _dtype(parameter, name):
            raise BindingError(
                f"`{name}` holds {buffer.dtype}, and this kernel's pointer is to {parameter.ctype}",
                fix="keep the types of the task's buffers",
                line=parameter.line,
            )
        return BufferArgument(name)
    value = values.get(expression.text)
    if value is None or isinstance(value, (bool, int, np.integer)):
        value = expression.evaluate(integers, shapes) if value is None else value
    return ScalarArgument(pack(parameter, value).hex())


def pack(parameter: Parameter, value: Any) -> bytes:
    """The little-endian bytes of a by-value parameter; BindingError where it does not fit."""
    if isinstance(value, np.void):
        return value.tobytes()
    if parameter.dtype is None or parameter.dtype == "bfloat16" or parameter.lanes > 1:
        raise BindingError(
            f"`{parameter.name}` is a `{parameter.ctype}`, and was given a {type(value).__name__}",
            fix="pass a NumPy structured scalar of the same layout",
            line=parameter.line,
        )
    dtype = np.dtype(parameter.dtype)
    if isinstance(value, np.ndarray) and value.ndim:
        raise BindingError(
            f"`{parameter.name}` is a {dtype.name}, and was given an array",
            fix="pass one number",
            line=parameter.line,
        )
    number = value.item() if hasattr(value, "item") else value
    if not isinstance(number, (bool, int, float, complex)):
        raise BindingError(
            f"`{parameter.name}` is a {dtype.name}, and was given a {type(value).__name__}",
            fix="pass a number",
            line=parameter.line,
        )
    if dtype.kind in "iu" and (
        number != int(number.real) or not _in_range(int(number.real), dtype)
    ):
        raise BindingError(
            f"`{parameter.name}` is {number!r}, which a {dtype.name} cannot hold",
            fix="pass an integer in its range, or change the parameter's type",
            line=parameter.line,
        )
    if dtype.kind == "f" and isinstance(number, complex):
        raise BindingError(
            f"`{parameter.name}` is complex, and the kernel wants a {dtype.name}",
            fix="pass a real number",
            line=parameter.line,
        )
    return np.asarray(number).astype(dtype).tobytes()


def _in_range(value: int, dtype: np.dtype[Any]) -> bool:
    limits = np.iinfo(dtype)
    return int(limits.min) <= value <= int(limits.max)


def _expression_of(launch: LaunchDirective, kernel: Kernel) -> str:
    return launch.kernel or kernel.name


def _repeated(
    program: Program, launches: Sequence[Launch], integers: Mapping[str, int], shapes: Shapes
) -> Iterator[Launch]:
    """The launches in order, rounds of ``repeat`` written out with their buffers swapped."""
    at = 0
    while at < len(launches):
        repeat = program.launches[at].repeat
        if repeat is None:
            yield launches[at]
            at += 1
            continue
        end = at
        while end < len(launches) and program.launches[end].repeat is repeat:
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
            yield from (_renamed(launch, names) for launch in launches[at:end])
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
