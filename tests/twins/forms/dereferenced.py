"""``*(a + i)`` for ``a[i]``, and ``a + i`` for ``&a[i]``, on parameters."""

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
        if node.type != "subscript_expression":
            continue
        array = types(function_of(node)).get(src(field(node, "argument")))
        if array is None or array.kind != "pointer":
            continue
        place = f"{array.name} + {src(index_of(node))}"
        parent = node.parent
        if parent is not None and parent.type == "pointer_expression":
            return [replace(parent, place if src(parent).startswith("&") else f"(**({place}))")]
        if parent is not None and parent.type == "field_expression":
            return [replace(parent, f"({place})->{src(field(parent, 'field'))}")]
        return [replace(node, f"(*({place}))")]
    return []


def apply(text: str) -> str | None:
    return repeated(text, _step)
