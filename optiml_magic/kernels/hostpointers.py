"""Which memory a pointer of the host leads to, by the name that the host has for it."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from optiml_magic.source.formals import text_of
from optiml_magic.source.syntax import nodes_of, walk

if TYPE_CHECKING:
    from collections.abc import Collection

    from tree_sitter import Node

    from optiml_magic.kernels.hostvalues import HostValues

_CAST = re.compile(r"(?:static|reinterpret|const)_cast\s*<|(?:thrust::)?raw_pointer_cast$")
_BEGIN = re.compile(r"(?:(?:mutable_|const_)?data(?:_ptr)?(?:<.*>)?|get|contiguous)")
_ELEMENT = re.compile(r"\w+ ?\[ ?\d+ ?\]")
_SWAP = re.compile(r"(?:std::)?swap")
_NULL = frozenset({"nullptr", "NULL", "0"})
_DEEPEST = 8


def is_null(argument: Node) -> bool:
    """Whether an argument leads nowhere."""
    return text_of(uncast(argument)) in _NULL


def pointed(argument: Node, values: HostValues, depth: int = 0) -> str:
    """The host's name for the memory at whose beginning an argument points; empty for none.

    A pointer, a tensor or a vector that is made once, from another, stands for that one.
    """
    node = uncast(argument)
    if node.type == "identifier":
        origin = values.pointer(text_of(node)) if depth < _DEEPEST else None
        found = pointed(origin, values, depth + 1) if origin is not None else ""
        return found or text_of(node)
    if node.type == "field_expression":
        origin = values.members.get(text_of(node)) if depth < _DEEPEST else None
        if origin is not None:
            return pointed(origin, values, depth + 1) or text_of(node)
        calls = any(inner.type == "call_expression" for inner in walk(node))
        return "" if calls else text_of(node)
    if node.type == "subscript_expression":
        return text_of(node) if _ELEMENT.fullmatch(text_of(node)) else ""
    if node.type == "pointer_expression" and text_of(node).startswith("&"):
        first = node.child_by_field_name("argument")
        if first is None or first.type != "subscript_expression":
            return ""
        base = first.child_by_field_name("argument")
        at = text_of(first.child_by_field_name("indices"))
        return pointed(base, values, depth) if base is not None and at == "[0]" else ""
    owner = _owner(node) if node.type == "call_expression" else None
    return pointed(owner, values, depth) if owner is not None else ""


def read_at(argument: Node, values: HostValues) -> Node:
    """Where the memory of an argument is taken from the name that it has: at its last local."""
    node = uncast(argument)
    for _ in range(_DEEPEST):
        origin = values.pointer(text_of(node)) if node.type == "identifier" else None
        if origin is None or not pointed(origin, values):
            break
        node = uncast(origin)
    return node


def uncast(node: Node) -> Node:
    """An expression without the casts and brackets around it."""
    inner: Node | None = node
    while inner is not None:
        node, inner = inner, None
        if node.type == "cast_expression":
            inner = node.child_by_field_name("value")
        elif node.type == "parenthesized_expression" and node.named_child_count == 1:
            inner = node.named_child(0)
        elif node.type == "call_expression":
            listed = node.child_by_field_name("arguments")
            cast = _CAST.match(text_of(node.child_by_field_name("function")))
            if cast and listed is not None and listed.named_child_count == 1:
                inner = listed.named_child(0)
    return node


def times_set(name: str, place: Node, body: Node) -> int:
    """How often a pointer has been set before a place: each time it may lead to other memory."""
    found = 0
    for node in nodes_of(body):
        if node.start_byte >= place.start_byte:
            break
        if node.type == "assignment_expression":
            found += text_of(node.child_by_field_name("left")) == name
        elif node.type == "call_expression":
            listed = node.child_by_field_name("arguments")
            if _SWAP.fullmatch(text_of(node.child_by_field_name("function"))):
                found += name in [text_of(n) for n in (listed.named_children if listed else ())]
    return found


def exchanged(
    name: str, since: Node, place: Node, body: Node, but: frozenset[str]
) -> set[str] | None:
    """The pointers whose memory one may lead to from one place to another; None where any may.

    Functions of the names in ``but`` are looked at by who asks.
    """
    ahead = [n for n in nodes_of(body) if n.start_byte < place.start_byte]
    between = [n for n in ahead if since.end_byte <= n.start_byte]
    found, before = {name}, 0
    while len(found) > before:
        before = len(found)
        if any(_named_anew(node, found) for node in ahead):
            return None
        for node in between:
            left, right = (node.child_by_field_name(part) for part in ("left", "right"))
            if node.type == "assignment_expression" and text_of(left) in found:
                other = uncast(right) if right is not None else node
                plain = text_of(node.child_by_field_name("operator")) == "="
                if not plain or other.type != "identifier":
                    return None
                found.add(text_of(other))
            elif node.type == "update_expression":
                if text_of(node.child_by_field_name("argument")) in found:
                    return None
            elif node.type == "call_expression":
                given = node.child_by_field_name("arguments")
                names = {text_of(uncast(n)) for n in (given.named_children if given else ())}
                function = text_of(node.child_by_field_name("function"))
                if _SWAP.fullmatch(function):
                    found |= names if names & found else set()
                elif function not in but and names & {f"&{own}" for own in found}:
                    return None
    return found


def _named_anew(node: Node, names: Collection[str]) -> bool:
    """Whether a pointer is behind another one, or a reference, from a declaration on."""
    if node.type != "init_declarator":
        return False
    value, declared = (node.child_by_field_name(part) for part in ("value", "declarator"))
    spelled = text_of(uncast(value)) if value is not None else ""
    refers = any(part.type == "reference_declarator" for part in walk(declared or node))
    return spelled in {f"&{name}" for name in names} or (refers and spelled in names)


def _owner(call: Node) -> Node | None:
    """What a method of that name gives the memory of, as ``x.data()``."""
    function, listed = (call.child_by_field_name(part) for part in ("function", "arguments"))
    method = function.child_by_field_name("field") if function is not None else None
    if listed is None or listed.named_child_count or not _BEGIN.fullmatch(text_of(method)):
        return None
    return function.child_by_field_name("argument") if function is not None else None
