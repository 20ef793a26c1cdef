"""Who calls the host functions of a text, so that a wrapper has the numbers of its caller."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from optiml_magic.kernels.hostdeduced import deduced
from optiml_magic.kernels.hostouter import class_of, constructed_in, functions_of, member_name
from optiml_magic.kernels.signature import split_name
from optiml_magic.source.formals import formals, text_of
from optiml_magic.source.syntax import line_of, name_of, nodes_of, passed_to, walk

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

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
    found: dict[int, Caller] = {}
    for called, given, arguments, node in _calls(syntax.root):
        within = _within(node)
        if within is None or within == called:
            continue
        made = call_of(called, given, arguments, node, within)
        first = found.setdefault(called.start_byte, made)
        if first.call != node:
            found[called.start_byte] = replace(first, others=(*first.others, line_of(node)))
    return found


def call_of(
    called: Node, given: Sequence[str], arguments: Sequence[Node], call: Node, within: Node
) -> Caller:
    """One call of a function, ``given`` these template arguments."""
    taken = formals(called)
    pairs = dict(zip([formal.name for formal in taken], arguments, strict=False))
    template = list(_template(called))
    types = dict(zip(template, given, strict=False))
    pointed = [(formal.type, formal.depth) for formal in taken]
    types |= deduced(template[len(given) :], pointed, arguments, within, {})
    return Caller(within, call, pairs, types)


def _calls(root: Node) -> Iterator[tuple[Node, tuple[str, ...], list[Node], Node]]:
    """The functions that are called, with template arguments, arguments, and where.

    An object that is made calls the constructor of its class.
    """
    free: dict[str, list[Node]] = {}
    members: dict[str, list[Node]] = {}
    made: dict[str, list[Node]] = {}
    for node in functions_of(root):
        owner, name = class_of(node), member_name(node)
        if not owner and "__global__" not in _head(node):
            free.setdefault(name_of(node), []).append(node)
        elif owner:
            (made if name == owner else members).setdefault(name, []).append(node)
    for name, node, arguments in constructed_in(root, made):
        if len(made[name]) == 1:
            yield made[name][0], (), arguments, node
    for node in nodes_of(root):
        if node.type != "call_expression":
            continue
        function = node.child_by_field_name("function")
        method = function.child_by_field_name("field") if function is not None else None
        name, given = split_name(text_of(function if method is None else method))
        meant = members.get(name, []) if method is not None else free.get(name) or members.get(name)
        if meant is not None and len(meant) == 1:
            yield meant[0], given, passed_to(node), node


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
