"""What a local is made of: ``Params p = {n, x}``, ``{.n = n, .x = x}`` and ``v(n)``."""

from __future__ import annotations

from typing import TYPE_CHECKING

from optiml_magic.source.formals import declared, text_of
from optiml_magic.source.syntax import parse, walk

if TYPE_CHECKING:
    from tree_sitter import Node

_KINDS = frozenset({"struct_specifier", "class_specifier"})


def braces(node: Node | None) -> Node | None:
    """The list of ``{n, x}``, ``Params{n, x}`` and ``(Params){n, x}``."""
    while node is not None and node.type in ("compound_literal_expression", "cast_expression"):
        node = node.child_by_field_name("value")
    return node if node is not None and node.type == "initializer_list" else None


def given(name: str, listed: Node) -> dict[str, Node]:
    """The members of the struct of that name with what a list gives them; none where unclear.

    A member that the list leaves out is zero, and stands for nothing here.
    """
    names = _members(name.removeprefix("struct ").rpartition("::")[2], listed)
    values = [one for one in listed.named_children if one.type != "comment"]
    found: dict[str, Node] = {}
    for at, one in enumerate(values):
        value = one.child_by_field_name("value") if one.type == "initializer_pair" else one
        designators = one.children_by_field_name("designator")
        member = text_of(designators[0]).removeprefix(".") if designators else ""
        if not designators and at < len(names) and one.type != "initializer_pair":
            member = names[at]
        if value is None or len(designators) > 1 or member not in names or member in found:
            return {}
        found[member] = value
    return found


def _members(name: str, place: Node) -> list[str]:
    """Those of a plain struct of the text in their order; none of one that is made by itself."""
    while place.parent is not None:
        place = place.parent
    found = [node for node in walk(place) if node.type in _KINDS and _name(node) == name]
    bodies = [node for node in found if node.child_by_field_name("body") is not None]
    if len(bodies) != 1 or any(child.type == "base_class_clause" for child in bodies[0].children):
        return []
    body, names = bodies[0].child_by_field_name("body"), list[str]()
    for node in body.named_children if body is not None else ():
        if node.type in ("comment", "function_definition"):
            if node.type == "comment" or node.child_by_field_name("type") is not None:
                continue
            return []  # a constructor
        declarators = node.children_by_field_name("declarator")
        if node.type != "field_declaration" or not declarators:
            return []
        shapes = [declared(one) for one in declarators]
        if any(shape.array or shape.function or not shape.name for shape in shapes):
            return []
        names += [shape.name for shape in shapes]
    return names


def _name(node: Node) -> str:
    own = node.child_by_field_name("name")
    parent = node.parent
    if own is None and parent is not None and parent.type == "type_definition":
        own = parent.child_by_field_name("declarator")
    return text_of(own)


def is_braced(declarator: Node) -> bool:
    """Whether it is made as ``v{1, 2}``, of its elements."""
    value = declarator.child_by_field_name("value")
    return value is not None and value.type == "initializer_list"


def arguments_of(declarator: Node) -> list[Node]:
    """Of ``v(n, 1.0f)``, which reads like a function's declaration where it has no literal."""
    value = declarator.child_by_field_name("value")
    listed = value or declarator.child_by_field_name("parameters")
    if listed is not None and listed.type == "identifier":
        return [listed]
    if listed is not None and listed.type == "initializer_list":
        return list(listed.named_children)
    if listed is None or listed.type not in ("argument_list", "parameter_list"):
        return []
    reread = walk(parse(f"auto x = f{text_of(listed)};").root)
    found = next((n for n in reread if n.type == "argument_list"), None)
    return list(found.named_children) if found is not None else []
