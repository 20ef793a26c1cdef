"""A graph as a kernel program: the text that is checked, measured and searched from."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Any

import numpy as np

from optiml_magic.kernels.polynomial import Polynomial
from optiml_magic.kernels.printing import Printer
from optiml_magic.kernels.unit import lift
from optiml_magic.model.dtypes import BFLOAT16
from optiml_magic.source.comments import commented
from optiml_magic.synthesis.graph import (
    Best,
    Constant,
    Contract,
    DType,
    Graph,
    Input,
    Map,
    Node,
    Reduce,
    Scan,
    Sort,
)
from optiml_magic.synthesis.lowering import indices
from optiml_magic.synthesis.lowering import spelling as c
from optiml_magic.synthesis.lowering.choices import Choices
from optiml_magic.synthesis.lowering.functions import FUNCTIONS
from optiml_magic.synthesis.lowering.kernels import Array, Kernel, grouped, kernel_of
from optiml_magic.synthesis.lowering.parts import BestParts, Parts, Runs
from optiml_magic.synthesis.lowering.plan import Stored, parted, planned
from optiml_magic.synthesis.lowering.simplify import rebuilt, simplified
from optiml_magic.synthesis.lowering.sorting import Merged, Ranked, assumed
from optiml_magic.synthesis.lowering.threads import plain
from optiml_magic.synthesis.refusals import RefusalError, Refused
from optiml_magic.synthesis.sizes import Assumption, constant

_MOST_ELEMENTS = 2**31 - 1  # indices are of type int
_STEMS: Mapping[type[Node], str] = MappingProxyType({
    Reduce: "totals", Parts: "parts", Contract: "products", Best: "places", Scan: "running",
    Sort: "sorted", BestParts: "places", Ranked: "order", Merged: "order", Runs: "running",
})  # fmt: skip
#: Functions and types of CUDA's headers, as far as a reference may be called so.
_FUNCTIONS = frozenset(dir(math)) | {"half", "half2", "norm", "rsqrt", "clock", "signbit", "round"}
_INCLUDES = MappingProxyType({"__half": "cuda_fp16.h", "__nv_bfloat16": "cuda_bf16.h"})


@dataclass(frozen=True)
class Lowered:
    """A program, and the names of what it writes in the order that the reference returns it."""

    text: str
    outputs: tuple[str, ...]


def lowered(
    graph: Graph,
    name: str,
    *,
    derived: Mapping[str, tuple[str, int]] = MappingProxyType({}),
    words: str = "",
) -> Lowered | Refused:
    """The program of a graph.

    Args:
        graph: of the reference; decisions are made for the sizes that it was traced at.
        name: of the kernel, or where there are several what their names begin with.
        derived: sizes that follow from an array, by the array's name and axis.
        words: what the kernel is for, its comment.
    """
    try:
        return _lowered(graph, name, derived, words)
    except RefusalError as error:
        return Refused(error.reason, error.line, error.fix)


def _lowered(
    graph: Graph, name: str, derived: Mapping[str, tuple[str, int]], words: str
) -> Lowered:
    outputs = _outputs(graph)
    for given in graph.inputs:
        if given.name in graph.sizes:
            raise RefusalError(f"`{given.name}` is a size and an array", "call one otherwise")
    names = {*(x.name for x in graph.inputs), *graph.sizes, *outputs}
    for one in names:
        if not re.fullmatch(r"[A-Za-z_]\w*", one, re.ASCII) or c.reserved(one):
            raise RefusalError(
                f"`{one}` is not a name in CUDA C++", f"call it `{one}_` or otherwise"
            )
    base = re.sub(r"\W", "_", name, flags=re.ASCII).strip("_") or "kernel"
    if base in names or c.reserved(base) or base in _FUNCTIONS:
        base += "_kernel"
    arrays: dict[Node, str] = {x: x.name for x in graph.inputs if x.shape}
    scalars = {x.name: _scalar(x, graph) for x in graph.inputs if not x.shape}
    taken = frozenset({*names, base})
    choices = Choices(graph.sizes, arrays, scalars, taken)
    simple = simplified([node for _, node in graph.outputs])
    nodes = simplified(rebuilt(simple, lambda node: parted(node, choices)))
    stored = planned(nodes, choices)
    buffers, lines = _buffers(nodes, stored, taken)
    known = [Array(x.name, x) for x in graph.inputs if x.shape]
    known += [Array(n, node) for node, n in buffers.items()]
    known += [Array(n, node) for node, n in zip(nodes, outputs, strict=True)]
    by_name = {array.name: array for array in known}
    for array in known:
        _demand_small(array, graph.sizes)
    written = {**buffers, **dict(zip(reversed(nodes), reversed(outputs), strict=True))}
    copies = [(node, n) for node, n in zip(nodes, outputs, strict=True) if written[node] != n]
    groups = grouped(stored, written, copies)
    taken |= {*by_name}
    kernels: list[Kernel] = []
    tables: dict[Constant, str] = {}
    for k, group in enumerate(groups, start=1):
        own = base if len(groups) == 1 else f"{base}_{k}"
        there = {**arrays, **{node: written[node] for node in group.reads}}
        used = taken | {own, *tables.values()}
        chosen = replace(choices, arrays=there, taken=used, tables=tables)
        kernels.append(kernel_of(own, group, chosen, by_name))
        tables |= kernels[-1].tables
    lines += _zeros(stored, written)
    conditions = _requirements([*graph.assumptions, *assumed(nodes)])
    sizes = [f"#pragma optiml size {n} = shape({a}, {k})" for n, (a, k) in derived.items()]
    head = [*sizes, *conditions, *lines, *(kernel.directive for kernel in kernels)]
    return Lowered(_text(words, head, kernels, tables), tuple(outputs))


def _outputs(graph: Graph) -> list[str]:
    """Their names: those of a dict, else ``out``, numbered where there are several."""
    inputs = {x.name for x in graph.inputs}
    found: list[str] = []
    for key, _ in graph.outputs:
        name = "out" if not key else f"out{key}" if key.isdigit() else key
        while name in inputs or name in graph.sizes:
            if name == key:
                raise RefusalError(f"`{key}` is an input and an output", "name it otherwise")
            name += "_"
        found.append(name)
    return found


def _scalar(node: Input, graph: Graph) -> str:
    """The type of a number: that which all who ask for it convert it to, where that is one."""
    asking = [x for x in graph.nodes if node in _arguments(x)]
    wanted = {x.dtype for x in asking}
    casts = all(isinstance(x, Map) and x.operation == "cast" for x in asking)
    dtype: DType = wanted.pop() if casts and len(wanted) == 1 else node.dtype
    return c.type_of(dtype if _holds(dtype, node.dtype) else node.dtype)


def _holds(dtype: DType, given: DType) -> bool:
    return dtype.kind == given.kind and dtype != BFLOAT16


def _arguments(node: Node) -> tuple[Node, ...]:
    from optiml_magic.synthesis.graph import parts

    return parts(node)


def _buffers(
    nodes: Sequence[Node], stored: Sequence[Stored], taken: frozenset[str]
) -> tuple[dict[Node, str], list[str]]:
    """What lies in scratch, by name, and the directives that say so."""
    used, found, lines = set(taken), dict[Node, str](), []
    for one in stored:
        if one.node in nodes:
            continue
        stem = _STEMS.get(type(one.node), "stored")
        name, number = stem, 1
        while name in used:
            number += 1
            name = f"{stem}{number}"
        used.add(name)
        found[one.node] = name
        count = Printer(lift("")).expression(plain(indices.product(one.node.shape)))
        lines.append(f"#pragma optiml scratch {name} {_spelled(one.node.dtype)}[{count}]")
    return found, lines


def _spelled(dtype: DType) -> str:
    if dtype == BFLOAT16:
        return "bfloat16"
    return dtype.str.lstrip("<|=")


def _zeros(stored: Sequence[Stored], written: Mapping[Node, str]) -> list[str]:
    cleared = [one.node for one in stored if any(write.cleared for write in one.writes)]
    return [f"#pragma optiml zero({written[node]})" for node in cleared]


def _demand_small(array: Array, sizes: Mapping[str, int]) -> None:
    from optiml_magic.synthesis.sizes import valued

    count = int(np.prod([int(valued(e, sizes)) for e in array.node.shape] or [1], dtype=object))
    if count > _MOST_ELEMENTS:
        raise RefusalError(
            f"`{array.name}` would have {count} elements, and an index 31 bits",
            "give it in pieces of fewer than 2^31 elements",
        )


def _requirements(assumptions: Sequence[Assumption]) -> list[str]:
    """What sizes have to be for this graph to be theirs."""
    printer = Printer(lift(""))
    rooms = {a: _room(a) for a in assumptions}
    asked: list[Assumption] = []
    for one, room in rooms.items():
        others = [constant(0), *(r for a in asked if (r := rooms[a]) is not None)]
        if room is None or not any(indices.not_negative(room - r, {}) for r in others):
            asked = [a for a in asked if not _follows(rooms[a], room)]
            asked.append(one)
    return [
        f"#pragma optiml require {printer.expression(plain(a.left))} {a.relation} "
        f"{printer.expression(plain(a.right))}"
        for a in asked
    ]


def _room(assumption: Assumption) -> Polynomial | None:
    """What an assumption says is not negative; None for one that says something else."""
    apart = assumption.left - assumption.right
    return {
        ">=": apart, ">": apart - constant(1), "<=": -apart, "<": -apart - constant(1),
    }.get(assumption.relation)  # fmt: skip


def _follows(room: Polynomial | None, stronger: Polynomial | None) -> bool:
    return room is not None and stronger is not None and indices.not_negative(room - stronger, {})


def _text(
    words: str, head: list[str], kernels: list[Kernel], tables: Mapping[Constant, str]
) -> str:
    text = "\n\n".join(kernel.text for kernel in kernels)
    includes = [f"#include <{file}>" for kind, file in _INCLUDES.items() if kind in text]
    names = dict.fromkeys(name for kernel in kernels for name in kernel.functions)
    functions = [FUNCTIONS[name] + "\n" for name in names]
    written = [_table(name, node) for node, name in tables.items()]
    return commented(words) + "\n".join([*includes, *head, *functions, *written, text, ""])


def _table(name: str, node: Constant) -> str:
    kind = c.computed(node.dtype)
    printer = Printer(lift(""))
    numbers: Any = node.value.reshape(-1)
    written = ", ".join(printer.expression(c.number(value, kind)) for value in numbers)
    return f"__device__ const {kind} {name}[{numbers.size}] = {{{written}}};\n"
