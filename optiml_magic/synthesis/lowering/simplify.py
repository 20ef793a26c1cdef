"""Graphs made anew from their inputs up: equal nodes are one, and each computes in what it is for.

What is converted to float64 is computed in it from the start, as an answer that is held against one
in float64 has to be; sums of whole numbers that are converted to fewer bits have these bits alone.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import fields, replace
from typing import Any

import numpy as np

from optiml_magic.model.dtypes import kind
from optiml_magic.synthesis.graph import (
    Constant,
    Contract,
    DType,
    Index,
    Input,
    Map,
    Node,
    Reduce,
    Scan,
    Scatter,
    Sort,
    ordered,
)

_MODULAR = frozenset({"add", "subtract", "multiply"})


def simplified(outputs: Sequence[Node]) -> list[Node]:
    """The outputs with equal nodes as one, and conversions done by what is converted."""
    casts = _Casts()
    return rebuilt(outputs, lambda node: casts.within(casts.anew(node)))


def rebuilt(outputs: Sequence[Node], changed: Callable[[Node], Node]) -> list[Node]:
    """The outputs where each node, once its parts are new, is what ``changed`` makes of it."""
    made: dict[Node, Node] = {}
    for node in ordered(iter(outputs)):
        kept = {f.name: _mapped(getattr(node, f.name), made) for f in fields(node)}
        same = all(value is getattr(node, name) for name, value in kept.items())
        made[node] = changed(node if same else replace(node, **kept))
    return [made[node] for node in outputs]


def _mapped(held: Any, made: dict[Node, Node]) -> Any:
    if isinstance(held, Node):
        return made[held]
    if isinstance(held, tuple) and any(isinstance(x, Node) and made[x] is not x for x in held):
        return tuple(made[x] if isinstance(x, Node) else x for x in held)
    return held


def _key(node: Node) -> Any:
    if isinstance(node, Constant):
        return Constant, node.shape, node.dtype, node.value.tobytes()
    held = (getattr(node, field.name) for field in fields(node) if field.name != "line")
    return type(node), *held


def _is_number(node: Node, dtype: DType) -> bool:
    return isinstance(node, (Constant, Input)) and not node.shape and node.dtype == dtype


def _is_sum(node: Node) -> bool:
    return isinstance(node, (Reduce, Scan, Scatter)) and node.operation in (*_MODULAR, "set")


class _Casts:
    """Conversions put into what is converted; each node that comes out is there once."""

    def __init__(self) -> None:
        self._known: dict[Any, Node] = {}
        self._done: dict[tuple[Node, DType], Node] = {}

    def anew(self, node: Node) -> Node:
        return self._known.setdefault(_key(node), node)

    def within(self, node: Node) -> Node:
        """A conversion done by what is converted, where that gives no less."""
        if not isinstance(node, Map) or node.operation != "cast":
            return node
        (source,) = node.arguments
        if kind(node.dtype) == "f" == kind(source.dtype):
            wide = node.dtype.itemsize == 8 and source.dtype.itemsize == 4
            return self._converted(source, node.dtype) if wide else node
        both = kind(node.dtype) in "iu" and kind(source.dtype) in "iu"
        if both and node.dtype.itemsize < source.dtype.itemsize and _is_sum(source):
            return self._in_dtype(source, node.dtype)
        return node

    def _converted(self, node: Node, dtype: DType) -> Node:
        """A node in another dtype; of float32 computed in float64 from what is given on."""
        found = self._done.get((node, dtype))
        if found is None:
            found = self._done[node, dtype] = self._convert(node, dtype)
        return found

    def _convert(self, node: Node, dtype: DType) -> Node:
        if isinstance(node, Constant):
            return self.anew(Constant(node.shape, dtype, node.value.astype(dtype)))
        rounded = isinstance(node, Map) and node.operation in ("cast", "narrowed")
        if (
            isinstance(node, Map)
            and node.operation == "cast"
            and _is_number(node.arguments[0], dtype)
        ):
            return node.arguments[0]  # of Python's, and so of no type of its own
        if isinstance(node, Map) and rounded and kind(node.arguments[0].dtype) != "f":
            return self.anew(replace(node, dtype=dtype))
        floats = isinstance(node, (Map, Index, Reduce, Scan, Contract, Scatter, Sort))
        if kind(dtype) == "f" and node.dtype == np.float32 and floats and not rounded:
            return self._in_dtype(node, dtype)
        return self.anew(Map(node.shape, dtype, "cast", (node,)))

    def _in_dtype(self, node: Node, dtype: DType) -> Node:
        """The node with all its parts of its own dtype in another one."""
        changes: dict[str, Any] = {"dtype": dtype}
        for field in fields(node):
            held = getattr(node, field.name)
            if field.name == "at":
                continue
            if isinstance(held, Node) and held.dtype == node.dtype:
                changes[field.name] = self._converted(held, dtype)
            elif isinstance(held, tuple) and held and isinstance(held[0], Node):
                changes[field.name] = tuple(
                    self._converted(x, dtype) if x.dtype == node.dtype else x for x in held
                )
        return self.anew(replace(node, **changes))
