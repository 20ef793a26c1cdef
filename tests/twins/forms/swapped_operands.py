"""``c + b * a`` for ``a * b + c`` in integer expressions."""

from __future__ import annotations

from tree_sitter import Node

from tests.twins.tree import (
    edited,
    field,
    function_of,
    is_integer,
    operator,
    parse,
    replace,
    src,
    types,
    walk,
)


def _swapped(node: Node) -> str:
    if node.type == "parenthesized_expression":
        return f"({_swapped(node.named_children[0])})"
    if node.type != "binary_expression":
        return src(node)
    left, right, sign = field(node, "left"), field(node, "right"), operator(node)
    if sign not in "+*":
        return f"{_swapped(left)} {sign} {_swapped(right)}"
    last = _swapped(left)
    # What moves to the right would otherwise be torn apart: `c * (a / b)`.
    if left.type == "binary_expression" and (sign, operator(left)) != ("+", "*"):
        last = f"({last})"
    return f"{_swapped(right)} {sign} {last}"


def apply(text: str) -> str | None:
    made = []
    done = 0
    for node in walk(parse(text).root):
        if node.type != "binary_expression" or node.start_byte < done:
            continue
        if is_integer(node, types(function_of(node))):
            done = node.end_byte
            if _swapped(node) != src(node):
                made.append(replace(node, _swapped(node)))
    return edited(text, made)
