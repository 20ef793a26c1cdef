"""``x += y`` for ``x = x + y``."""

from __future__ import annotations

from tests.twins.tree import bare, edited, field, operator, parse, replace, src, walk


def apply(text: str) -> str | None:
    made = []
    for node in walk(parse(text).root):
        if node.type != "assignment_expression" or operator(node) != "=":
            continue
        value = field(node, "right")
        if value.type != "binary_expression" or operator(value) not in "+-*/":
            continue
        if src(field(value, "left")) == src(field(node, "left")):
            more = src(bare(field(value, "right")))
            made.append(replace(node, f"{src(field(node, 'left'))} {operator(value)}= {more}"))
    return edited(text, made)
