"""The builtin indices as locals with short names."""

from __future__ import annotations

from tests.twins.tree import Edit, after, edited, field, fresh, functions, parse, replace, src, walk

_SHORT = {"threadIdx": "t", "blockIdx": "b", "blockDim": "d", "gridDim": "g"}


def apply(text: str) -> str | None:
    syntax = parse(text)
    made: list[Edit] = []
    for function in functions(syntax):
        found: dict[str, str] = {}
        for node in walk(function):
            if node.type == "field_expression" and src(field(node, "argument")) in _SHORT:
                axis = src(field(node, "field"))
                name = fresh(_SHORT[src(field(node, "argument"))] + axis, syntax)
                found[src(node)] = name
                made.append(replace(node, name))
        opening = field(function, "body").children[0]
        made.append(
            after(
                opening,
                "".join(f"\n    const int {name} = {said};" for said, name in found.items()),
            )
        )
    return edited(text, made) if len(made) > len(functions(syntax)) else None
