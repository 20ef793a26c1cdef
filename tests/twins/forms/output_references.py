"""A store through a reference to its element."""

from __future__ import annotations

from tests.twins.tree import (
    Edit,
    edited,
    field,
    fresh,
    function_of,
    parse,
    replace,
    src,
    types,
    walk,
)


def apply(text: str) -> str | None:
    syntax = parse(text)
    made: list[Edit] = []
    for node in walk(syntax.root):
        if (
            node.type != "expression_statement"
            or node.named_children[0].type != "assignment_expression"
        ):
            continue
        change = node.named_children[0]
        target = field(change, "left")
        if target.type != "subscript_expression":
            continue
        array = types(function_of(node)).get(src(field(target, "argument")))
        if array is None or array.kind != "pointer":
            continue
        name = fresh(f"{array.name}_ref", syntax)
        rest = syntax.text[target.end_byte : node.end_byte].decode()
        made.append(replace(node, f"{{ {array.type}& {name} = {src(target)};\n{name}{rest} }}"))
    return edited(text, made)
