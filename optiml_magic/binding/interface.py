"""What a task's kernel takes: buffers with roles from the code, scalars, and the checks on values.

Nothing is cast and nothing is guessed in silence: what does not fit is a BindingError that names
the parameter, its line and the change to make.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import groupby
from typing import Any, Literal

import numpy as np

from optiml_magic.binding.absent import no_start, require_all
from optiml_magic.binding.elements import element_dtype, holds_rows, layouts, missing, struct_dtype
from optiml_magic.errors import BindingError, SourceError, nearest
from optiml_magic.kernels.prepared import without_kernel
from optiml_magic.kernels.signature import Kernel, Parameter, kernels, select
from optiml_magic.kernels.unit import Unit, lift_program
from optiml_magic.kernels.variables import DeviceVariable, device_variables
from optiml_magic.model.dtypes import BFLOAT16, DType, row_of, title
from optiml_magic.model.task import Task
from optiml_magic.source.directives import LaunchDirective, RepeatDirective, grouped
from optiml_magic.source.expressions import Expression, parse_expression
from optiml_magic.source.operators import SM_COUNT
from optiml_magic.source.program import Program

BufferRole = Literal["input", "output", "inout"]
Place = Literal["parameter", "variable"]


@dataclass(frozen=True)
class BoundBuffer:
    """An array of the task: its role, its numpy dtype, and lanes of a vector type.

    Its place is a pointer parameter of the kernel, or a ``__constant__`` or ``__device__``
    variable, which is an input.
    """

    name: str
    role: BufferRole
    dtype: DType
    lanes: int
    line: int
    place: Place = "parameter"


@dataclass(frozen=True)
class Interface:
    """What every candidate of a task must bind to: buffers and scalars by name.

    ``structs`` are the dtypes of those that hold structs.
    """

    buffers: tuple[BoundBuffer, ...]
    scalars: tuple[str, ...]
    structs: Mapping[str, DType] = field(default_factory=dict)
    constants: Mapping[str, int] = field(default_factory=dict)  # the integers among the defines
    defines: Mapping[str, str] = field(default_factory=dict)  # macros from outside of the text

    def named(self, *roles: BufferRole) -> tuple[BoundBuffer, ...]:
        """The buffers of these roles, in the order of the parameters."""
        return tuple(buffer for buffer in self.buffers if buffer.role in roles)


def launched(
    program: Program, defines: Mapping[str, str] | None = None
) -> tuple[tuple[LaunchDirective, Kernel], ...]:
    """Each launch with the kernel it names; SourceError where there is none.

    ``defines`` are the macros from outside of the text; None where nobody knows them.
    """
    known = kernels(lift_program(program, defines))
    if not known:
        raise without_kernel(program.launches[0].line if program.launches else None)
    return tuple((launch, select(known, launch)) for launch in program.launches)


def pairs(launch: LaunchDirective, kernel: Kernel) -> Sequence[tuple[Parameter, Expression]]:
    """Each parameter with the expression passed for it: its own name, or an entry of ``args``."""
    if launch.args is None:
        return [(p, parse_expression(p.name)) for p in kernel.parameters]
    if len(launch.args) != len(kernel.parameters):
        raise BindingError(
            f"`{kernel.name}` takes {len(kernel.parameters)} arguments, the launch gives "
            f"{len(launch.args)}",
            fix=f"pass its parameters: {', '.join(p.name for p in kernel.parameters)}",
            line=launch.line or kernel.line,
        )
    return list(zip(kernel.parameters, launch.args, strict=True))


def expressions(program: Program, found: Interface) -> tuple[Expression, ...]:
    """Every expression that is evaluated before the launches; a name that is passed on is none."""
    read = [requirement.condition for requirement in program.requires]
    read += [scratch.count for scratch in program.scratch]
    seen: list[RepeatDirective] = []
    for launch, kernel in launched(program, found.defines):
        if launch.repeat and not any(launch.repeat is known for known in seen):
            seen.append(launch.repeat)
            read.append(launch.repeat.count)
        read += [e for e in (launch.condition, launch.shared) if e is not None]
        read += [*launch.grid, *launch.block]
        read += [e for p, e in pairs(launch, kernel) if not p.pointer and e.name is None]
    return tuple(read)


def scalars(program: Program, found: Interface) -> tuple[str, ...]:
    """The task's scalars in order, then what else the launches of this program pass or read."""
    fixed = {*found.constants, *program.values}
    passed = [
        e.name
        for launch, kernel in launched(program, found.defines)
        for p, e in pairs(launch, kernel)
        if not p.pointer and e.name
    ]
    read = [name for e in expressions(program, found) for name in sorted(e.names)]
    others = [name for name in (*passed, *read) if name != SM_COUNT]
    return tuple(n for n in dict.fromkeys([*found.scalars, *others]) if n not in fixed)


