"""What the nodes of the grammar say of functions, lambdas and errors below them."""

from __future__ import annotations

from collections.abc import Iterator

from tree_sitter import Node

from optiml_magic.kernels.lift_declarations import declarator_in
from optiml_magic.source.syntax import name_of

_SCOPES = frozenset(
    {
        "namespace_definition", "declaration_list", "linkage_specification", "preproc_if",
        "preproc_ifdef", "preproc_else", "preproc_elif",
    }
)  # fmt: skip
_METHODS = frozenset({"field_identifier", "operator_name"})


def outside(node: Node) -> Iterator[Node]:
    """What stands outside of functions and classes."""
    for child in node.named_children:
        if child.type == "declaration":
            yield child
        elif child.type in _SCOPES:
            yield from outside(child)


def copies(captures: str) -> bool:
    """Whether a lambda copies something that it captures."""
    names = [name.strip() for name in captures.strip("[] ").split(",")]
    return any(name and not name.startswith("&") and name != "this" for name in names)


def named(node: Node) -> str:
    """The name of a function, or of a method such as ``operator()``."""
    declarator = node.child_by_field_name("declarator")
    while declarator is not None and declarator.type not in _METHODS:
        declarator = declarator.child_by_field_name("declarator") or declarator_in(declarator)
    own = declarator.text.decode() if declarator is not None and declarator.text else ""
    return own or name_of(node)


def outermost(node: Node) -> Node:
    """A function with the template heads around it."""
    while node.parent is not None and node.parent.type == "template_declaration":
        node = node.parent
    return node


def in_class(node: Node) -> bool:
    parent = node.parent
    while parent is not None:
        if parent.type == "field_declaration_list":
            return True
        parent = parent.parent
    return False


def head_is_sound(node: Node) -> bool:
    """Whether all errors of a statement are inside the statements below it."""
    inner = ("body", "consequence", "alternative")
    below = {child.id for part in inner for child in node.children_by_field_name(part)}
    return bool(below) and not any(c.has_error for c in node.children if c.id not in below)
