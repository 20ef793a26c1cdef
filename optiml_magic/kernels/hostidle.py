"""Launches that a pasted program does not come to: in branches not taken, or never called."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from optiml_magic.source.formals import text_of
from optiml_magic.source.notes import Note
from optiml_magic.source.syntax import line_of, name_of, nodes_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tree_sitter import Node

    from optiml_magic.kernels.hostscope import Call

_NAMES = frozenset({"identifier", "field_identifier", "type_identifier"})
_ENTRY = "main"


def coming_to(calls: Sequence[Call], root: Node) -> tuple[list[Call], list[Note]]:
    """The launches that a program may come to, and a note on each of the others.

    Where ``main`` leads to launches, those of functions that nothing mentions are none.
    """
    kept: list[Call] = []
    notes: list[Note] = []
    reached = [call for call in calls if call.is_reached]
    begins = {name_of(call.way[-1]) for call in reached}
    unasked = _unmentioned(root) if _ENTRY in begins and len(begins) > 1 else frozenset()
    for call in calls:
        outermost = call.way[-1]
        told = f"the launch of `{call.name}` on line {call.line} is left out: "
        if call not in reached:
            told += "run without arguments, the program does not reach it"
        elif outermost.start_byte in unasked:
            told += f"nothing calls `{name_of(outermost)}` (line {line_of(outermost)})"
        else:
            kept.append(call)
            continue
        notes.append(Note("launch", told, call.name))
    return kept, notes


def _unmentioned(root: Node) -> frozenset[int]:
    """The places of functions whose names stand nowhere but where they are declared."""
    times: Counter[str] = Counter()
    declared: dict[int, str] = {}
    for node in nodes_of(root):
        if node.type in _NAMES and not _is_declared(node):
            times[text_of(node)] += 1
        elif node.type == "function_definition" and name_of(node).isidentifier():
            declared[node.start_byte] = name_of(node)
    return frozenset(at for at, name in declared.items() if not times[name] and name != _ENTRY)


def _is_declared(name: Node) -> bool:
    parent = name.parent
    return (
        parent is not None
        and parent.type == "function_declarator"
        and parent.child_by_field_name("declarator") == name
    )
