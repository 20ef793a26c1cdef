"""``if (a && b)`` as two that are nested; ``if (a || b) return;`` as two that follow."""

from __future__ import annotations

from tests.twins.tree import (
    Edit,
    Syntax,
    condition_of,
    field,
    operator,
    repeated,
    replace,
    src,
    statements,
    walk,
)


def _step(syntax: Syntax) -> list[Edit]:
    for node in walk(syntax.root):
        if node.type != "if_statement" or node.child_by_field_name("alternative") is not None:
            continue
        condition, then = condition_of(node), field(node, "consequence")
        if condition.type != "binary_expression":
            continue
        left, right = src(field(condition, "left")), src(field(condition, "right"))
        if operator(condition) == "&&":
            return [replace(node, f"if ({left}) {{\nif ({right}) {src(then)}\n}}")]
        leaves = [s.type for s in statements(then)] == ["return_statement"]
        held = node.parent is not None and node.parent.type == "compound_statement"
        if operator(condition) == "||" and leaves and held:
            return [replace(node, f"if ({left}) return;\nif ({right}) return;")]
    return []


def apply(text: str) -> str | None:
    return repeated(text, _step)
