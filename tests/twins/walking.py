"""Accesses of a loop whose index goes up by the same amount in every round."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from tree_sitter import Node

from optiml_magic.source.syntax import walk

from .tree import (
    Counted,
    Name,
    changed,
    counted,
    enclosing,
    field,
    function_of,
    index_of,
    is_integer,
    operator,
    skips,
    src,
    types,
    words,
)


@dataclass(frozen=True)
class Access:
    """``array[index]`` in a loop: where it begins in the first round, and its step."""

    node: Node
    array: Name
    index: str
    base: str
    stride: str


def accesses(loop: Counted) -> Iterator[Access]:
    """The accesses to parameters that this loop, and no inner one, steps through."""
    known = types(function_of(loop.node))
    moving = changed(loop.body)
    for node in walk(loop.body):
        if node.type != "subscript_expression":
            continue
        array, index = known.get(src(field(node, "argument"))), index_of(node)
        if array is None or array.kind != "pointer" or not is_integer(index, known):
            continue
        nearest = enclosing(node, "for_statement")
        inner = counted(nearest) if nearest is not None else None
        if inner is None or inner.node != loop.node or loop.counter not in words(index):
            continue
        stride = _stride(index, loop.counter)
        if stride is None or words(index) & moving or "[" in src(index):
            continue
        yield Access(node, array, src(index), _base(index, loop) or "0", stride)


def steps_by_one(loop: Counted) -> bool:
    """Whether a pointer may move on with the counter: one by one, and never left out."""
    return loop.by_one and not skips(loop.body)


def _stride(node: Node, counter: str) -> str | None:
    """How much an index grows when the counter does so by one; None where that is not plain."""
    if counter not in words(node):
        return "0"
    if node.type == "identifier":
        return "1"
    if node.type == "parenthesized_expression":
        return _stride(node.named_children[0], counter)
    if node.type != "binary_expression":
        return None
    left, right = field(node, "left"), field(node, "right")
    one, other = _stride(left, counter), _stride(right, counter)
    if one is None or other is None:
        return None
    sign = operator(node)
    if sign == "+" or (sign == "-" and other == "0"):
        return one if other == "0" else other if one == "0" else f"({one} + {other})"
    if sign == "*" and "0" in (one, other):
        step, factor = (one, src(right)) if other == "0" else (other, src(left))
        return factor if step == "1" else f"{step} * {factor}"
    return None


def _base(node: Node, loop: Counted) -> str | None:
    """The index of the first round; None for 0."""
    if loop.counter not in words(node):
        return src(node)
    if node.type == "identifier":
        return None if src(loop.start) == "0" else src(loop.start)
    if node.type == "parenthesized_expression":
        inner = _base(node.named_children[0], loop)
        return None if inner is None else f"({inner})"
    left, right = _base(field(node, "left"), loop), _base(field(node, "right"), loop)
    sign = operator(node)
    if sign == "*":
        return None if left is None or right is None else f"{left} * {right}"
    if left is None and sign == "-":
        return f"-{right}"
    if left is None or right is None:
        return left or right
    return f"{left} {sign} {right}"


def pointer(array: Name, name: str, base: str) -> str:
    """The declaration of a pointer into an array."""
    const = "const " if array.constant else ""
    return f"{const}{array.type}* {name} = {array.name} + {base};"
