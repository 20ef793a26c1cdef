"""Functions of one row or one number, done for all rows or numbers at once.

The function is traced on one of them, and the graph that comes out gets more axes in front.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from optiml_magic.synthesis.array import Trace, Traced
from optiml_magic.synthesis.graph import (
    Best,
    Contract,
    Index,
    Input,
    Map,
    Node,
    Place,
    Reduce,
    Scan,
    Scatter,
    Sort,
    identity,
    indexed,
    ordered,
    parts,
)  # fmt: skip
from optiml_magic.synthesis.maps import cast, fitted, operand, together
from optiml_magic.synthesis.reductions import axes, without
from optiml_magic.synthesis.sizes import Extents, axis, substituted
from optiml_magic.synthesis.table import function


def lifted(result: Node, holes: Mapping[Node, Node], front: Extents) -> Node:
    """The result for each index of ``front``, where the holes are what stands for them there.

    What is put into a hole has the axes of ``front`` before its own.
    """
    made = dict(holes)
    for node in ordered(iter((result,))):
        if node not in made and any(part in made for part in parts(node)):
            made[node] = _with_axes(node, made, front)
    return _spread(result, made, front)


def _spread(node: Node, made: Mapping[Node, Node], front: Extents) -> Node:
    """What is made of a node, or the same one for each index."""
    if node in made:
        return made[node]
    at = tuple(axis(len(front) + k) for k in range(len(node.shape)))
    return indexed(node, at, (*front, *node.shape))


def _with_axes(node: Node, made: Mapping[Node, Node], front: Extents) -> Node:
    rank, shape = len(front), (*front, *node.shape)

    def whole(part: Node) -> Node:
        return _spread(part, made, front)

    def places(at: Sequence[Place], own: Extents) -> tuple[Place, ...]:
        moved = {f"${k}": axis(rank + k) for k in range(len(own))}
        return tuple(whole(p) if isinstance(p, Node) else substituted(p, moved) for p in at)

    match node:
        case Map():
            return replace(node, shape=shape, arguments=tuple(map(whole, node.arguments)))
        case Index():
            at = places(node.at, node.shape)
            if node.source in made:
                return indexed(made[node.source], (*identity(rank), *at), shape)
            return indexed(node.source, at, shape)
        case Reduce():
            moved = tuple(rank + k for k in node.axes)
            return replace(node, shape=shape, source=whole(node.source), axes=moved)
        case Best() | Scan() | Sort():
            return replace(node, shape=shape, source=whole(node.source), axis=rank + node.axis)
        case Contract():
            first = 1 + max(letter for own in node.letters for letter in own)
            new = tuple(range(first, first + rank))
            letters = tuple(
                (*new, *own) if x in made else own
                for x, own in zip(node.operands, node.letters, strict=True)
            )
            operands = tuple(made.get(x, x) for x in node.operands)
            return replace(
                node, shape=shape, operands=operands, letters=letters, kept=(*new, *node.kept)
            )
        case Scatter():
            at = (*identity(rank), *places(node.at, node.values.shape))
            return replace(
                node, shape=shape, base=whole(node.base), values=whole(node.values), at=at
            )
    raise AssertionError(node)


@function(np.apply_along_axis)
def apply_along_axis(
    trace: Trace, func1d: Callable[..., Any], axis: int, arr: Any, *args: Any, **kwargs: Any
) -> Any:
    value = operand(trace, arr)
    (along,) = axes(axis, value.ndim)
    rows = trace.function(np.moveaxis, (value, along, -1), {})
    front = without(value.extents, (along,))
    hole = Input((value.extents[along],), value.dtype, "")
    result = operand(trace, func1d(Traced(trace, hole), *args, **kwargs)).node
    made = Traced(trace, lifted(result, {hole: rows.node}, front))
    own = tuple(range(len(front), made.ndim))
    return trace.function(np.moveaxis, (made, own, tuple(range(along, along + len(own)))), {})


def vectorized(trace: Trace, pyfunc: Callable[..., Any], otypes: Any = None, **_: Any) -> Any:
    """``np.vectorize``: the function of one number at each index."""

    def called(*values: Any) -> Any:
        given = [operand(trace, x) for x in values]
        front = together(trace, [x.extents for x in given])
        nodes = [fitted(trace, x.node, front) for x in given]
        holes = [Input((), node.dtype, "") for node in nodes]
        result = operand(trace, pyfunc(*(Traced(trace, hole) for hole in holes))).node
        if otypes is not None:
            result = cast(result, otypes[0])
        return Traced(trace, lifted(result, dict(zip(holes, nodes, strict=True)), front))

    return called
