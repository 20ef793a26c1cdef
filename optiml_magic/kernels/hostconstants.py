"""Numbers that the host copies to ``__constant__`` scalars before it launches: what these are."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from optiml_magic.kernels.hostpointers import uncast
from optiml_magic.source.edits import Edit
from optiml_magic.source.formals import text_of
from optiml_magic.source.notes import Note
from optiml_magic.source.syntax import line_of, nodes_of

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tree_sitter import Node

    from optiml_magic.kernels.hostscope import Host

_COPY = "cudaMemcpyToSymbol"
_CONTROLS = frozenset(
    {"if_statement", "for_statement", "while_statement", "do_statement", "switch_statement",
     "for_range_loop", "conditional_expression"}
)  # fmt: skip
_WHOLE = frozenset(
    {"int", "unsigned", "unsigned int", "long", "unsigned long", "long long", "unsigned long long",
     "short", "size_t", "int32_t", "uint32_t", "int64_t", "uint64_t"}
)  # fmt: skip


@dataclass(frozen=True)
class Copied:
    """The number that one line of the host copies to a constant."""

    value: int
    line: int


def copied_numbers(root: Node, host: Host) -> dict[str, Copied]:
    """The whole numbers that the host copies once, and always, to constants, by their names."""
    found: dict[str, Copied | None] = {}
    for call in nodes_of(root):
        function = call.child_by_field_name("function") if call.type == "call_expression" else None
        if function is None or not text_of(function).partition("<")[0].startswith(_COPY):
            continue
        listed = call.child_by_field_name("arguments")
        given = [a for a in (listed.named_children if listed else ()) if a.type != "comment"]
        name = text_of(uncast(given[0])) if given else ""
        found[name] = None if name in found else _copied(call, given, host)
    return {name: copied for name, copied in found.items() if copied is not None}


def _copied(call: Node, given: list[Node], host: Host) -> Copied | None:
    source = (
        uncast(given[1]) if len(given) in (3, 5) else None
    )  # with an offset of nothing, or none
    if source is None or source.type != "pointer_expression":
        return None
    function = call.parent
    while function is not None and function.type != "function_definition":
        if function.type in _CONTROLS:
            return None
        function = function.parent
    if function is None:
        return None
    value = host.as_run(function, call).number(source.child_by_field_name("argument"))
    return Copied(value, line_of(call)) if isinstance(value, int) else None


def initialised(root: Node, copied: Mapping[str, Copied]) -> tuple[list[Edit], list[Note]]:
    """Declarations of constants with the numbers that are copied there, as constants of the text.

    Only where all that a declaration declares are such numbers, and none has a value of its own.
    """
    edits, notes = list[Edit](), list[Note]()
    for node in nodes_of(root):
        words = [child for child in node.children if text_of(child) == "__constant__"]
        if node.type != "declaration" or not words:
            continue
        declarators = node.children_by_field_name("declarator")
        names = [text_of(d) if d.type == "identifier" else "" for d in declarators]
        if text_of(node.child_by_field_name("type")) not in _WHOLE or not set(names) <= {*copied}:
            continue
        edits.append(Edit(words[0].end_byte, words[0].end_byte, " const"))
        for name, declarator in zip(names, declarators, strict=True):
            one, end = copied[name], declarator.end_byte
            edits.append(Edit(end, end, f" = {one.value}"))
            told = f"`{name}` is {one.value}, as line {one.line} copies it"
            notes.append(Note("constant", told, name, one.value))
    return edits, notes
