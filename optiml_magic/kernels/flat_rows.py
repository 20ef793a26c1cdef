"""A parameter that is a pointer to rows, ``float a[][N]`` or ``float (*a)[N]``, as a flat array.

Both lead to the same elements one behind the other. Afterwards it is ``float* a``, and what was
``a[i][j]`` is ``a[(i) * (N) + (j)]``: one index, as every other stage reads them.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from tree_sitter import Node

from optiml_magic.errors import SourceError
from optiml_magic.source.edits import Edit, apply
from optiml_magic.source.expressions import parse_expression
from optiml_magic.source.formals import declared, parameters, text_of
from optiml_magic.source.notes import Note
from optiml_magic.source.syntax import Syntax, in_macros, name_of, parse, walk
from optiml_magic.source.values import constants

_GREATEST = 2**31 - 1


@dataclass(frozen=True)
class _Rows:
    """``lengths`` are the texts of all extents but the first; ``wide`` if 32 bits may be few."""

    node: Node
    name: str
    lengths: tuple[str, ...]
    wide: bool


def flat_rows(text: str, defines: Mapping[str, int] | None = None) -> tuple[str, tuple[Note, ...]]:
    """The text with such parameters of kernels flat, and a note for each; no line of it moves.

    One that is used otherwise than by its elements and rows stays as it is. ``defines`` are integer
    macros from outside of the text.
    """
    syntax = parse(text)
    known = {**(defines or {}), **constants(syntax)}
    edits, notes = list[Edit](), list[Note]()
    for function in walk(syntax.root):
        body = function.child_by_field_name("body")
        if function.type != "function_definition" or body is None:
            continue
        if "__global__" not in text_of(function).partition("(")[0]:
            continue
        rows = {one.name: one for one in _rows(function, body, syntax, known)}
        for one in rows.values():
            edits.append(Edit(one.node.start_byte, one.node.end_byte, _flat(one)))
            told = f"`{text_of(one.node)}` of `{name_of(function)}` is passed as a flat array"
            notes.append(Note("flat_rows", told, one.name))
        if rows:
            edits.append(Edit(body.start_byte, body.end_byte, _spelled(body, rows)))
    return apply(text, edits), tuple(notes)


def _rows(function: Node, body: Node, syntax: Syntax, known: Mapping[str, int]) -> Iterator[_Rows]:
    for node in parameters(function):
        declarator = node.child_by_field_name("declarator")
        extents = _extents(declarator)
        name = declared(declarator).name
        if extents is None or not name or in_macros(syntax, name):
            continue
        uses = [n for n in walk(body) if n.type == "identifier" and text_of(n) == name]
        if all(_indexed(use) for use in uses):
            yield _Rows(node, name, tuple(extents[1:]), _elements(extents, known) > _GREATEST)


def _extents(declarator: Node | None) -> list[str] | None:
    """Those of ``a[R][C]``, the first empty where it is not said; None for any other shape."""
    extents: list[str] = []
    while declarator is not None and declarator.type == "array_declarator":
        extents.insert(0, text_of(declarator.child_by_field_name("size")))
        declarator = declarator.child_by_field_name("declarator")
    if declarator is not None and declarator.type == "parenthesized_declarator":
        inner = declarator.named_children[0] if declarator.named_children else None
        if inner is None or inner.type != "pointer_declarator":
            return None
        declarator = inner.child_by_field_name("declarator")
        extents.insert(0, "")
    plain = declarator is not None and declarator.type == "identifier"
    return extents if plain and len(extents) > 1 and all(extents[1:]) else None


def _elements(extents: list[str], known: Mapping[str, int]) -> float:
    """How many there are, infinite where that is not said."""
    try:
        return math.prod(parse_expression(extent).evaluate(known) for extent in extents)
    except SourceError:
        return math.inf


def _indexed(use: Node) -> bool:
    parent = use.parent
    if parent is None or parent.type != "subscript_expression":
        return False
    return parent.child_by_field_name("argument") == use


def _flat(rows: _Rows) -> str:
    """The declaration of the parameter."""
    declarator = rows.node.child_by_field_name("declarator")
    end = (declarator.start_byte if declarator is not None else 0) - rows.node.start_byte
    kind = " ".join((rows.node.text or b"")[:end].decode().split())
    return f"{kind}* {rows.name}"


def _spelled(node: Node, rows: Mapping[str, _Rows]) -> str:
    """A node's text with the elements of flat arrays by one index."""
    place = _place(node, rows)
    if place is not None:
        one, indices = place
        parts = [_factor(_spelled(index, rows)) for index in indices]
        at, wide = parts[0], "(long long)" if one.wide else ""
        for number, length in enumerate(one.lengths):
            at = f"{wide}{at} * {_factor(length)}"
            if number + 1 < len(parts):
                at = f"{at} + {parts[number + 1]}"
            if number + 1 < len(one.lengths):
                at = f"({at})"
            wide = ""
        return f"{one.name}[{at}]" if len(parts) > len(one.lengths) else f"({one.name} + {at})"
    raw, shown, last = node.text or b"", "", 0
    for child in node.children:
        start = child.start_byte - node.start_byte
        shown += raw[last:start].decode() + _spelled(child, rows)
        last = child.end_byte - node.start_byte
    return shown + raw[last:].decode()


def _factor(text: str) -> str:
    return text if re.fullmatch(r"\w+", text) else f"({text})"


def _place(node: Node, rows: Mapping[str, _Rows]) -> tuple[_Rows, list[Node]] | None:
    """The array and the indices, the first one first, of an element or of a row of one."""
    indices: list[Node] = []
    current: Node | None = node
    while current is not None and current.type == "subscript_expression":
        listed = current.child_by_field_name("indices")
        inner = [c for c in listed.named_children if c.type != "comment"] if listed else []
        if len(inner) != 1:
            return None
        indices.insert(0, inner[0])
        current = current.child_by_field_name("argument")
    one = rows.get(text_of(current)) if current is not None and indices else None
    if one is None or current is None or current.type != "identifier":
        return None
    return (one, indices) if len(indices) <= len(one.lengths) + 1 else None
