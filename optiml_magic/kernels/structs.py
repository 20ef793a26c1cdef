"""The members of the structs that a text defines."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from optiml_magic.source.aliases import resolve
from optiml_magic.source.dtypes import element_dtype
from optiml_magic.source.formals import declared, text_of
from optiml_magic.source.syntax import Syntax, walk

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tree_sitter import Node

    from optiml_magic.kernels.unit import Unit

_STRUCTS = frozenset({"struct_specifier", "class_specifier"})


@dataclass(frozen=True)
class Member:
    """One member: the dtype of its numbers, None for a struct or a pointer; lanes of a vector."""

    name: str
    dtype: str | None
    lanes: int
    pointer: bool
    array: bool
    line: int


def members(unit: Unit, name: str) -> tuple[Member, ...]:
    """The members of the struct of that name, in order; empty where the text does not define it."""
    body = _body(unit.syntax, name.rsplit("::", 1)[-1])
    return tuple(_members(body, unit)) if body is not None else ()


def _body(syntax: Syntax, name: str) -> Node | None:
    for node in walk(syntax.root):
        if node.type not in _STRUCTS:
            continue
        names = [text_of(node.child_by_field_name("name"))]
        if node.parent is not None and node.parent.type == "type_definition":
            names += [declared(d).name for d in node.parent.children_by_field_name("declarator")]
        if name in names and (body := node.child_by_field_name("body")) is not None:
            return body
    return None


def _members(body: Node, unit: Unit) -> Iterator[Member]:
    for node in body.named_children:
        if node.type != "field_declaration":
            continue
        spelled, depth, _ = resolve(text_of(node.child_by_field_name("type")), unit.aliases)
        for declarator in node.children_by_field_name("declarator"):
            shape = declared(declarator)
            if shape.function or not shape.name:
                continue
            pointer = bool(depth) or shape.reference or _points(declarator)
            dtype, lanes = (None, 1) if pointer else element_dtype(spelled)
            line = unit.line(declarator.start_byte, declarator.end_byte)
            yield Member(shape.name, dtype, lanes, pointer, shape.array, line)


def _points(declarator: Node) -> bool:
    return any(node.type == "pointer_declarator" for node in walk(declarator))
