"""``++k`` for ``k++`` and the other way round, where nobody reads the value."""

from __future__ import annotations

from tests.twins.tree import edited, field, operator, parse, replace, src, walk


def apply(text: str) -> str | None:
    made = []
    for node in walk(parse(text).root):
        alone = ("for_statement", "expression_statement")
        if node.type == "update_expression" and node.parent and node.parent.type in alone:
            name, sign = src(field(node, "argument")), operator(node)
            first = src(node).startswith(sign)
            made.append(replace(node, f"{name}{sign}" if first else f"{sign}{name}"))
    return edited(text, made)
