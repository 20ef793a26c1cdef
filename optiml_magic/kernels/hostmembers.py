"""What the members of a host function's structs are set to: ``Params p; p.n = 4;``."""

from __future__ import annotations

from typing import TYPE_CHECKING

from optiml_magic.kernels.hostchanges import set_once, target
from optiml_magic.source.formals import text_of
from optiml_magic.source.syntax import nodes_of, walk

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from tree_sitter import Node


def members_set(
    body: Node,
    made: Mapping[str, Mapping[str, Node]],
    places: Mapping[str, list[Node]],
    several: Collection[str],
) -> dict[str, Node]:
    """The members, as they are spelled, that are set once and for all, and what to.

    ``made`` are structs that are declared once, with what braces give their members; ``places``
    change them. One that is changed as a whole, whose address is taken or that has a method called
    has no such members. Nor is one known that is set to what changes afterwards, or by a name of
    ``several`` things.
    """
    found: dict[str, Node] = {}
    wanted = {name: places.get(name, []) for name in made if made[name] or name in places}
    for name in wanted.keys() - _called(body) if wanted else ():
        by_member: dict[str, list[Node]] = {}
        for node in wanted[name]:
            root, dot, member = target(node).partition(".")
            own = root == name and dot and member.isidentifier()
            by_member.setdefault(target(node) if own else "", []).append(node)
        if "" not in by_member:
            once: dict[str, Node | None] = {}
            once |= {f"{name}.{member}": value for member, value in made[name].items()}
            once |= {member: set_once(nodes, body) for member, nodes in by_member.items()}
            found |= {
                member: right for member, right in once.items()
                if right is not None and _stays(right, places, several)
            }  # fmt: skip
    return found


def _stays(right: Node, places: Mapping[str, list[Node]], several: Collection[str]) -> bool:
    """Whether an expression is the same later on."""
    names = {text_of(node) for node in walk(right) if node.type == "identifier"}
    changed = (node for name in names for node in places.get(name, ()))
    return names.isdisjoint(several) and all(n.start_byte < right.start_byte for n in changed)


def _called(body: Node) -> set[str]:
    """What methods are called of."""
    functions = [
        node.child_by_field_name("function")
        for node in nodes_of(body)
        if node.type == "call_expression"
    ]
    return {
        text_of(function.child_by_field_name("argument"))
        for function in functions
        if function is not None and function.type == "field_expression"
    }
