"""Arrays that a task does not give: outputs as large as their stores, or as the host allocates.

A pasted program fills its inputs itself, by code that is not run here; numbers stand in for what it
would have made.
"""

from __future__ import annotations

import math
import re
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from optiml_magic import binding
from optiml_magic.binding.elements import laid_out
from optiml_magic.binding.interface import launched, pairs
from optiml_magic.errors import UsageError
from optiml_magic.kernels.stored_extents import is_no_index, stored_extent
from optiml_magic.kernels.unit import lift_program
from optiml_magic.kernels.variables import device_variables
from optiml_magic.model.dtypes import DType, numbers, title
from optiml_magic.problem.filling import as_filled
from optiml_magic.problem.inputs import whole_numbers
from optiml_magic.source.expressions import Binary, Expression, parse_expression

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from optiml_magic.devices.base import Array
    from optiml_magic.kernels.signature import Kernel, Parameter
    from optiml_magic.kernels.unit import Unit
    from optiml_magic.model.task import Task
    from optiml_magic.source.directives import LaunchDirective
    from optiml_magic.source.expressions import Node
    from optiml_magic.source.notes import Note
    from optiml_magic.source.program import Program

_MOST_BYTES = 2**28  # of an array that is made up; ours


def with_stored_shapes(
    task: Task,
    program: Program,
    found: binding.Interface,
    values: Mapping[str, Any],
    read: Sequence[Note] = (),
) -> tuple[Task, list[str]]:
    """The task with the shapes that the host or stores tell, and a note for each.

    ``read`` is what was read of the text; shapes that it does not tell stay unknown.
    """
    allocated = _allocated(read)
    starts = {d.buffer for d in program.inits if isinstance(d.value, str)}
    if task.reference is not None:
        return task, []
    specs, notes = dict[str, str](), list[str]()
    for buffer in found.named("output"):
        given = isinstance(values.get(buffer.name), np.ndarray) or buffer.name in starts
        if given or task.outputs.get(buffer.name):
            continue
        extent, note = _extent(program, found, buffer.name), None
        if extent is None and (note := allocated.get(buffer.name)):
            extent = parse_expression(note.extent)
        if extent is None or not extent.names <= values.keys() | found.constants.keys():
            continue
        if not extent.arrays <= values.keys():
            continue
        lanes = f"({extent}) * {buffer.lanes}" if buffer.lanes > 1 else str(extent)
        dtype = "struct" if buffer.dtype.names else title(buffer.dtype)
        specs[buffer.name] = f"{dtype}[{parse_expression(lanes)}]"
        notes.append(
            note.text
            if note
            else f"`{buffer.name}` has {parse_expression(lanes)} elements, by its stores; "
            f"another shape: --out {buffer.name}:{dtype}[...]"
        )
    return (replace(task, outputs={**task.outputs, **specs}), notes) if specs else (task, [])


