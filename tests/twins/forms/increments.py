"""``k++`` and ``++k`` as ``k = k + 1``."""

from __future__ import annotations

from tests.twins.tree import edited, field, operator, parse, replace, src, walk


def apply(text: str) -> str | None:
    made = []
    for node in walk(parse(text).root):
        alone = ("for_statement", "expression_statement")
        if node.type == "update_expression" and node.parent and node.parent.type in alone:
            name = src(field(node, "argument"))
            made.append(replace(node, f"{name} = {name} {operator(node)[0]} 1"))
    return edited(text, made)
