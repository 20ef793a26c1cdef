"""A task made concrete: the program, its interface, and cases with their answers."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Literal

import numpy as np

from optiml_magic import binding
from optiml_magic.devices.base import Array, Buffer, Case
from optiml_magic.errors import BindingError, OracleError, UsageError
from optiml_magic.kernels.prepared import with_launches
from optiml_magic.model.dtypes import kind, title, widened
from optiml_magic.model.task import Task
from optiml_magic.problem import inputs, reference, shapes
from optiml_magic.problem.libraries import Home
from optiml_magic.problem.tolerance import terms, tolerance
from optiml_magic.source.expressions import parse_expression
from optiml_magic.source.program import Program

_OUTPUT_SPEC = re.compile(r"\s*(?P<dtype>[a-zA-Z]\w*)\s*(?:\[(?P<shape>.*)\])?\s*")


@dataclass(frozen=True)
class Instance:
    """One set of inputs: every value by name, the shapes of the buffers, the case.

    ``condition`` says what is particular about it: ``seed 1``, ``n = 31``, ``inputs x 3``.
    One that is not ``verified`` is there to be measured: nothing is compared on it.
    """

    seed: int
    condition: str
    values: Mapping[str, Any]
    shapes: Mapping[str, tuple[int, ...]]
    case: Case
    verified: bool = True


@dataclass(frozen=True)
class Problem:
    """What an evaluator needs to know of a task. ``notes`` are told to the user with the result.

    The first instance is the user's own, and the one that is measured. ``dropped`` has the notes on
    host functions that were taken out of the text, by their names.
    """

    task: Task
    name: str
    program: Program
    launch: Literal["given", "inferred"]
    interface: binding.Interface
    instances: tuple[Instance, ...]
    oracle: str
    notes: tuple[str, ...]
    homes: Mapping[str, Home] = field(default_factory=dict)
    dropped: Mapping[str, str] = field(default_factory=dict)

    @property
    def first(self) -> Instance:
        """The first set of inputs that candidates are verified on."""
        return next(instance for instance in self.instances if instance.verified)

    def instance(self, values: Mapping[str, Any], condition: str, key: str) -> Instance:
        """The case for other values, and what the reference wants there; raises what it raises."""
        binding.check_values(self.interface, values)
        made, _ = _instance(self.task, self.homes, self.program, self.interface, values, 0)
        return replace(made, condition=condition, case=replace(made.case, key=key))


def prepare(task: Task, *, seeds: int) -> Problem:
    """Everything about a task that needs no compiler and no device.

    Raises a UsageError where the kernel, a directive, an input or the reference does not fit.
    """
    prepared = with_launches(task.text, task.constants)
    program = _with_arguments(prepared.program, task)
    for tune in program.tunes:
        if tune.name in task.defines:
            raise UsageError(
                f"`{tune.name}` is tuned, and defined from outside as well",
                fix=f"take -D {tune.name} away; the tune directive gives the value",
                line=tune.line,
            )
    task, homes = inputs.at_border(task)
    values = with_sizes(program, inputs.draw(task, 0))
    found = binding.interface(program, task, values)
    instances, wide = [], True
    smaller = _smaller(task)
    for seed in range(seeds + 1 if task.verify_sizes else seeds):
        drawn = with_sizes(program, inputs.draw(smaller if seed else task, seed))
        binding.check_values(found, drawn)
        instance, is_wide = _instance(task, homes, program, found, drawn, seed)
        instances.append(instance)
        wide = wide and is_wide
    if task.verify_sizes:
        instances[0] = _unverified(instances[0])
    oracle = "the input kernel itself"
    if task.reference is not None:
        name = getattr(task.reference, "__name__", "the reference")
        oracle = f"{name} in {'float64' if wide else 'the dtypes of the inputs'}"
    _, kernel = binding.launched(program, task.defines)[0]
    notes = (*(note.text for note in prepared.notes), *_checked_sizes(task))
    dropped = {n.name: n.text for n in reversed(prepared.notes) if n.kind == "dropped_function"}
    return Problem(
        task,
        task.name or kernel.name,
        program,
        prepared.launch,
        found,
        tuple(instances),
        oracle,
        notes,
        homes,
        dropped,
    )


def _smaller(task: Task) -> Task:
    """The task at the sizes where it is verified."""
    if not task.verify_sizes:
        return task
    unknown = sorted(set(task.verify_sizes) - set(task.sizes))
    if not callable(task.inputs) or unknown:
        what = (
            f"`{unknown[0]}` is not a size of the task"
            if unknown
            else "the inputs are given arrays"
        )
        raise UsageError(
            f"other sizes cannot be drawn: {what}",
            fix="make inputs a function inputs(rng, **sizes), and name its sizes in `sizes`",
        )
    return replace(task, sizes={**task.sizes, **task.verify_sizes})


def _unverified(instance: Instance) -> Instance:
    buffers = tuple(replace(b, expected=None, tolerance=None) for b in instance.case.buffers)
    return replace(instance, case=replace(instance.case, buffers=buffers), verified=False)


def _checked_sizes(task: Task) -> tuple[str, ...]:
    if not task.verify_sizes:
        return ()
    sizes = ", ".join(f"{name} = {size}" for name, size in task.verify_sizes.items())
    return (f"verified at {sizes} and below; at the sizes of the task it was only measured",)


def _with_arguments(program: Program, task: Task) -> Program:
    """``task.args`` written into the one launch that lacks them."""
    if not task.args:
        return program
    (launch, *others) = program.launches
    if others or launch.args is not None:
        raise UsageError(
            "positional arguments need a program with one launch and no args(...) of its own",
            fix="write args(...) into the launch directives",
        )
    text = f"{launch} args({', '.join(task.args)})"
    return program.without(launch).with_directive(text)


def with_sizes(program: Program, values: Mapping[str, Any]) -> dict[str, Any]:
    """The values, with scalars that a ``size`` directive derives from an array's shape."""
    shapes = {n: v.shape for n, v in values.items() if isinstance(v, np.ndarray)}
    integers = {n: int(v) for n, v in values.items() if isinstance(v, (int, np.integer))}
    derived = {
        directive.name: directive.expression.evaluate(integers, shapes)
        for directive in program.sizes
        if directive.name not in values
    }
    return {**values, **derived}


