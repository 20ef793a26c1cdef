"""Reads of input arrays through a device function."""

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
    with_prelude,
)

_LOAD = """template <typename E>
__device__ __forceinline__ E load(const E* from, int place) {
    return *(from + place);
}"""


def _step(syntax: Syntax) -> list[Edit]:
    for node in walk(syntax.root):
        if node.type != "subscript_expression" or node.parent is None:
            continue
        if node.parent.type in ("pointer_expression", "field_expression"):
            continue
        array = types(function_of(node)).get(src(field(node, "argument")))
        if array is not None and array.kind == "pointer" and array.constant:
            return [replace(node, f"load({array.name}, {src(index_of(node))})")]
    return []


def apply(text: str) -> str | None:
    changed = repeated(text, _step)
    return changed and with_prelude(changed, _LOAD)
