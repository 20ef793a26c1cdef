"""``float`` and ``int`` under other names."""

from __future__ import annotations

from tests.twins.tree import edited, functions, parse, replace, src, walk, with_prelude

_NAMES = {"float": "real", "int": "index_t"}


def apply(text: str) -> str | None:
    made = [
        replace(node, _NAMES[src(node)])
        for function in functions(parse(text))
        for node in walk(function)
        if node.type == "primitive_type"
        and src(node) in _NAMES
        and node.parent is not None
        and node.parent.type != "sized_type_specifier"
    ]
    changed = edited(text, made)
    if changed is None:
        return None
    return with_prelude(changed, "typedef float real;", "using index_t = int;")
