"""Locals used through references to them."""

from __future__ import annotations

from tests.twins.tree import (
    Edit,
    after,
    declared_once,
    edited,
    fresh,
    functions,
    names,
    parse,
    replace,
    src,
    walk,
)


def apply(text: str) -> str | None:
    syntax = parse(text)
    made: list[Edit] = []
    for function in functions(syntax):
        for name in names(function):
            node, parent = name.declaration, name.declaration.parent
            if parent is None or parent.type != "compound_statement" or name.kind != "scalar":
                continue
            if len(names(node)) != 1 or not declared_once(function, name.name):
                continue
            again = fresh(f"{name.name}_again", syntax)
            const = "const " if name.constant else ""
            made.append(after(node, f"\n{const}{name.type}& {again} = {name.name};"))
            made += [
                replace(use, again)
                for use in walk(parent)
                if use.type == "identifier"
                and src(use) == name.name
                and use.start_byte > node.end_byte
            ]
    return edited(text, made)