def _instance(
    task: Task,
    homes: Mapping[str, Home],
    program: Program,
    found: binding.Interface,
    values: Mapping[str, Any],
    seed: int,
) -> tuple[Instance, bool]:
    written = [buffer.name for buffer in found.named("output", "inout")]
    wanted: dict[str, Array] = {}
    wide = True
    if task.reference is not None:
        asked = {
            n: v for n, v in values.items() if n not in {b.name for b in found.named("output")}
        }
        answer = reference.ask(task.reference, asked, written, homes)
        wanted, wide = answer.outputs, answer.wide
    starts = {d.buffer: d.value for d in program.inits if isinstance(d.value, str)}
    buffers = tuple(
        _buffer(task, buffer, values, wanted.get(buffer.name), starts.get(buffer.name), wide=wide)
        for buffer in found.buffers
    )
    extents = {buffer.name: buffer.array.shape for buffer in buffers}
    case = Case(f"seed-{seed}", buffers)
    return Instance(seed, f"seed {seed}", values, extents, case), wide


def _buffer(
    task: Task,
    bound: binding.BoundBuffer,
    values: Mapping[str, Any],
    wanted: Array | None,
    start: str | None,
    *,
    wide: bool,
) -> Buffer:
    if bound.role == "input":
        return Buffer(bound.name, "input", binding.content(bound, values))
    if bound.role == "inout":
        array = values[bound.name]
    elif start is not None:
        array = _start(bound, start, values)
    else:
        array = _empty_output(task, bound, values, wanted)
    if not array.size:
        raise BindingError(
            f"the output `{bound.name}` has the shape {array.shape}: there is nothing to check",
            fix="give it at least one element",
            line=bound.line,
        )
    if wanted is None:
        return Buffer(bound.name, bound.role, array)
    if wanted.shape != array.shape:
        raise BindingError(
            f"the reference gives `{bound.name}` the shape {wanted.shape}, not {array.shape}",
            fix=shapes.advice(wanted.shape, array.shape),
            line=bound.line,
        )
    arrays = [value for value in values.values() if isinstance(value, np.ndarray)]
    limits = tolerance(
        wanted,
        array.dtype,
        rtol=task.rtol,
        atol=task.atol,
        narrow_oracle=not wide,
        terms=terms(arrays, array),
    )
    role = bound.role if start is None else "inout"
    return Buffer(bound.name, role, array, _fitting(wanted, array.dtype), limits)


def _start(bound: binding.BoundBuffer, start: str, values: Mapping[str, Any]) -> Array:
    if start not in values:
        raise BindingError(
            f"no array named `{start}` to start `{bound.name}` from", fix="define it"
        )
    binding.check_array(replace(bound, name=start), values[start])
    array: Array = values[start]
    return array


def _empty_output(
    task: Task, bound: binding.BoundBuffer, values: Mapping[str, Any], wanted: Array | None
) -> Array:
    dtype = bound.dtype
    if task.outputs.get(bound.name):
        return np.empty(_shape(bound, task.outputs[bound.name], values), dtype)
    given = values.get(bound.name)
    if isinstance(given, np.ndarray):
        binding.check_array(bound, given)
        return np.empty(given.shape, dtype)
    if wanted is not None:
        return np.empty(wanted.shape, dtype)
    declared = "" if dtype.names else f", or --out {bound.name}:{title(dtype)}[n]"
    raise BindingError(
        f"the shape of the output `{bound.name}` is not known",
        fix=f"give a reference, an array of that name{declared}",
        line=bound.line,
    )


def _shape(bound: binding.BoundBuffer, spec: str, values: Mapping[str, Any]) -> tuple[int, ...]:
    match = _OUTPUT_SPEC.fullmatch(spec)
    fix = f"write it like {title(bound.dtype)}[rows, cols]"
    if match is None:
        raise UsageError(f"`{spec}` is not an output specification", fix=fix)
    try:
        given = np.dtype(match["dtype"])
    except TypeError:
        raise UsageError(f"`{match['dtype']}` in `{spec}` is not a dtype", fix=fix) from None
    if given != bound.dtype:
        raise BindingError(
            f"`{bound.name}` is declared {given.name}; the kernel's pointer is to "
            f"{title(bound.dtype)}",
            fix=fix,
            line=bound.line,
        )
    integers = {n: int(v) for n, v in values.items() if isinstance(v, (int, np.integer))}
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
    return shape


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
    exact: Array = wanted.astype(widened(dtype))
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
