"""The specifications of outputs that nothing else gives a shape: as many elements as are stored."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from optiml_magic import binding
from optiml_magic.binding.interface import launched, pairs
from optiml_magic.kernels.stored_extents import stored_extent
from optiml_magic.kernels.unit import lift_program
from optiml_magic.model.dtypes import title
from optiml_magic.source.expressions import parse_expression

if TYPE_CHECKING:
    from optiml_magic.kernels.signature import Kernel
    from optiml_magic.model.task import Task
    from optiml_magic.source.directives import LaunchDirective
    from optiml_magic.source.expressions import Expression
    from optiml_magic.source.program import Program


def with_stored_shapes(
    task: Task, program: Program, found: binding.Interface, values: Mapping[str, Any]
) -> tuple[Task, list[str]]:
    """The task with the shapes that stores tell, and a note for each; others stay unknown."""
    starts = {d.buffer for d in program.inits if isinstance(d.value, str)}
    if task.reference is not None:
        return task, []
    specs, notes = dict[str, str](), list[str]()
    for buffer in found.named("output"):
        given = isinstance(values.get(buffer.name), np.ndarray) or buffer.name in starts
        if given or task.outputs.get(buffer.name):
            continue
        extent = _extent(program, found, buffer.name)
        if extent is None or not extent.names <= values.keys() | found.constants.keys():
            continue
        lanes = f"({extent}) * {buffer.lanes}" if buffer.lanes > 1 else str(extent)
        dtype = "struct" if buffer.dtype.names else title(buffer.dtype)
        specs[buffer.name] = f"{dtype}[{parse_expression(lanes)}]"
        notes.append(
            f"`{buffer.name}` has {parse_expression(lanes)} elements, by its stores; "
            f"another shape: --out {buffer.name}:{dtype}[...]"
        )
    return (replace(task, outputs={**task.outputs, **specs}), notes) if specs else (task, [])


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