def drawn_as_allocated(
    program: Program, task: Task, values: Mapping[str, Any], read: Sequence[Note]
) -> tuple[dict[str, Any], list[str]]:
    """Random numbers for the arrays that launches read and nobody gives, as the host sizes them.

    Whole numbers that may be indices only where a loop of the host says what they are, since any
    others would do harm. What is only added to starts from zeros. Who gives an array or a reference
    means to give all of them, unless the arrays are as large as the host allocates them.
    """
    allocated, found, notes = _allocated(read), dict[str, Any](), list[str]()
    filled = {note.name: note for note in read if note.kind == "filled"}
    cleared = {directive.buffer for directive in program.zeros}
    seen = {*values, *task.outputs, *cleared}
    given = _of_other_sizes(allocated, values)
    if not allocated or given or task.reference is not None or callable(task.inputs):
        return {}, []
    unit = lift_program(program, task.defines)
    for launch, kernel in launched(program, task.defines):
        for parameter, passed in pairs(launch, kernel):
            name = passed.text
            if not parameter.pointer or name in seen:
                continue
            if parameter.certain and not (parameter.reads or parameter.writes or parameter.adds):
                continue
            seen.add(name)
            note, dtype = allocated.get(name), _element(unit, parameter)
            kept = (parameter.reads or parameter.adds) and parameter.certain
            if note is None or not kept or dtype is None:
                continue
            count = _count(note, values) * parameter.lanes
            if count * dtype.itemsize > _MOST_BYTES:
                raise _too_large(name, note, count * dtype.itemsize)
            if parameter.adds and 0 < count * dtype.itemsize <= _MOST_BYTES:
                found[name] = _shaped(np.zeros(count, dtype), note, values)
                notes.append(f"`{name}` starts from zeros: {note.text}")
                continue
            if dtype.kind in "iu" and (by := filled.get(name)) and count * 8 <= _MOST_BYTES:
                drawn = as_filled(parse_expression(by.extent), dtype, count, len(found))
                if drawn is not None:
                    found[name] = _shaped(drawn, note, values)
                    notes.append(f"{by.text}; {note.text}")
                continue
            if _holds_whole(dtype) and (members := _members(name, parameter, dtype, filled)):
                drawn = _of_members(members, parameter, dtype, count, len(found))
                if drawn is not None:
                    found[name] = _shaped(drawn, note, values)
                    told = ", ".join(dict.fromkeys(by.text for by in members.values()))
                    notes.append(f"{told}; {note.text}")
                continue
            if _holds_whole(dtype) and not _is_no_index(program, task, name):
                continue
            drawn = _drawn(dtype, count, len(found))
            if drawn is not None:
                found[name] = _shaped(drawn, note, values)
                notes.append(_told(name, drawn, note))
    for variable in device_variables(unit):
        note = allocated.get(variable.bare_name)
        if note is None or variable.initialised or variable.bare_name in seen:
            continue
        plain = variable.dtype in ("<f2", "<f4", "<f8")
        whole = variable.dtype is not None and variable.dtype[1] in "iu"
        if variable.space == "constant" and (
            plain or (whole and _is_no_index(program, task, variable.bare_name, variable=True))
        ):
            assert variable.dtype is not None
            many = _count(note, values) * variable.lanes
            drawn = _drawn(np.dtype(variable.dtype), many, len(found))
            if drawn is not None:
                found[variable.bare_name] = drawn
                notes.append(_told(variable.bare_name, drawn, note))
    return found, notes


def _members(
    name: str, parameter: Parameter, dtype: DType, filled: Mapping[str, Note]
) -> dict[str, Note]:
    """What the host fills each whole number of an element with; empty where one is not known."""
    fields: Mapping[str, Any] = dtype.fields or {}
    wanted = [own for own, (kind, *_) in fields.items() if _holds_whole(kind)]
    wanted = wanted if fields else [*"xyzw"[: parameter.lanes]] if parameter.lanes > 1 else []
    found = {own: filled[f"{name}.{own}"] for own in wanted if f"{name}.{own}" in filled}
    return found if len(found) == len(wanted) else {}


def _of_members(
    members: Mapping[str, Note], parameter: Parameter, dtype: DType, count: int, seed: int
) -> Array | None:
    """Elements with their whole numbers as the host fills them; None where it cannot be."""
    array = _drawn(dtype, count, seed)
    if array is None or not members:
        return None
    for at, (own, by) in enumerate(members.items()):
        whole: Any = array
        part: Array = whole[own if dtype.names else slice(at, None, parameter.lanes)]
        drawn = as_filled(parse_expression(by.extent), part.dtype, part.size, seed + at)
        if drawn is None:
            return None
        part[...] = drawn
    return array


def _too_large(name: str, note: Note, size: int) -> UsageError:
    return UsageError(
        f"{note.text}: {size / 2**30:.3g} GiB, and no array of more than "
        f"{_MOST_BYTES // 2**20} MiB is made up",
        fix=f"make the sizes in the host's code smaller, or define `{name}`",
    )


def sized_by_numbers(task: Task, values: Mapping[str, Any], read: Sequence[Note]) -> frozenset[str]:
    """The arrays that are drawn so where the numbers of the host's code are given."""
    given = _of_other_sizes(_allocated(read), values)
    if given or task.reference is not None or callable(task.inputs):
        return frozenset()
    extents = {name: parse_expression(note.extent) for name, note in _allocated(read).items()}
    return frozenset(name for name, extent in extents.items() if not extent.arrays)


def _element(unit: Unit, parameter: Parameter) -> DType | None:
    """The dtype of an element, of one lane of a vector; None where NumPy has none."""
    if parameter.dtype is None:
        return laid_out(unit, parameter.ctype)
    return np.dtype(parameter.dtype) if parameter.dtype[0] in "<|" else None


def _holds_whole(dtype: DType) -> bool:
    return any(number.dtype.kind in "iu" for number in numbers(dtype))


