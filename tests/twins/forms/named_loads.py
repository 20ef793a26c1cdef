"""Every element that a statement reads as a local, loaded before it."""

from __future__ import annotations

from tree_sitter import Node

from tests.twins.tree import (
    Edit,
    Syntax,
    before,
    contains,
    enclosing,
    field,
    fresh,
    function_of,
    operator,
    repeated,
    replace,
    src,
    types,
    walk,
)

_PLAIN = ("expression_statement", "declaration")


def _is_read(node: Node) -> bool:
    """Whether an access only reads, and may be made before the rest of its statement."""
    parent = node.parent
    assert parent is not None
    if parent.type in ("pointer_expression", "field_expression"):
        return False
    target = parent.type == "assignment_expression" and field(parent, "left") == node
    # `float v = a[i];` is one already.
    return not target and not (parent.type == "init_declarator" and "_read" in src(parent))


def _step(syntax: Syntax) -> list[Edit]:
    for node in walk(syntax.root):
        if node.type != "subscript_expression" or not _is_read(node):
            continue
        if contains(field(node, "indices"), "subscript_expression"):
            continue
        array = types(function_of(node)).get(src(field(node, "argument")))
        if array is None or array.kind != "pointer":
            continue
        statement = enclosing(node, *_PLAIN, "for_statement", "if_statement", "while_statement")
        if statement is None or statement.type not in _PLAIN or statement.parent is None:
            continue
        if statement.parent.type != "compound_statement" or _decides(statement):
            continue
        if contains(statement, "reference_declarator"):
            continue
        name = fresh(f"{array.name}_read", syntax)
        return [before(statement, f"{array.type} {name} = {src(node)};\n"), replace(node, name)]
    return []


def _decides(statement: Node) -> bool:
    """Whether a part of the statement may be left out, and its accesses with it."""
    return contains(statement, "conditional_expression") or any(
        n.type == "binary_expression" and operator(n) in ("&&", "||") for n in walk(statement)
    )


def apply(text: str) -> str | None:
    return repeated(text, _step)
