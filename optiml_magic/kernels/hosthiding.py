"""Which declarations of a host function are seen from a place, and which names hide each other."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from optiml_magic.source.formals import declared
from optiml_magic.source.syntax import nodes_of

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator

    from tree_sitter import Node


def hiding(body: Node, formals: Collection[str], place: Node | None) -> frozenset[str]:
    """The names of a function that are declared in several blocks that hold a place, if any."""
    times = Counter(formals)
    for node in nodes_of(body):
        if node.type == "declaration" and (place is None or is_seen(node, place)):
            times.update(
                declared(child).name for child in node.children_by_field_name("declarator")
            )
        elif node.type == "lambda_expression" and (place is None or _holds(node, place)):
            times.update(_given(node))
    return frozenset(name for name, count in times.items() if count > 1)


def is_seen(declaration: Node, place: Node) -> bool:
    """Whether a place is in the block, the loop or the branch that a declaration is for."""
    scope = declaration.parent
    if scope is not None and scope.type == "condition_clause":
        scope = scope.parent
    return scope is None or _holds(scope, place)


def _holds(scope: Node, place: Node) -> bool:
    return scope.start_byte <= place.start_byte < scope.end_byte


def _given(function: Node) -> Iterator[str]:
    """The names of what a lambda is called with."""
    declarator = function.child_by_field_name("declarator")
    listed = declarator.child_by_field_name("parameters") if declarator is not None else None
    for node in listed.named_children if listed is not None else ():
        name = declared(node.child_by_field_name("declarator")).name
        if name:
            yield name