def interface(program: Program, task: Task, values: Mapping[str, Any]) -> Interface:
    """The interface that the input program gives its task; ``values`` are its inputs by name."""
    arrays = {name for name, value in values.items() if isinstance(value, np.ndarray)}
    launches = launched(program, task.defines)
    check_own_names(program, arrays | {*task.outputs, *task.inout}, values, task.defines)
    temporary = {directive.name for directive in program.scratch}
    set_before = {d.buffer for d in program.zeros} | {d.buffer for d in program.inits}
    buffers: dict[str, BoundBuffer] = {}
    scalars: dict[str, None] = {}
    passed = [(p, e) for launch, kernel in launches for p, e in pairs(launch, kernel)]
    known = layouts([(p, e.text) for p, e in passed], values)
    structs: dict[str, DType] = {}
    unit = lift_program(program, task.defines)
    given = {*task.constants, *(tune.name for tune in program.tunes)}
    given |= {SM_COUNT} - values.keys()
    for parameter, expression in passed:
        if parameter.dtype is None and expression.text not in temporary:
            name = expression.text
            structs[name] = struct_dtype(unit, parameter, name, known, values)
        if not parameter.pointer:
            scalars.update(dict.fromkeys(sorted(expression.names - given)))
    lacking: dict[str, Parameter] = {}
    for step in _uses(launches):
        ends = []
        for uses in step:
            seen, before = dict(buffers), set(set_before)
            for parameter, name in uses:
                if name in temporary:
                    continue
                role = _role(parameter, name, task, before, values)
                if role == "lacking":
                    lacking.setdefault(name, parameter)
                    role = "inout"
                earlier = seen.get(name)
                if earlier is not None and earlier.role != role:
                    # A later launch reads what an earlier one wrote, or the other way round.
                    role = earlier.role if earlier.role == "output" else "inout"
                if role == "output":
                    before.add(name)
                dtype = element_dtype(parameter)
                dtype = structs[name] if dtype is None else dtype
                seen[name] = BoundBuffer(name, role, dtype, parameter.lanes, parameter.line)
            ends.append((seen, before))
        buffers = _joined([seen for seen, _ in ends])
        set_before = set.intersection(*(before for _, before in ends))
    for variable in _filled(program, task, values):
        buffers.setdefault(variable.name, variable)
        if variable.dtype.names is not None:
            structs[variable.name] = variable.dtype
    found = Interface(_ordered(buffers, task), tuple(scalars), structs, task.constants,
                      task.defines)  # fmt: skip
    if lacking:
        raise no_start(lacking, found.named("input", "inout"), found.scalars, values, task.outputs)
    if not found.named("output", "inout"):
        if program.scratch:
            raise BindingError(
                "the kernel writes only to scratch, so there is nothing to check",
                fix="remove the scratch directive of its output",
                line=program.scratch[0].line,
            )
        raise BindingError(
            "the kernel writes to none of its parameters, so there is nothing to check",
            fix="write the result to a pointer parameter, or pass --out NAME (outputs= of a Task)",
        )
    return found


def _ordered(buffers: Mapping[str, BoundBuffer], task: Task) -> tuple[BoundBuffer, ...]:
    """As the launches have them first; what the task names as outputs, in its order."""
    named = iter([buffers[name] for name in task.outputs if name in buffers])
    return tuple(next(named) if b.name in task.outputs else b for b in buffers.values())


