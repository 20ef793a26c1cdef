"""``x = x + y`` for ``x += y``."""

from __future__ import annotations

from tests.twins.tree import Edit, Syntax, contains, field, operator, repeated, replace, src, walk

_SIMPLE = ("identifier", "number_literal", "subscript_expression", "call_expression")


def _step(syntax: Syntax) -> list[Edit]:
    for node in walk(syntax.root):
        if node.type != "assignment_expression" or operator(node) not in ("+=", "-=", "*=", "/="):
            continue
        target, value = field(node, "left"), field(node, "right")
        if contains(target, "update_expression", "call_expression"):
            continue
        more = src(value) if value.type in _SIMPLE else f"({src(value)})"
        return [replace(node, f"{src(target)} = {src(target)} {operator(node)[0]} {more}")]
    return []


def apply(text: str) -> str | None:
    return repeated(text, _step)
