"""Accesses as ``row * length + place``, and the number of a thread in the grid."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator

from tree_sitter import Node

from optiml_magic.source.syntax import Syntax, parse, walk

from .tree import (
    Edit,
    bare,
    edited,
    field,
    function_of,
    in_index,
    is_integer,
    operator,
    repeated,
    replace,
    src,
    types,
)

_THREAD = re.compile(r"blockIdx\.([xyz])\*(?:blockDim\.\1|\d+)\+threadIdx\.\1")


def sums_of_products(syntax: Syntax) -> Iterator[tuple[Node, Node, Node, Node]]:
    """``i * length + j`` in an index: the whole, and its i, length and j; outer ones first."""
    for node in walk(syntax.root):
        if node.type != "binary_expression" or operator(node) != "+" or not in_index(node):
            continue
        product, rest = field(node, "left"), field(node, "right")
        if product.type == "binary_expression" and operator(product) == "*":
            yield node, field(product, "left"), field(product, "right"), rest


def with_calls(text: str, name: str, prelude: str) -> str | None:
    """Every ``i * length + j`` in an index as ``name(i, j, length)``."""

    def step(syntax: Syntax) -> list[Edit]:
        for node, row, length, rest in sums_of_products(syntax):
            if all(
                is_integer(n, types(function_of(node))) or f"{name}(" in src(n) for n in (row, rest)
            ):
                called = f"{name}({src(bare(row))}, {src(rest)}, {src(length)})"
                return [replace(node, called)]
        return []

    changed = repeated(text, step)
    return prelude + changed if changed is not None else None


def with_threads(text: str, call: str, define: Callable[[str, str], str]) -> str | None:
    """Every number of a thread in the grid as ``call``, formatted with its axis, defined above."""
    found: dict[str, str] = {}
    made: list[Edit] = []
    for node in walk(parse(text).root):
        match = _THREAD.fullmatch(re.sub(r"\s", "", src(node)))
        if match and node.type == "binary_expression":
            if found.setdefault(match[1], src(node)) != src(node):
                return None
            made.append(replace(node, call.format(match[1].upper())))
    changed = edited(text, made)
    if changed is None:
        return None
    return "".join(define(axis.upper(), said) + "\n" for axis, said in found.items()) + changed