def _drawn(dtype: DType, count: int, seed: int) -> Array | None:
    """As many elements, others for each ``seed``; None where they are of no kind or too many."""
    if not 0 < count * dtype.itemsize <= _MOST_BYTES:
        return None
    return _filled(np.zeros(count, dtype), np.random.default_rng(seed))


def _filled(array: Array, rng: np.random.Generator) -> Array | None:
    if array.dtype.names is not None:
        fields: Any = array
        for name in array.dtype.names:
            part = _filled(fields[name], rng)
            if part is None:
                return None
            fields[name] = part
        return array
    if array.dtype.kind == "f":
        return rng.random(array.shape, np.float32).astype(array.dtype)
    whole = array.dtype.kind in "iu"
    return rng.integers(0, 100, array.shape).astype(array.dtype) if whole else None


def _shaped(array: Array, note: Note, values: Mapping[str, Any]) -> Array:
    """An array with the axes that its size names: of ``rows * cols`` elements, these two.

    What its axes are as long as can then be tried at other sizes.
    """
    parts = [
        replace(note, extent=str(Expression(tree, "")), value=None)
        for tree in _factors(parse_expression(note.extent).tree)
    ]
    shape = note.shape or tuple(_count(part, values) for part in parts)
    return array.reshape(shape) if math.prod(shape) == array.size else array


def _factors(tree: Node) -> Iterator[Node]:
    if isinstance(tree, Binary) and tree.op == "*":
        yield from _factors(tree.left)
        yield from _factors(tree.right)
    else:
        yield tree


def _told(name: str, drawn: Array, note: Note) -> str:
    top = 99 if _holds_whole(drawn.dtype) else 1
    return f"`{name}` is {drawn.size} random {title(drawn.dtype)} from 0 to {top}: {note.text}"


def _is_no_index(program: Program, task: Task, name: str, *, variable: bool = False) -> bool:
    """Whether no launch that takes a buffer computes a place from what it holds.

    A ``variable`` is taken by every launch, under its own name.
    """
    unit = lift_program(program, task.defines)
    functions = {function.name: function for function in unit.kernels}
    for launch, kernel in launched(program, task.defines):
        taken = [p.name for p, passed in pairs(launch, kernel) if p.pointer and passed.text == name]
        for own in [name] if variable else taken:
            function = functions.get(kernel.name)
            if function is None:
                return False
            if not is_no_index(unit, function, kernel.template_arguments, own):
                return False
    return True


def _allocated(read: Sequence[Note]) -> dict[str, Note]:
    return {note.name: note for note in read if note.kind == "allocated"}


def _of_other_sizes(allocated: Mapping[str, Note], values: Mapping[str, Any]) -> bool:
    """Whether an array that is given is not one of those that the host allocates."""
    given = {name: value.size for name, value in values.items() if isinstance(value, np.ndarray)}
    return any(
        name not in allocated or size != _count(allocated[name], values)
        for name, size in given.items()
    )


def _count(note: Note, values: Mapping[str, Any]) -> int:
    integers = whole_numbers(values)
    extent = parse_expression(note.extent)
    if extent.names <= integers.keys() and not extent.arrays:
        return extent.evaluate(integers)
    return int(note.value or 0)


def _extent(program: Program, found: binding.Interface, name: str) -> Expression | None:
    """The largest that the launches storing to a buffer say; None where one of them is unclear."""
    unit = lift_program(program, found.defines)
    functions = {function.name: function for function in unit.kernels}
    texts: dict[str, None] = {}
    for launch, kernel in launched(program, found.defines):
        function = functions.get(kernel.name)
        for parameter, passed in pairs(launch, kernel):
            if not parameter.pointer or passed.text != name or not parameter.writes:
                continue
            if function is None:
                return None
            one = stored_extent(unit, function, kernel.template_arguments, launch, parameter.name)
            if one is None:
                return None
            texts[_as_passed(one, launch, kernel)] = None
    if not texts:
        return None
    whole, *others = texts
    for other in others:
        whole = f"max({whole}, {other})"
    return parse_expression(whole)


def _as_passed(extent: Expression, launch: LaunchDirective, kernel: Kernel) -> str:
    """An extent in the names of the task, in the place of those of the parameters."""
    own = {p.name: str(e) for p, e in pairs(launch, kernel) if not p.pointer}
    return re.sub(r"[A-Za-z_]\w*", lambda m: _closed(own.get(m[0], m[0])), str(extent))


def _closed(text: str) -> str:
    return text if re.fullmatch(r"\w+", text) else f"({text})"
