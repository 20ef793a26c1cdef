"""``const`` before every local that never changes."""

from __future__ import annotations

from tests.twins.tree import (
    before,
    changed,
    edited,
    field,
    functions,
    names,
    parse,
    src,
    walk,
    words,
)


def apply(text: str) -> str | None:
    made = []
    for function in functions(parse(text)):
        moving: set[str] = set()
        for node in walk(function):
            if node.type in ("assignment_expression", "update_expression", "pointer_expression"):
                moving |= changed(node)
            elif node.type == "init_declarator" and (
                field(node, "declarator").type == "reference_declarator"
            ):
                moving |= words(field(node, "value"))
        for name in names(function):
            node, parent = name.declaration, name.declaration.parent
            if node.type != "declaration" or name.kind != "scalar" or name.constant:
                continue
            if len(names(node)) != 1 or parent is None or "=" not in src(node):
                continue
            if parent.type == "compound_statement" and name.name not in moving:
                made.append(before(node, "const "))
    return edited(text, made)
