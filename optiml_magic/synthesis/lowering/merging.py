"""Graphs made anew from their inputs up: equal nodes become one, and some become others."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import fields, replace
from typing import Any

from optiml_magic.synthesis.graph import Constant, Node, ordered

Changed = Callable[[Node], Node]


def rebuilt(outputs: Sequence[Node], changed: Changed) -> list[Node]:
    """The outputs where each node, once its parts are new, is what ``changed`` makes of it."""
    made: dict[Node, Node] = {}
    known: dict[Any, Node] = {}
    for node in ordered(iter(outputs)):
        kept = {f.name: _anew(getattr(node, f.name), made) for f in fields(node)}
        same = all(value is getattr(node, name) for name, value in kept.items())
        new = node if same else replace(node, **kept)
        made[node] = changed(known.setdefault(_key(new, kept), new))
    return [made[node] for node in outputs]


def _anew(held: Any, made: dict[Node, Node]) -> Any:
    if isinstance(held, Node):
        return made[held]
    if isinstance(held, tuple) and any(isinstance(x, Node) and made[x] is not x for x in held):
        return tuple(made[x] if isinstance(x, Node) else x for x in held)
    return held


def _key(node: Node, kept: dict[str, Any]) -> Any:
    if isinstance(node, Constant):
        return Constant, node.shape, node.dtype, node.value.tobytes()
    return type(node), *kept.values()
