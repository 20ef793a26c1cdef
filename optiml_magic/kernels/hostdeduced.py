"""The template arguments that nobody writes, by the types of what a function is called with."""

from __future__ import annotations

from typing import TYPE_CHECKING

from optiml_magic.kernels.hosthiding import is_seen
from optiml_magic.kernels.hostpointers import uncast
from optiml_magic.source.aliases import resolve
from optiml_magic.source.formals import declared, formals, text_of
from optiml_magic.source.syntax import nodes_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from tree_sitter import Node

Spelled = tuple[str, int]  # a type without its qualifiers, and how deep a pointer to it is


def deduced(
    wanted: Sequence[str],
    taken: Sequence[Spelled],
    given: Sequence[Node],
    function: Node,
    types: Mapping[str, str],
) -> dict[str, str]:
    """The types of ``wanted`` template parameters, where all that is given says the same of each.

    ``taken`` are the types of the parameters that are called with what is ``given`` in a host
    function, whose own template parameters, and the names of the text for types, are ``types``.
    """
    found: dict[str, set[str]] = {}
    for (spelled, depth), argument in zip(taken, given, strict=False):
        if spelled not in wanted:
            continue
        own = _type_of(argument, function)
        kind, more, _ = resolve(own[0], types) if own is not None else ("", 0, False)
        if own is not None and own[1] + more >= depth:
            found.setdefault(spelled, set()).add(kind + "*" * (own[1] + more - depth))
    return {name: kinds.pop() for name, kinds in found.items() if len(kinds) == 1}


def _type_of(argument: Node, function: Node) -> Spelled | None:
    """The type of a name that is declared once, or of a cast."""
    if argument.type == "cast_expression":
        descriptor = argument.child_by_field_name("type")
        kind = descriptor.child_by_field_name("type") if descriptor is not None else None
        shape = declared(descriptor.child_by_field_name("declarator")) if descriptor else None
        return (text_of(kind), shape.depth if shape else 0) if kind is not None else None
    name = text_of(uncast(argument))
    every = {*_declared(name, function, argument)}
    return every.pop() if len(every) == 1 else None


def _declared(name: str, function: Node, place: Node) -> Iterator[Spelled]:
    """Each type that a name is declared with where a place sees it."""
    for formal in formals(function):
        if formal.name == name:
            yield formal.type, formal.depth
    for node in nodes_of(function):
        if node.type != "declaration" or not is_seen(node, place):
            continue
        kind = text_of(node.child_by_field_name("type"))
        for declarator in node.children_by_field_name("declarator"):
            shape = declared(declarator)
            if shape.name == name and kind != "auto":
                yield kind, shape.depth
