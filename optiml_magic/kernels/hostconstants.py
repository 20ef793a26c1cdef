"""Numbers that the host copies to ``__constant__`` scalars and structs before it launches."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from optiml_magic.kernels.hostpointers import uncast
from optiml_magic.source.edits import Edit
from optiml_magic.source.formals import text_of
from optiml_magic.source.notes import Note
from optiml_magic.source.syntax import line_of, nodes_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from tree_sitter import Node

    from optiml_magic.kernels.hostscope import Host
    from optiml_magic.kernels.structs import Struct, Structs

_COPY = "cudaMemcpyToSymbol"
_WORD = 4  # bytes
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
    """What one line of the host copies to a constant, as the text would begin it."""

    words: str
    line: int


def copied_numbers(root: Node, host: Host, structs: Structs) -> dict[str, Copied]:
    """What the host copies once, and always, to constants, by their names.

    A whole number, or a struct all of whose members are numbers that are known.
    """
    kinds = dict[str, str]()
    for node in _declarations(root):
        kind = text_of(node.child_by_field_name("type"))
        kinds |= {text_of(d): kind for d in node.children_by_field_name("declarator")}
    found: dict[str, Copied | None] = {}
    for call in nodes_of(root):
        function = call.child_by_field_name("function") if call.type == "call_expression" else None
        if function is None or not text_of(function).partition("<")[0].startswith(_COPY):
            continue
        listed = call.child_by_field_name("arguments")
        given = [a for a in (listed.named_children if listed else ()) if a.type != "comment"]
        name = text_of(uncast(given[0])) if given else ""
        kind = kinds.get(name, "")
        struct = structs.of(kind) if not _has_functions(root, kind) else None
        found[name] = None if name in found else _copied(call, given, host, struct)
    return {name: copied for name, copied in found.items() if copied is not None}


def _has_functions(root: Node, kind: str) -> bool:
    """Whether a struct has functions of its own, one of which may say how it begins."""
    return any(
        text_of(node.child_by_field_name("name")) == kind
        and any(n.type == "function_declarator" for n in nodes_of(node))
        for node in nodes_of(root) if node.type in ("struct_specifier", "class_specifier")
    )  # fmt: skip


def _declarations(root: Node) -> Iterator[Node]:
    for node in nodes_of(root):
        words = map(text_of, node.children) if node.type == "declaration" else ()
        if "__constant__" in words:
            yield node


def _copied(call: Node, given: list[Node], host: Host, struct: Struct | None) -> Copied | None:
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
    values, own = host.as_run(function, call), source.child_by_field_name("argument")
    if struct is None:
        value = values.number(own)
        return Copied(str(value), line_of(call)) if isinstance(value, int) else None
    words = list[str]()
    for field in struct.fields:
        number = values.number(values.members.get(f"{text_of(own)}.{field.name}"))
        real = field.type.kind == "float"
        plain = (field.type.kind == "int" or real) and not field.rank and not field.type.depth
        if number is None or not plain or (isinstance(number, float) and not real):
            return None
        words.append(
            f"{float(number)!r}{'f' * (field.type.size == _WORD)}" if real else str(number)
        )
    return Copied(f"{{{', '.join(words)}}}", line_of(call))


def initialised(root: Node, copied: Mapping[str, Copied]) -> tuple[list[Edit], list[Note]]:
    """Declarations of constants with the numbers that are copied there, as constants of the text.

    Only where all that a declaration declares are such numbers, and none has a value of its own.
    """
    edits, notes = list[Edit](), list[Note]()
    for node in _declarations(root):
        words = [child for child in node.children if text_of(child) == "__constant__"]
        declarators = node.children_by_field_name("declarator")
        names = [text_of(d) if d.type == "identifier" else "" for d in declarators]
        whole = text_of(node.child_by_field_name("type")) in _WHOLE
        if not set(names) <= {*copied} or any(
            whole == copied[name].words.startswith("{") for name in names
        ):
            continue
        edits.append(Edit(words[0].end_byte, words[0].end_byte, " const"))
        for name, declarator in zip(names, declarators, strict=True):
            one, end = copied[name], declarator.end_byte
            edits.append(Edit(end, end, f" = {one.words}"))
            told = f"`{name}` is {one.words}, as line {one.line} copies it"
            notes.append(Note("constant", told, name))
    return edits, notes
