"""``i <= n - 1`` for ``i < n`` between signed integers."""

from __future__ import annotations

from tests.twins.tree import (
    SIGNED,
    Edit,
    edited,
    field,
    function_of,
    is_integer,
    operator,
    parse,
    replace,
    src,
    types,
    walk,
)

_INCLUSIVE = {"<": ("<=", "- 1"), ">=": (">", "- 1"), "<=": ("<", "+ 1"), ">": (">=", "+ 1")}


def apply(text: str) -> str | None:
    made: list[Edit] = []
    for node in walk(parse(text).root):
        if node.type != "binary_expression" or operator(node) not in _INCLUSIVE:
            continue
        sides = field(node, "left"), field(node, "right")
        known = types(function_of(node))
        if all(is_integer(side, known, SIGNED) for side in sides):
            sign, more = _INCLUSIVE[operator(node)]
            made.append(replace(node, f"{src(sides[0])} {sign} {src(sides[1])} {more}"))
    return edited(text, made)
