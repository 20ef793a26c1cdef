"""Numbers that host code spells out, and casts of what it computes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from optiml_magic.kernels.literals import number
from optiml_magic.source.formals import text_of

if TYPE_CHECKING:
    from tree_sitter import Node


def literal_number(node: Node) -> int | float | None:
    """The value of a literal."""
    words = text_of(node)
    if node.type in ("true", "false"):
        return int(node.type == "true")
    found = number(words) if node.type in ("number_literal", "unary_expression") else None
    return None if found is None else found[0]


def cast_of(node: Node) -> tuple[str, Node] | None:
    """The type that a cast in any of its spellings is to, and what it casts."""
    if node.type == "cast_expression":
        value = node.child_by_field_name("value")
        return None if value is None else (text_of(node.child_by_field_name("type")), value)
    if node.type != "call_expression":
        return None
    function, listed = (node.child_by_field_name(part) for part in ("function", "arguments"))
    given = listed.named_child(0) if listed is not None and listed.named_child_count == 1 else None
    if given is None:
        return None
    return text_of(function).removeprefix("static_cast<").removesuffix(">").strip(), given