def check_own_names(
    program: Program, arrays: Collection[str], values: Collection[str], defines: Mapping[str, str]
) -> None:
    """No directive takes the place of what the task gives.

    ``arrays`` and ``values`` are the names that it gives: to a tuned name that is passed for a
    parameter of another name, or for none, a value of the task is nothing.
    """
    for scratch in program.scratch:
        if scratch.name in arrays:
            raise SourceError(
                f"`{scratch.name}` is scratch here, and an array of the task",
                fix="remove the directive, or rename the scratch buffer and its parameter",
                line=scratch.line,
            )
    if not program.tunes:
        return
    taken = {
        p.name
        for launch, kernel in launched(program, defines)
        for p, e in pairs(launch, kernel)
        if not p.pointer and p.name == e.name
    }
    for tune in program.tunes:
        if tune.name in taken and tune.name in values:
            raise SourceError(
                f"`{tune.name}` is tuned here, and a parameter whose value the task gives",
                fix=f"remove the directive, or leave `{tune.name}` out of the task's inputs",
                line=tune.line,
            )


def _joined(ends: Sequence[dict[str, BoundBuffer]]) -> dict[str, BoundBuffer]:
    """What is known of each buffer after the launches of a dispatch, of which one ran."""
    joined: dict[str, BoundBuffer] = {}
    for name in dict.fromkeys(name for end in ends for name in end):
        found = [end[name] for end in ends if name in end]
        roles = {bound.role for bound in found}
        narrowest = min(found, key=lambda bound: bound.lanes)
        joined[name] = narrowest if len(roles) == 1 else replace(narrowest, role="inout")
    return joined


def _uses(
    known: Sequence[tuple[LaunchDirective, Kernel]],
) -> Iterator[list[list[tuple[Parameter, str]]]]:
    """The buffers that each launch of each step is given; a round that swaps comes again, swapped.

    A step is one launch, or those of a dispatch.
    """
    for _, group in groupby(known, key=lambda pair: id(pair[0].repeat)):
        launches = list(group)
        repeat = launches[0][0].repeat
        names: dict[str, str] = {}
        given = {e.text for x, k in launches for p, e in pairs(x, k) if p.pointer}
        for name in {n for pair in (repeat.swaps if repeat else ()) for n in pair} - given:
            raise SourceError(
                f"`{name}` is swapped, and no launch of its round takes it",
                fix=nearest(name, given)
                or f"name a buffer of this round: {', '.join(sorted(given))}",
                line=repeat.line if repeat else None,
            )
        for _ in range(len(repeat.swaps) + 1 if repeat else 1):
            for step in grouped(launches, lambda pair: pair[0]):
                yield [
                    [(p, names.get(e.text, e.text)) for p, e in pairs(x, k) if p.pointer]
                    for x, k in step
                ]
            for one, two in repeat.swaps if repeat else ():
                names[one], names[two] = names.get(two, two), names.get(one, one)


def _filled(program: Program, task: Task, values: Mapping[str, Any]) -> Iterator[BoundBuffer]:
    """The variables that are filled from the values; those with an initialiser keep it."""
    unit = lift_program(program, task.defines)
    for variable in device_variables(unit):
        name = variable.bare_name
        if variable.initialised or (name not in values and variable.space == "device"):
            continue  # a counter or a flag of the kernel's own begins with zeros
        if name not in values:
            otherwise = f"define `{name}` like an input, or initialise it in the code"
            raise BindingError(
                f"no value for the __constant__ variable `{name}`, which would hold zeros",
                fix=missing(name, values, otherwise),
                line=variable.line,
            )
        dtype = _variable_dtype(unit, variable, values)
        yield BoundBuffer(name, "input", dtype, variable.lanes, variable.line, "variable")


def _variable_dtype(unit: Unit, variable: DeviceVariable, values: Mapping[str, Any]) -> DType:
    if variable.dtype is not None:
        return np.dtype(variable.dtype)
    name = variable.bare_name
    struct = Parameter(name, variable.ctype, None, False, True, True, False, True, variable.line)
    known = layouts([(struct, name)], values)
    return struct_dtype(unit, struct, name, known, values)


