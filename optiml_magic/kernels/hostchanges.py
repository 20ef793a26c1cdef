"""What changes a local of a host function: once, from outside, or only as it seems."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from optiml_magic.source.formals import text_of

if TYPE_CHECKING:
    from tree_sitter import Node

_ON_THE_LINE = re.compile(r"\bargv\b|\bstd::cin\b|\bscanf\b|\bgetenv\b")


def set_once(nodes: list[Node], body: Node, place: Node | None = None) -> Node | None:
    """What a local is set to, where that is one assignment that nothing can go around.

    It is before a ``place``, where one is given.
    """
    (first, *others), statement = nodes, nodes[0].parent
    plain = text_of(first.child_by_field_name("operator")) == "="
    late = place is not None and first.start_byte > place.start_byte
    if others or first.type != "assignment_expression" or not plain or late:
        return None
    while statement is not None and statement.type == "assignment_expression":
        statement = statement.parent  # of `a = b = c`
    if statement is None or statement.type != "expression_statement" or statement.parent != body:
        return None
    right = first.child_by_field_name("right")
    while right is not None and right.type == "assignment_expression":
        right = right.child_by_field_name("right")
    return right


def is_listed(change: Node) -> bool:
    """Whether an address is only put into a list of what a launch passes: ``void* args[]``."""
    node = change.parent
    while node is not None and node.type in ("cast_expression", "initializer_list"):
        node = node.parent
    declaration = node.parent if node is not None and node.type == "init_declarator" else None
    kind = declaration.child_by_field_name("type") if declaration is not None else None
    return change.type == "pointer_expression" and text_of(kind) == "void"


def counts_processors(change: Node) -> bool:
    """Whether a local is what ``cudaDeviceGetAttribute`` says of the number of multiprocessors."""
    listed = change.parent
    call = listed.parent if listed is not None and listed.type == "argument_list" else None
    called = text_of(call.child_by_field_name("function")) if call is not None else ""
    asked = [text_of(n) for n in (listed.named_children if listed else ())][1:2]
    return called == "cudaDeviceGetAttribute" and asked == ["cudaDevAttrMultiProcessorCount"]


def target(change: Node) -> str:
    """What one change writes to, or takes the address of, as it is spelled."""
    for field in ("left", "argument", "value"):
        written = change.child_by_field_name(field)
        if written is not None:
            return text_of(written)
    return ""


def is_given_from_outside(node: Node) -> bool:
    """Whether a change only takes what the command line or a file gives."""
    whole = node
    while whole.parent is not None and "statement" not in whole.type:
        whole = whole.parent
    return _ON_THE_LINE.search(text_of(whole)) is not None
