"""Who calls the host functions of a text, so that a wrapper has the numbers of its caller."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from optiml_magic.kernels.hostdeduced import deduced
from optiml_magic.kernels.signature import split_name
from optiml_magic.source.formals import formals, text_of
from optiml_magic.source.syntax import line_of, name_of, nodes_of, walk

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from tree_sitter import Node

    from optiml_magic.source.syntax import Syntax


@dataclass(frozen=True, eq=False)
class Caller:
    """The first call of a function: where it stands, and what it gives each parameter.

    ``others`` are the lines of further calls.
    """

    function: Node
    call: Node
    arguments: Mapping[str, Node]
    types: Mapping[str, str]
    others: tuple[int, ...] = ()


def callers(syntax: Syntax) -> dict[int, Caller]:
    """The callers by the place of what they call; of overloads nobody knows which is meant."""
    known: dict[str, list[Node]] = {}
    for node in nodes_of(syntax.root):
        if node.type == "function_definition" and "__global__" not in _head(node):
            known.setdefault(name_of(node), []).append(node)
    found: dict[int, Caller] = {}
    for node in nodes_of(syntax.root):
        if node.type != "call_expression":
            continue
        name, given = split_name(text_of(node.child_by_field_name("function")))
        (called, *others) = known.get(name, [None])
        within = _within(node)
        if called is None or others or within is None or within == called:
            continue
        names = [formal.name for formal in formals(called)]
        listed = node.child_by_field_name("arguments")
        arguments = [a for a in (listed.named_children if listed else ()) if a.type != "comment"]
        pairs = dict(zip(names, arguments, strict=False))
        template = list(_template(called))
        types = dict(zip(template, given, strict=False))
        taken = [(formal.type, formal.depth) for formal in formals(called)]
        types |= deduced(template[len(given) :], taken, arguments, within, {})
        first = found.setdefault(called.start_byte, Caller(within, node, pairs, types))
        if first.call != node:
            found[called.start_byte] = replace(first, others=(*first.others, line_of(node)))
    return found


def _head(function: Node) -> str:
    declarator = function.child_by_field_name("declarator")
    end = declarator.start_byte if declarator is not None else function.end_byte
    return (function.text or b"")[: end - function.start_byte].decode(errors="replace")


def _within(node: Node) -> Node | None:
    parent = node.parent
    while parent is not None and parent.type != "function_definition":
        parent = parent.parent
    return parent


def _template(function: Node) -> Iterator[str]:
    parent = function.parent
    if parent is None or parent.type != "template_declaration":
        return
    listed = parent.child_by_field_name("parameters")
    for node in listed.named_children if listed is not None else ():
        names = [n for n in walk(node) if n.type in ("identifier", "type_identifier")]
        if names:
            yield text_of(names[-1])
