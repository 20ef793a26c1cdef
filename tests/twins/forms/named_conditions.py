"""The condition of an ``if`` as a ``bool`` with a name."""

from __future__ import annotations

from tests.twins.tree import Edit, Syntax, before, condition_of, fresh, repeated, replace, src, walk


def _step(syntax: Syntax) -> list[Edit]:
    for node in walk(syntax.root):
        parent = node.parent
        if node.type != "if_statement" or parent is None or parent.type != "compound_statement":
            continue
        condition = condition_of(node)
        if condition.type == "binary_expression":
            name = fresh("inside", syntax)
            return [
                before(node, f"const bool {name} = {src(condition)};\n"),
                replace(condition, name),
            ]
    return []


def apply(text: str) -> str | None:
    return repeated(text, _step)
