"""A kernel for a task that has none: its reference, traced and lowered."""

from __future__ import annotations

import inspect
import keyword
import linecache
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from optiml_magic.errors import UsageError
from optiml_magic.kernels.polynomial import Polynomial
from optiml_magic.model.task import Task
from optiml_magic.problem.inputs import at_border, draw
from optiml_magic.problem.reference import arguments
from optiml_magic.synthesis.graph import Graph
from optiml_magic.synthesis.lowering.program import lowered
from optiml_magic.synthesis.refusals import Refused
from optiml_magic.synthesis.shapes import fitted
from optiml_magic.synthesis.sizes import Extents, constant
from optiml_magic.synthesis.tracing import traced

_OTHER = ((5, 7, 11, 13, 17, 19, 23), (12, 8, 20, 16, 28, 24, 36))  # sizes to learn shapes from
_SYMBOLS = ("n", "m", "k", "l", "p", "q", "r", "s", "t", "u", "v", "w")


@dataclass(frozen=True)
class _Given:
    """What a reference is traced on; ``derived`` sizes follow from an array's axis."""

    values: Mapping[str, Any]
    sizes: Mapping[str, int]
    shapes: Mapping[str, Extents]
    derived: Mapping[str, tuple[str, int]]


class NotLoweredError(UsageError):
    """A reference that is beyond what is traced or lowered: only a model could write its kernel."""


@dataclass(frozen=True)
class Made:
    """A task with the kernel that its reference says, and the reference as a graph."""

    task: Task
    graph: Graph


def with_kernel(task: Task, words: str = "") -> Task:
    """The task with the kernel that its reference says; raises as ``made`` does."""
    return made(task, words).task


def made(task: Task, words: str = "") -> Made:
    """The kernel of a task's reference; ``words`` are its comment.

    Raises UsageError where there is no reference, and NotLoweredError, with its line, where it is
    beyond what is traced or lowered.
    """
    reference = task.reference
    if reference is None:
        raise UsageError(
            "there is neither a kernel nor a reference",
            fix="give a reference: a NumPy function of the inputs by name",
        )
    inputs = at_border(task).task
    name = task.name or getattr(reference, "__name__", "").strip("<>") or "kernel"
    given = _sized(inputs, reference) if _has_sizes(inputs) else _measured(inputs, reference)
    graph = _traced(reference, given)
    program = lowered(graph, name, derived=_used(given, graph), words=words)
    if isinstance(program, Refused):
        raise _refusal(reference, program)
    order = dict.fromkeys(program.outputs, "")
    made = replace(task, kernel=program.text, name=name, outputs={**order, **task.outputs})
    return Made(made, graph)


def _has_sizes(task: Task) -> bool:
    return callable(task.inputs) and bool(task.sizes)


def _asked(reference: Callable[..., Any], values: Mapping[str, Any]) -> dict[str, Any]:
    """What the reference is called with, under the names that its kernel has for it."""
    return {_plain(n, values): v for n, v in arguments(reference, values).items()}


def _plain(name: str, values: Mapping[str, Any]) -> str:
    """``in`` of a parameter `in_`, which Python keeps to itself."""
    bare = name.rstrip("_")
    return bare if name not in values and keyword.iskeyword(bare) else name


def _sized(task: Task, reference: Callable[..., Any]) -> _Given:
    """Shapes from inputs made at several sizes."""
    sizes = {n: int(v) for n, v in task.sizes.items() if isinstance(v, (int, np.integer))}
    own = _asked(reference, draw(task, 0))
    samples = [(sizes, own)]
    for numbers in _OTHER:
        other = dict(zip(sizes, numbers, strict=False))
        try:
            values = draw(replace(task, sizes={**task.sizes, **other}), 1)
        except UsageError:  # not sizes of this task
            continue
        samples.append(({**sizes, **other}, _asked(reference, values)))
    shapes = fitted(samples)
    if isinstance(shapes, Refused):
        raise _refusal(reference, shapes)
    return _Given(own, sizes, shapes, {})


def _measured(task: Task, reference: Callable[..., Any]) -> _Given:
    """A size for each axis of plain arrays, until the reference wants two of them equal.

    Whole numbers of Python's may be counted to, or be extents: they are sizes as well.
    """
    values = _asked(reference, draw(task, 0))
    taken = set(values)
    extents = {name: value for name, value in values.items() if type(value) is int}
    shapes: dict[str, Extents] = {}
    derived: dict[str, tuple[str, int]] = {}
    for name, value in values.items():
        if name in extents:
            continue
        axes = []
        for k, extent in enumerate(np.shape(value)):
            if extent == 1:
                axes.append(constant(1))
                continue
            size = next((s for s in _SYMBOLS if s not in taken), f"{name}_{k}")
            taken.add(size)
            extents[size], derived[size] = extent, (name, k)
            axes.append(Polynomial.symbol(size))
        shapes[name] = tuple(axes)
    given = _Given(values, extents, shapes, derived)
    while (merged := _merged(given, reference)) is not None:
        given = merged
    return given


def _merged(given: _Given, reference: Callable[..., Any]) -> _Given | None:
    """With one size in place of two that have to be equal; None where there are none such."""
    graph = _traced(reference, given)
    for assumption in graph.assumptions:
        names = [str(side) for side in (assumption.left, assumption.right)]
        if assumption.relation != "==" or not all(name in given.sizes for name in names):
            continue
        kept, dropped = sorted(names, key=list(given.sizes).index)
        one = Polynomial.symbol(dropped)
        shapes = {
            name: tuple(Polynomial.symbol(kept) if e == one else e for e in shape)
            for name, shape in given.shapes.items()
        }
        sizes = {n: v for n, v in given.sizes.items() if n != dropped}
        derived = {n: v for n, v in given.derived.items() if n != dropped}
        return replace(given, sizes=sizes, shapes=shapes, derived=derived)
    return None


def _traced(reference: Callable[..., Any], given: _Given) -> Graph:
    graph = traced(_called_so(reference, given), given.values, given.sizes, given.shapes)
    if isinstance(graph, Refused):
        raise _refusal(reference, graph)
    return graph


def _called_so(reference: Callable[..., Any], given: _Given) -> Callable[..., Any]:
    """The reference; where a parameter has another name than its input, a function that has it."""
    names = set(inspect.signature(reference).parameters)
    if all(name in names for name in given.values):
        return reference
    raise UsageError(
        "the name of an input is a Python keyword",
        fix="rename it in the inputs and in the reference",
    )


def _used(given: _Given, graph: Graph) -> Mapping[str, tuple[str, int]]:
    return {name: where for name, where in given.derived.items() if name in graph.sizes}


def _refusal(reference: Callable[..., Any], refused: Refused) -> UsageError:
    """As an error with the line of the reference that it is about."""
    reason = refused.reason
    code = getattr(reference, "__code__", None)
    if refused.line and code is not None:
        linecache.checkcache(code.co_filename)
        text = linecache.getline(code.co_filename, refused.line).strip()
        reason = f"{reason}, in line {refused.line} of the reference: {text}"
    return NotLoweredError(f"no kernel from the reference: {reason}", fix=refused.fix)
