"""The structs that a text defines: their members, the types of these, and where each begins.

Source: the Itanium C++ ABI for plain structs, which CUDA's host and device compilers share.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from tree_sitter import Node

from optiml_magic.kernels.lift_expressions import blanks
from optiml_magic.kernels.types import CType, named
from optiml_magic.source.aliases import resolve
from optiml_magic.source.dtypes import element_dtype
from optiml_magic.source.formals import declared, text_of
from optiml_magic.source.syntax import Syntax, walk

if TYPE_CHECKING:
    from optiml_magic.kernels.unit import Unit

_STRUCTS = frozenset({"struct_specifier", "class_specifier"})
_LANES = "xyzw"


@dataclass(frozen=True)
class Field:
    """One member, an array where it has a ``rank``; ``type`` is that of its elements.

    ``offset`` is in bytes, None where something before it is not understood.
    """

    name: str
    type: CType
    rank: int
    offset: int | None


@dataclass(frozen=True)
class Struct:
    """``size`` in bytes, None where it is not known."""

    fields: tuple[Field, ...]
    size: int | None

    def field(self, name: str) -> Field | None:
        return next((field for field in self.fields if field.name == name), None)


class Structs:
    """The structs of one text by name."""

    def __init__(self, syntax: Syntax, aliases: Mapping[str, str]) -> None:
        self._aliases = aliases
        self._bodies = dict(_bodies(syntax))
        self._known: dict[str, Struct | None] = {}

    def body(self, name: str) -> Node | None:
        """The members' text of the struct of that name; None where the text does not define it."""
        return self._bodies.get(name.rpartition("::")[2])

    def of(self, name: str) -> Struct | None:
        """The struct of that name; None where the text does not define it."""
        name = name.rpartition("::")[2]
        if name not in self._known:
            self._known[name] = None  # of one that holds itself nothing is known
            body = self.body(name)
            if body is not None:
                self._known[name] = self._read(body)
        return self._known[name]

    def type(self, spelled: str, names: Mapping[str, str]) -> CType:
        """A type by its text, with the size of a struct."""
        found = named(spelled, names)
        if found.kind == "record" and found.size is None and (known := self.of(found.name)):
            return replace(found, size=known.size)
        return found

    def _read(self, body: Node) -> Struct:
        fields: list[Field] = []
        offset: int | None = 0
        widest = 1
        plain = not any(node.type in ("alignas_qualifier", "base_class_clause")
                        for node in (body.parent.children if body.parent else ()))  # fmt: skip
        for node in body.named_children:
            if node.type != "field_declaration":
                continue
            spelled = blanks((node.child_by_field_name("type") or node).text.decode())  # type: ignore[union-attr]
            if any(child.type == "bitfield_clause" for child in node.children):
                offset = None
            for declarator in node.children_by_field_name("declarator"):
                shape = declared(declarator)
                if shape.function or not shape.name:
                    continue
                arrays = sum(n.type == "array_declarator" for n in walk(declarator))
                pointers = shape.depth - arrays
                kind = self.type(spelled, self._aliases)
                kind = replace(kind, depth=kind.depth + max(0, pointers))
                size = 8 if kind.depth or shape.reference else kind.size
                align = _alignment(kind, self)
                if offset is not None and align:
                    offset = -(-offset // align) * align
                    widest = max(widest, align)
                fields.append(Field(shape.name, kind, arrays, offset if align else None))
                known = offset is not None and size is not None and align and not shape.array
                offset = offset + size if known and offset is not None and size else None
        size = -(-offset // widest) * widest if offset is not None and fields and plain else None
        return Struct(tuple(fields), size)


def _alignment(kind: CType, structs: Structs) -> int | None:
    if kind.depth:
        return 8
    if kind.kind == "record":
        inner = structs.of(kind.name)
        if inner is None or inner.size is None:
            return None
        return max((_alignment(field.type, structs) or 1 for field in inner.fields), default=1)
    if kind.kind == "vector" and kind.size is not None:
        lane = kind.size // kind.lanes
        return lane if kind.lanes == 3 else min(16, kind.size)
    return kind.size


def _bodies(syntax: Syntax) -> list[tuple[str, Node]]:
    found = []
    for node in walk(syntax.root):
        body = node.child_by_field_name("body") if node.type in _STRUCTS else None
        if body is None:
            continue
        name = node.child_by_field_name("name")
        if name is not None and name.text:
            found.append((name.text.decode(), body))
        if node.parent is not None and node.parent.type == "type_definition":
            found += [(declared(d).name, body)
                      for d in node.parent.children_by_field_name("declarator")]  # fmt: skip
    return found


def lanes(count: int) -> str:
    """The names of the lanes of a vector."""
    return _LANES[:count]


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
    body = unit.structs.body(name)
    return tuple(_members(body, unit)) if body is not None else ()


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
