"""Memory that an object of the host has: vectors, and the text's own classes that allocate."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from optiml_magic.kernels.hostpointers import uncast
from optiml_magic.kernels.signature import split_name
from optiml_magic.source.formals import declared, formals, text_of
from optiml_magic.source.syntax import line_of, name_of, nodes_of, walk

if TYPE_CHECKING:
    from tree_sitter import Node

    from optiml_magic.kernels.hostvalues import HostValues

_VECTOR = re.compile(r"(?:device_|universal_)?vector")
_CLASSES = frozenset({"class_specifier", "struct_specifier"})


@dataclass(frozen=True, eq=False)
class Owned:
    """Memory of ``count`` elements of a type."""

    count: Node
    ctype: str
    line: int


def owned(name: str, body: Node, values: HostValues) -> Owned | None:
    """The memory of the one object of that name; None where that is unclear."""
    made = [
        (node, child)
        for node in nodes_of(body)
        if node.type == "declaration"
        for child in node.children_by_field_name("declarator")
        if declared(child).name == name
    ]
    if len(made) != 1:
        return None
    declaration, declarator = made[0]
    kind, given = split_name(text_of(declaration.child_by_field_name("type")))
    base = kind.rpartition("::")[2]
    if _VECTOR.fullmatch(base) and given:
        count = values.vector(name)
        return None if count is None else Owned(count, given[0], line_of(declaration))
    return _of_class(base, given, declarator, values, line_of(declaration))


def _of_class(
    base: str, given: tuple[str, ...], declarator: Node, values: HostValues, line: int
) -> Owned | None:
    """That of a class whose constructor allocates as many elements as it is told to, once."""
    root = declarator
    while root.parent is not None:
        root = root.parent
    found = [
        node
        for node in nodes_of(root)
        if node.type in _CLASSES
        and text_of(node.child_by_field_name("name")) == base
        and node.child_by_field_name("body") is not None
    ]
    arguments = values.constructed(declared(declarator).name)
    if len(found) != 1 or not arguments:
        return None
    constructors = [
        node
        for node in walk(found[0])
        if node.type == "function_definition"
        and name_of(node) == base
        and len(formals(node)) == len(arguments)
    ]
    calls = [node for node in walk(found[0]) if _is_allocation(node)]
    if len(constructors) != 1 or len(calls) != 1 or not _within(calls[0], constructors[0]):
        return None
    listed = calls[0].child_by_field_name("arguments")
    size = listed.named_child(1) if listed is not None else None
    factor = re.fullmatch(r"(\w+)\*sizeof\((\w+)\)|sizeof\((\w+)\)\*(\w+)", _plain(size))
    if factor is None:
        return None
    many, kind = factor[1] or factor[4], factor[2] or factor[3]
    member = re.search(rf"\b{many}\((\w+)\)", "".join(text_of(constructors[0]).split()))
    names = [formal.name for formal in formals(constructors[0])]
    own = many if many in names else member[1] if member else ""
    if own not in names:
        return None
    types = dict(zip(_template(found[0]), given, strict=False))
    return Owned(arguments[names.index(own)], types.get(kind, kind), line)


def _is_allocation(node: Node) -> bool:
    called = text_of(node.child_by_field_name("function")).partition("<")[0]
    return node.type == "call_expression" and called in ("cudaMalloc", "cudaMallocManaged")


def _within(node: Node, other: Node) -> bool:
    return other.start_byte <= node.start_byte < other.end_byte


def _plain(size: Node | None) -> str:
    return "".join(text_of(uncast(size)).split()) if size is not None else ""


def _template(node: Node) -> list[str]:
    parent = node.parent
    listed = parent.child_by_field_name("parameters") if parent is not None else None
    if parent is None or parent.type != "template_declaration" or listed is None:
        return []
    return [text_of(one).rpartition(" ")[2] for one in listed.named_children]
