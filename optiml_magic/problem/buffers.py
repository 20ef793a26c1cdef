"""The buffers of one set of inputs: their first content, their shapes, what they should hold."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from optiml_magic import binding
from optiml_magic.devices.base import Array, Buffer
from optiml_magic.errors import BindingError, OracleError, UsageError
from optiml_magic.model.dtypes import kind, row_of, title, widened
from optiml_magic.model.task import Task
from optiml_magic.problem import shapes
from optiml_magic.problem.inputs import whole_numbers
from optiml_magic.problem.tolerance import terms, tolerance
from optiml_magic.source.expressions import parse_expression

_OUTPUT_SPEC = re.compile(r"\s*(?P<dtype>\?|[a-zA-Z]\w*)\s*(?:\[(?P<shape>.*)\])?\s*")


@dataclass(frozen=True)
class Wanted:
    """What an output should hold, None where nothing is compared; then its ``shape`` may be known.

    ``wide`` is whether it was computed in float64, ``scale`` its median where that is known.
    """

    array: Array | None = None
    wide: bool = True
    scale: float | None = None
    shape: tuple[int, ...] | None = None


def buffer_of(
    task: Task,
    bound: binding.BoundBuffer,
    values: Mapping[str, Any],
    wanted: Wanted,
    start: str | None,
) -> Buffer:
    """The buffer for a place of the interface; ``start`` names the array that an output starts as.

    Raises a UsageError where the values or what is wanted do not fit.
    """
    if bound.role == "input":
        return Buffer(bound.name, "input", binding.content(bound, values))
    exact = wanted.array
    if bound.role == "inout":
        array = values[bound.name]
    elif start is not None:
        array = _start(bound, start, values)
    else:
        shape = wanted.shape if exact is None else exact.shape
        row = row_of(bound.dtype) if exact is not None and exact.dtype.names is None else None
        rows = row is not None and shape is not None and shape[-1:] == (row[1],)
        dtype = row[0] if row is not None and rows else bound.dtype
        array = _empty_output(task, bound, values, shape, dtype)
    if not array.size:
        raise BindingError(
            f"the output `{bound.name}` has the shape {array.shape}: there is nothing to check",
            fix="give it at least one element",
            line=bound.line,
        )
    role = bound.role if start is None else "inout"
    if exact is None:
        return Buffer(bound.name, role, array)
    if exact.shape != array.shape:
        raise OracleError(
            f"the reference returns `{bound.name}` of shape {exact.shape}, and the kernel's has "
            f"{array.shape}",
            fix=shapes.advice(exact.shape, array.shape),
        )
    arrays = [value for value in values.values() if isinstance(value, np.ndarray)]
    limits = tolerance(
        exact,
        array.dtype,
        rtol=task.rtol,
        atol=task.atol,
        narrow_oracle=not wanted.wide,
        terms=terms(arrays, array),
        scale=wanted.scale,
    )
    return Buffer(bound.name, role, array, _fitting(exact, array.dtype), limits)


def _start(bound: binding.BoundBuffer, start: str, values: Mapping[str, Any]) -> Array:
    if start not in values:
        raise BindingError(
            f"no array named `{start}` to start `{bound.name}` from", fix="define it"
        )
    binding.check_array(replace(bound, name=start), values[start])
    array: Array = values[start]
    return array


def _empty_output(
    task: Task,
    bound: binding.BoundBuffer,
    values: Mapping[str, Any],
    shape: tuple[int, ...] | None,
    dtype: np.dtype[Any],
) -> Array:
    if task.outputs.get(bound.name):
        shape, dtype = _declared(bound, task.outputs[bound.name], values)
        return np.empty(shape, dtype)
    given = values.get(bound.name)
    if isinstance(given, np.ndarray):
        binding.check_array(bound, given)
        return np.empty(given.shape, given.dtype)
    if shape is not None:
        return np.empty(shape, dtype)
    declared = "" if dtype.names else f", or --out {bound.name}:{title(dtype)}[n]"
    raise BindingError(
        f"the shape of the output `{bound.name}` is not known",
        fix=f"give a reference, an array of that name{declared}",
        line=bound.line,
    )


def _declared(
    bound: binding.BoundBuffer, spec: str, values: Mapping[str, Any]
) -> tuple[tuple[int, ...], np.dtype[Any]]:
    match = _OUTPUT_SPEC.fullmatch(spec)
    struct = bound.dtype.names is not None
    fix = f"write it like {'struct' if struct else title(bound.dtype)}[rows, cols]"
    if match is None:
        raise UsageError(f"`{spec}` is not an output specification", fix=fix)
    try:
        given = bound.dtype if struct and match["dtype"] == "struct" else np.dtype(match["dtype"])
    except TypeError:
        raise UsageError(f"`{match['dtype']}` in `{spec}` is not a dtype", fix=fix) from None
    row = row_of(bound.dtype)
    rows = row is not None and given == row[0]
    if given != bound.dtype and not rows:
        raise BindingError(
            f"`{bound.name}` is declared {given.name}; the kernel's pointer is to "
            f"{title(bound.dtype)}",
            fix=fix,
            line=bound.line,
        )
    integers = whole_numbers(values)
    known = {n: v.shape for n, v in values.items() if isinstance(v, np.ndarray)}
    # The grammar has no lists, so the axes ride through it as the arguments of a call would.
    axes = [parse_expression(part) for part in _split_axes(match["shape"] or "")]
    shape = tuple(axis.evaluate(integers, known) for axis in axes)
    for axis, extent in zip(axes, shape, strict=True):
        if extent < 1:
            raise BindingError(
                f"an axis of `{bound.name}` is {extent}{binding.told(axis, integers)}",
                fix="give it at least one element",
                line=bound.line,
            )
    if row is not None and rows and shape[-1:] != (row[1],):
        raise BindingError(
            f"`{bound.name}` is declared {spec.strip()}; the kernel's structs have {row[1]} of "
            f"{title(given)} each",
            fix=f"write it like {title(given)}[n, {row[1]}]",
            line=bound.line,
        )
    return shape, given


def _split_axes(text: str) -> list[str]:
    parts, depth, begin = [], 0, 0
    for at, char in enumerate(text):
        depth += (char in "([") - (char in ")]")
        if char == "," and depth == 0:
            parts.append(text[begin:at])
            begin = at + 1
    return [part for part in (*parts, text[begin:]) if part.strip()]


def _fitting(wanted: Array, dtype: np.dtype[Any]) -> Array:
    """The oracle's answer in a precision that the comparison can use."""
    if dtype.names is not None:
        return _fitting_structs(wanted, dtype)
    name = title(dtype)
    if wanted.dtype.names is not None:
        raise OracleError(
            f"the reference gives structs, the output holds {name}", fix="return numbers"
        )
    if kind(dtype) != "c" and wanted.dtype.kind == "c":
        raise OracleError(f"the reference is complex, the output {name}", fix="return reals")
    exact: Array = wanted.astype(widened(dtype), copy=False)
    if kind(dtype) not in "fc" and not np.array_equal(exact, wanted):
        raise OracleError(
            f"the reference gives {title(wanted.dtype)} values that a {name} output cannot hold",
            fix=f"make it return {name}",
        )
    return exact


def _fitting_structs(wanted: Any, dtype: np.dtype[Any]) -> Array:
    if wanted.dtype.names != dtype.names:
        raise OracleError(
            f"the reference gives {title(wanted.dtype)}, the output holds {title(dtype)}",
            fix="return a structured array with these fields, np.zeros(n, p.dtype) for one",
        )
    exact = np.zeros(wanted.shape, widened(dtype))
    for name in dtype.names or ():
        exact[name] = _fitting(wanted[name], dtype[name].base)
    return exact
