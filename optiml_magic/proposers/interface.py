"""The names and types of a kernel that nobody wrote yet, as a program that computes nothing."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

import numpy as np

from optiml_magic.errors import UsageError
from optiml_magic.model.task import Task
from optiml_magic.problem.inputs import at_border, draw
from optiml_magic.problem.reference import arguments, called
from optiml_magic.synthesis.lowering.spelling import type_of
from optiml_magic.synthesis.refusals import RefusalError


def inputs_of(task: Task) -> str:
    """The inputs with their shapes, and the named sizes, in words."""
    arrays = [
        f"- `{name}`: {value.dtype}, shape {value.shape}"
        if isinstance(value, np.ndarray)
        else f"- `{name}` = {value!r}"
        for name, value in at_border(task).values.items()
    ]
    sizes = [f"- {name} = {value}" for name, value in task.sizes.items()]
    return "\n".join([*sizes, *arrays])


def interface(task: Task, name: str) -> tuple[str, tuple[str, ...]]:
    """A kernel of the task's inputs, of what its reference returns, and of the sizes; its outputs.

    These are ``out``, numbered where there are several, unless the reference names them; sizes
    are those of the task, or of plain arrays one for each axis. Raises UsageError where an input is
    of a type that kernels do not hold here.
    """
    reference = task.reference
    assert reference is not None
    values = arguments(reference, draw(task, 0))
    copies = {n: v.copy() if isinstance(v, np.ndarray) else v for n, v in values.items()}
    outputs = _named(called(reference, copies))
    sizes = dict.fromkeys(task.sizes, "") if callable(task.inputs) else _axes(values)
    try:
        parameters = [_parameter(n, v) for n, v in values.items() if n not in sizes]
        parameters += [f"{type_of(np.asarray(v).dtype)}* {n}" for n, v in outputs.items()]
    except RefusalError as unfit:
        raise UsageError(unfit.reason, fix=unfit.fix) from None
    parameters += [f"int {n}" for n in sizes]
    name = re.sub(r"\W", "_", name, flags=re.ASCII)
    lines = [line for line in sizes.values() if line]
    lines += [f"#pragma optiml launch {name} grid(1) block(1)"]
    lines += [f"__global__ void {name}({', '.join(parameters)}) {{", "}", ""]
    return "\n".join(lines), tuple(outputs)


def _parameter(name: str, value: Any) -> str:
    array = np.asarray(value)
    kind = type_of(array.dtype)
    return f"const {kind}* {name}" if array.ndim else f"{kind} {name}"


def _named(answer: Any) -> Mapping[str, Any]:
    if isinstance(answer, Mapping):
        return answer
    if isinstance(answer, tuple):
        return {f"out{k}": value for k, value in enumerate(answer)}
    return {"out": answer}


def _axes(values: Mapping[str, Any]) -> dict[str, str]:
    return {
        f"{name}_{axis}": f"#pragma optiml size {name}_{axis} = shape({name}, {axis})"
        for name, value in values.items()
        for axis in range(np.ndim(value))
    }
