"""Indices as locals with names, before the statement that uses them."""

from __future__ import annotations

from tests.twins.tree import (
    Edit,
    Syntax,
    before,
    enclosing,
    fresh,
    function_of,
    in_index,
    is_integer,
    repeated,
    replace,
    src,
    types,
    walk,
)

_PLAIN = ("expression_statement", "declaration")


def _step(syntax: Syntax) -> list[Edit]:
    for node in walk(syntax.root):
        if node.type != "binary_expression" or node.parent is None:
            continue
        if node.parent.type != "subscript_argument_list" or in_index(node.parent):
            continue
        statement = enclosing(node, *_PLAIN, "for_statement", "if_statement", "while_statement")
        if statement is None or statement.type not in _PLAIN or statement.parent is None:
            continue
        if statement.parent.type == "compound_statement" and is_integer(
            node, types(function_of(node))
        ):
            name = fresh("place", syntax)
            return [before(statement, f"int {name} = {src(node)};\n"), replace(node, name)]
    return []


def apply(text: str) -> str | None:
    return repeated(text, _step)
