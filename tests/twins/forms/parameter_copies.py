"""Integer parameters copied to locals, which are used in their place."""

from __future__ import annotations

from tests.twins.tree import (
    after,
    edited,
    field,
    fresh,
    functions,
    parameters,
    parse,
    replace,
    src,
    walk,
)


def apply(text: str) -> str | None:
    syntax = parse(text)
    made = []
    for function in functions(syntax):
        body = field(function, "body")
        for name in parameters(function):
            if name.kind == "scalar" and name.type == "int":
                copy = fresh(f"{name.name}_copy", syntax)
                made.append(after(body.children[0], f"\n    int {copy} = {name.name};"))
                uses = [n for n in walk(body) if n.type == "identifier" and src(n) == name.name]
                made += [replace(n, copy) for n in uses]
    return edited(text, made)
