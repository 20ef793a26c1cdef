"""All locals declared at the head of the function, and assigned where they were declared."""

from __future__ import annotations

from tests.twins.tree import (
    Edit,
    after,
    declared_once,
    edited,
    field,
    functions,
    names,
    parse,
    replace,
    src,
)


def apply(text: str) -> str | None:
    made: list[Edit] = []
    for function in functions(parse(text)):
        head = ""
        for name in names(function):
            node = name.declaration
            plain = name.kind == "scalar" and not name.constant and name.type != "auto"
            if node.type != "declaration" or not plain or len(names(node)) != 1:
                continue
            parent = node.parent
            if parent is None or parent.type != "compound_statement":
                continue  # the counter of a loop
            if not declared_once(function, name.name) or "__shared__" in src(node):
                continue
            head += f"\n    {name.type} {name.name};"
            value = name.declarator.child_by_field_name("value")
            made.append(replace(node, f"{name.name} = {src(value)};" if value else ";"))
        if head:
            made.append(after(field(function, "body").children[0], head))
    return edited(text, made)
