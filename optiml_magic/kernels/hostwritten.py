"""Launches as host code writes them: ``<<<...>>>`` and ``cudaLaunchKernel``."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from optiml_magic.kernels.hostpointers import uncast
from optiml_magic.source.formals import declared, text_of
from optiml_magic.source.syntax import nodes_of, passed_to

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tree_sitter import Node

    from optiml_magic.source.syntax import Syntax

_BY_FUNCTION = frozenset({"cudaLaunchKernel", "cudaLaunchCooperativeKernel"})


@dataclass(frozen=True, eq=False)
class Written:
    """One launch; ``name`` has the template arguments, ``config`` grid, block and so on."""

    name: str
    config: tuple[Node, ...]
    arguments: tuple[Node, ...]
    node: Node


def written_launches(syntax: Syntax) -> Iterator[Written]:
    """The launches of a text in order."""
    for node in nodes_of(syntax.root):
        if node.type != "call_expression":
            continue
        called, given = node.child_by_field_name("function"), tuple(passed_to(node))
        config = next((n for n in node.children if n.type == "kernel_call_syntax"), None)
        if config is not None:
            parts = tuple(n for n in config.named_children if n.type != "comment")
            yield Written(text_of(called), parts, given, node)
        elif text_of(called) in _BY_FUNCTION and len(given) >= 4:
            name = text_of(uncast(given[0])).removeprefix("&").strip()
            yield Written(name, (*given[1:3], *given[4:5]), _listed(given[3], node), node)


def _listed(array: Node, call: Node) -> tuple[Node, ...]:
    """What the addresses in an array of a launch are those of; empty where that is unclear."""
    function = call.parent
    while function is not None and function.type != "function_definition":
        function = function.parent
    if function is None:
        return ()
    made = [
        node.child_by_field_name("value")
        for node in nodes_of(function)
        if node.type == "init_declarator" and declared(node).name == text_of(array)
    ]
    if made and made[0] is not None and made[0].type == "initializer_list" and len(made) == 1:
        listed = [node for node in made[0].named_children if node.type != "comment"]
    else:
        listed = [] if made else _set_in_turn(text_of(array), function)
    found = [uncast(node) for node in listed]
    pointees = [node.child_by_field_name("argument") for node in found if _is_address(node)]
    given = tuple(node for node in pointees if node is not None)
    return given if len(given) == len(found) else ()


def _set_in_turn(array: str, function: Node) -> list[Node]:
    """What ``args[0] = &x; args[1] = &n;`` put into an array, each place once."""
    found: list[Node] = []
    for node in nodes_of(function):
        left = node.child_by_field_name("left") if node.type == "assignment_expression" else None
        right = node.child_by_field_name("right")
        if left is None or right is None or not text_of(left).startswith(f"{array}["):
            continue
        if text_of(left) != f"{array}[{len(found)}]":
            return []
        found.append(right)
    return found


def _is_address(node: Node) -> bool:
    return node.type == "pointer_expression" and text_of(node).startswith("&")
