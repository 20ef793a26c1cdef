"""The structs that a text defines: their members, the types of these, and where each begins.

Source: the Itanium C++ ABI for plain structs, which CUDA's host and device compilers share.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING

from tree_sitter import Node

from optiml_magic.errors import SourceError
from optiml_magic.kernels.lift_expressions import blanks
from optiml_magic.kernels.types import CType, named
from optiml_magic.source.aliases import resolve
from optiml_magic.source.dtypes import element_dtype
from optiml_magic.source.expressions import parse_expression
from optiml_magic.source.formals import declared, text_of
from optiml_magic.source.syntax import Syntax, walk
from optiml_magic.source.values import constants

if TYPE_CHECKING:
    from optiml_magic.kernels.unit import Unit

_STRUCTS = frozenset({"struct_specifier", "class_specifier"})
_INNER = frozenset({*_STRUCTS, "union_specifier"})
_LANES = "xyzw"
_ALIGNED = re.compile(rb"\b(?:alignas|__align__|(?:__)?aligned(?:__)?)\s*\(\s*(\d+)\s*\)")
_MOVED = re.compile(rb"\b(?:alignas|__align__|(?:__)?(?:aligned|packed)(?:__)?|virtual)\b")
_PACKED = re.compile(rb"\bpragma\s+pack\b|\b__pragma\b")
_COMMENT = re.compile(r"//[^\n]*|/\*.*?\*/", re.DOTALL)
#: What a plain structure has none of: functions, bits, values to begin with, members that stay.
_MORE = re.compile(r"[(:=~]|\b(?:const|volatile)\b")


@dataclass(frozen=True)
class Field:
    """One member, an array where it has a ``rank``; ``type`` is that of its elements.

    ``offset`` is in bytes, None where something before it is not understood. ``extents`` are those
    of an array whose are all numbers.
    """

    name: str
    type: CType
    rank: int
    offset: int | None
    extents: tuple[int, ...] = ()


@dataclass(frozen=True)
class Struct:
    """``size`` in bytes, None where it is not known; it begins where ``align`` divides."""

    fields: tuple[Field, ...]
    size: int | None
    align: int = 1

    def field(self, name: str) -> Field | None:
        return next((field for field in self.fields if field.name == name), None)


class Structs:
    """The structs of one text by name."""

    def __init__(self, syntax: Syntax, aliases: Mapping[str, str]) -> None:
        self._aliases = aliases
        self._syntax = syntax
        self._bodies = dict(_bodies(syntax))
        self._known: dict[str, Struct | None] = {}

    def body(self, name: str) -> Node | None:
        """The members' text of the struct of that name; None where the text does not define it."""
        return self._bodies.get(name.rpartition("::")[2])

    def hides(self, name: str) -> bool:
        """Whether the struct of that name has members of which its methods alone may speak."""
        body = self.body(name)
        if body is None:
            return False
        closed = body.parent is not None and body.parent.type == "class_specifier"
        said = "private" if closed else "public"
        for child in body.named_children:
            if child.type == "access_specifier":
                said = (child.text or b"").decode().strip(": \n\t")
            elif child.type == "field_declaration" and said != "public":
                return True
        return False

    def of(self, name: str) -> Struct | None:
        """The struct of that name; None where the text does not define it."""
        name = name.rpartition("::")[2]
        if name not in self._known:
            self._known[name] = None  # of one that holds itself nothing is known
            body = self.body(name)
            if body is not None:
                self._known[name] = self._read(body)
        return self._known[name]

    def begins_with_zeros(self, name: str) -> bool:
        """Whether ``T{}`` of a struct is all zero: no member has another value to begin with."""
        body, known = self.body(name), self.of(name)
        if body is None or body.text is None or known is None or known.size is None:
            return False
        text = _COMMENT.sub("", body.text.decode())
        names = "|".join(n for n, own in self._bodies.items() if own == body)
        made = re.search(rf"(?<!~)\b(?:{names})\s*\(", text)
        own = (n for n in body.named_children if all(c.text != b"static" for c in n.children))
        given = any(node.child_by_field_name("default_value") for node in own)
        if given or (made and not re.search(rf"\b(?:{names})\s*\(\s*\)\s*=\s*default", text)):
            return False
        parts = (f.type.name for f in known.fields if f.type.kind == "record" and not f.type.depth)
        return all(map(self.begins_with_zeros, parts))

    def is_plain(self, name: str) -> bool:
        """Whether a struct is its members and no more, which change: bytes that may be copied."""
        body, known = self.body(name), self.of(name)
        if body is None or body.text is None or known is None or known.size is None:
            return False
        parts = (f.type.name for f in known.fields if f.type.kind == "record" and not f.type.depth)
        return not _MORE.search(_COMMENT.sub("", body.text.decode())) and all(
            map(self.is_plain, parts)
        )

    def type(self, spelled: str, names: Mapping[str, str]) -> CType:
        """A type by its text, with the size of a struct."""
        found = named(spelled, names)
        if found.kind == "record" and found.size is None and (known := self.of(found.name)):
            return replace(found, size=known.size)
        return found

    def _least_alignment(self, body: Node) -> int | None:
        """What is asked for around a body, 1 where nothing; None where its members may move."""
        text, own = self._syntax.text, body.parent or body
        around = own.parent if own.parent and own.parent.type == "type_definition" else own
        end = text.find(b";", body.end_byte)
        beside = text[around.start_byte : body.start_byte] + text[body.end_byte : end]
        asked = [int(number) for number in _ALIGNED.findall(beside)]
        derived = any(node.type == "base_class_clause" for node in own.children)
        moved = _MOVED.search(_ALIGNED.sub(b"", beside)) or _MOVED.search(
            text, body.start_byte, end
        )
        return None if derived or moved or _PACKED.search(text) else max(asked, default=1)

    @cached_property
    def _numbers(self) -> dict[str, int]:
        return constants(self._syntax)

    def _extents(self, declarator: Node) -> tuple[int, ...]:
        """Those of an array, the outermost first; empty where one of them is not a number."""
        found: list[int] = []
        node: Node | None = declarator
        while node is not None and node.type == "array_declarator":
            try:
                text = text_of(node.child_by_field_name("size"))
                found.append(parse_expression(text).evaluate(self._numbers))
            except SourceError:
                return ()
            node = node.child_by_field_name("declarator")
        return tuple(found[::-1])

    def _read(self, body: Node) -> Struct:
        fields: list[Field] = []
        widest = self._least_alignment(body)
        offset: int | None = 0 if widest is not None else None
        widest = widest or 1
        for node in body.named_children:
            if node.type != "field_declaration" or any(c.text == b"static" for c in node.children):
                continue
            kind_of = node.child_by_field_name("type")
            named_here = node.child_by_field_name("declarator") is not None
            if (
                kind_of is not None
                and kind_of.type in _INNER
                and not (named_here or kind_of.child_by_field_name("name"))
            ):
                offset = None  # the members of a structure or a union without a name
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
                extents = self._extents(declarator) if arrays and shape.depth == arrays else ()
                fields.append(Field(shape.name, kind, arrays, offset if align else None, extents))
                known = size is not None and align and (len(extents) == arrays)
                whole = math.prod(extents) * size if known and size else 0
                offset = offset + whole if whole and offset is not None else None
        size = -(-offset // widest) * widest if offset is not None and fields else None
        return Struct(tuple(fields), size, widest)


def _alignment(kind: CType, structs: Structs) -> int | None:
    if kind.depth:
        return 8
    if kind.kind == "record":
        inner = structs.of(kind.name)
        if inner is None or inner.size is None:
            return None
        return inner.align
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
