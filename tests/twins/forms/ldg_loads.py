"""Reads of input arrays through ``__ldg``."""

from __future__ import annotations

from tests.twins.tree import (
    Edit,
    Syntax,
    field,
    function_of,
    index_of,
    repeated,
    replace,
    src,
    types,
    walk,
)


def _step(syntax: Syntax) -> list[Edit]:
    for node in walk(syntax.root):
        if node.type != "subscript_expression" or node.parent is None:
            continue
        if node.parent.type in ("pointer_expression", "field_expression"):
            continue
        array = types(function_of(node)).get(src(field(node, "argument")))
        # There is no such load of a vector of three numbers.
        plain = array is not None and not array.type.endswith("3")
        if plain and array is not None and array.kind == "pointer" and array.constant:
            return [replace(node, f"__ldg(&{array.name}[{src(index_of(node))}])")]
    return []


def apply(text: str) -> str | None:
    return repeated(text, _step)