def content(bound: BoundBuffer, values: Mapping[str, Any]) -> Any:
    """The array for a buffer; a variable may be given as one number."""
    value = values[bound.name]
    if bound.place == "parameter" or isinstance(value, np.ndarray):
        return value
    if isinstance(value, np.void):
        return np.asarray(value).reshape(1)
    if not isinstance(value, (bool, int, float, complex, np.generic)):
        return value  # check_array says what is wrong with it
    with np.errstate(over="ignore"):
        array = np.asarray(value).astype(bound.dtype)
    if array.dtype.kind in "iub" and array.item() != value:
        raise BindingError(
            f"`{bound.name}` is {value!r}, which {array.dtype.name} cannot hold",
            fix="pass an integer in its range, or change the variable's type",
            line=bound.line,
        )
    return array.reshape(1)


def check_values(found: Interface, values: Mapping[str, Any], sized: Collection[str] = ()) -> None:
    """Every input is there, an array of the right dtype, contiguous; every scalar a number.

    Arrays that are ``sized`` by numbers are made once these are there.
    """
    taken = found.named("input", "inout")
    given = [buffer for buffer in taken if buffer.name in values]
    if len(given) < len(taken):
        require_all(taken, found.scalars, values, sized)
    for buffer in given:
        check_array(buffer, content(buffer, values))
    require_all(taken, found.scalars, values, sized)


def check_array(buffer: BoundBuffer, value: Any) -> None:
    """Whether an array can be passed for a pointer parameter as it is."""
    wanted = title(buffer.dtype)
    if not isinstance(value, np.ndarray):
        raise BindingError(
            f"`{buffer.name}` is a {type(value).__name__}, and the kernel wants an array",
            fix=f"pass {_made(buffer)}",
            line=buffer.line,
        )
    row = row_of(value.dtype)  # to NumPy, None is equal to float64
    alike = (row is not None and row[0] == buffer.dtype) or holds_rows(value, buffer.dtype)
    if value.dtype != buffer.dtype and not alike:
        fix = f"pass {_made(buffer)}, or change the parameter's type"
        if buffer.dtype.names or value.dtype.names:
            fix = "give it the kernel's type"
        raise BindingError(
            f"`{buffer.name}` holds {title(value.dtype)}, and the kernel's pointer is to {wanted}",
            fix=fix,
            line=buffer.line,
        )
    if not value.flags.c_contiguous:
        raise BindingError(
            f"`{buffer.name}` is not contiguous (a view or a transpose)",
            fix=f"pass `np.ascontiguousarray({buffer.name})`",
            line=buffer.line,
        )
    count = value.size * (row[1] if row is not None else 1)
    if buffer.lanes > 1 and count % buffer.lanes:
        raise BindingError(
            f"`{buffer.name}` has {count} elements, not a multiple of {buffer.lanes} lanes",
            fix="pad it, or use a scalar type",
            line=buffer.line,
        )


def _role(
    parameter: Parameter,
    name: str,
    task: Task,
    set_before: set[str],
    values: Mapping[str, Any],
) -> BufferRole | Literal["lacking"]:
    """What a buffer is for; ``lacking`` where it is read and written, and starts from nothing."""
    if name in task.inout:
        return "inout"
    if name in task.outputs and (name in set_before or not (parameter.certain and parameter.adds)):
        return "output"
    if parameter.const or (parameter.certain and not parameter.writes):
        return "input"
    if not parameter.certain:
        raise BindingError(
            f"what the kernel does with `{name}` cannot be read from the code",
            fix=f"pass --out {name} or --inout {name} (outputs=, inout= of a Task)",
            line=parameter.line,
        )
    if not parameter.reads or name in set_before:
        return "output"
    if name in values:
        return "inout"
    return "lacking"


def _made(buffer: BoundBuffer) -> str:
    """An expression that makes the array a kernel wants from what was given."""
    if buffer.dtype.names is not None:
        return f"np.asarray({buffer.name}, dtype) with the dtype of the struct"
    module = "ml_dtypes" if buffer.dtype == BFLOAT16 else "np"
    return f"np.asarray({buffer.name}, {module}.{title(buffer.dtype)})"
