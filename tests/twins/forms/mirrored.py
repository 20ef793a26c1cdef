"""Every comparison from the other side: ``n > i``."""

from __future__ import annotations

from tests.twins.tree import RELATIONS, Edit, edited, field, operator, parse, replace, src, walk


def apply(text: str) -> str | None:
    made: list[Edit] = []
    end = 0  # of the last one; within it no other is mirrored
    for node in walk(parse(text).root):
        relation = node.type == "binary_expression" and operator(node) in RELATIONS
        if relation and node.start_byte >= end:
            end = node.end_byte
            left, right = field(node, "left"), field(node, "right")
            made += [replace(left, src(right)), replace(right, src(left))]
            made += [replace(field(node, "operator"), RELATIONS[operator(node)])]
    return edited(text, made)
