"""What the host copies to ``__constant__`` variables before it launches: sizes, and numbers."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from optiml_magic.kernels.hostmemory import calls, controls
from optiml_magic.kernels.hostpointers import uncast
from optiml_magic.kernels.hostvalues import HostValues
from optiml_magic.kernels.types import named
from optiml_magic.source.edits import Edit
from optiml_magic.source.formals import declared, text_of
from optiml_magic.source.notes import Note
from optiml_magic.source.syntax import line_of, nodes_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from tree_sitter import Node

    from optiml_magic.kernels.hostscope import Host
    from optiml_magic.kernels.structs import Structs
    from optiml_magic.kernels.types import CType

_TO_SYMBOL = frozenset({"cudaMemcpyToSymbol", "cudaMemcpyToSymbolAsync"})
_ADDRESS = "cudaGetSymbolAddress"
_WORD = 4  # bytes


def filled_constants(root: Node, fixed: Mapping[str, int]) -> Iterator[Note]:
    """A note with how many elements each ``__constant__`` has that the host fills."""
    wanted = {text_of(args[0]): line_of(args[0]) for _, args in calls(root, _TO_SYMBOL)}
    for node in _declarations(root):
        for declarator in node.children_by_field_name("declarator"):
            name, inner, whole = declared(declarator).name, declarator, 1
            if inner.type == "init_declarator":
                inner = inner.child_by_field_name("declarator") or inner
            values = HostValues(node, fixed)
            while inner.type == "array_declarator":
                extent = values.number(inner.child_by_field_name("size"))
                whole *= extent if isinstance(extent, int) else 0
                inner = inner.child_by_field_name("declarator") or node
            if name in wanted and whole > 0:
                has = f"`{name}` has {whole} elements, which line {wanted[name]} fills"
                yield Note("allocated", has, name, whole, extent=str(whole))


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
    for function, args in calls(root, _TO_SYMBOL | {_ADDRESS}):
        name = text_of(uncast(args[1 if function == _ADDRESS else 0]))
        again = name in found or function == _ADDRESS
        kind = kinds.get(name, "")
        found[name] = None if again else _copied(args, kind, {name, kind}, host, structs)
    return {name: copied for name, copied in found.items() if copied is not None}


def _declarations(root: Node) -> Iterator[Node]:
    for node in nodes_of(root):
        words = map(text_of, node.children) if node.type == "declaration" else ()
        if "__constant__" in words:
            yield node


def _copied(
    args: tuple[Node, ...], kind: str, names: set[str], host: Host, structs: Structs
) -> Copied | None:
    """What a call copies to a whole constant of this type; None where that is not certain."""
    source, size, *offset = [*args[1:4], None, None][:3]
    function = source.parent if source is not None else None
    while function is not None and function.type != "function_definition":
        function = function.parent
    if source is None or size is None or function is None or any(controls(source)):
        return None
    if any(at is not None and text_of(at) != "0" for at in offset):
        return None
    address = uncast(source)
    own = address.child_by_field_name("argument") if address.type == "pointer_expression" else None
    struct, body, scalar = structs.of(kind), structs.body(kind), named(kind, {})
    whole = struct.size if struct is not None else scalar.size
    words = re.sub(r"^sizeof|[()]", " ", text_of(size)).strip()
    if own is None or words not in {*names, text_of(own), str(whole)}:
        return None
    values = host.as_run(function, source, every=True)
    if struct is None:
        return _made(_spelled(values.number(own), scalar), source)
    if body is None or any(node.type == "function_declarator" for node in nodes_of(body)):
        return None  # a constructor may say how it begins
    members = [
        "" if field.rank
        else _spelled(values.number(values.members.get(f"{text_of(own)}.{field.name}")), field.type)
        for field in struct.fields
    ]  # fmt: skip
    return _made(f"{{{', '.join(members)}}}" if all(members) else "", source)


def _made(words: str, source: Node) -> Copied | None:
    return Copied(words, line_of(source)) if words else None


def _spelled(number: float | None, kind: CType) -> str:
    """A number as one of a type; empty where it is not known, or not one that the type holds."""
    if number is None or kind.depth or kind.lanes != 1:
        return ""
    if kind.kind == "float":
        return f"{float(number)!r}{'f' if kind.size == _WORD else ''}"
    most = 1 << 8 * (kind.size or 0)
    fits = -most // 2 <= number < most // 2 if kind.signed else 0 <= number < most
    return str(number) if isinstance(number, int) and kind.integral and fits else ""


def initialised(root: Node, copied: Mapping[str, Copied]) -> tuple[list[Edit], list[Note]]:
    """Declarations of constants with the numbers that are copied there, as constants of the text.

    Only where all that a declaration declares are such numbers, and none has a value of its own.
    """
    edits, notes = list[Edit](), list[Note]()
    for node in _declarations(root):
        word = next(child for child in node.children if text_of(child) == "__constant__")
        declarators = node.children_by_field_name("declarator")
        names = [text_of(d) if d.type == "identifier" else "" for d in declarators]
        if not set(names) <= {*copied}:
            continue
        edits.append(Edit(word.end_byte, word.end_byte, " const"))
        for name, declarator in zip(names, declarators, strict=True):
            one, end = copied[name], declarator.end_byte
            edits.append(Edit(end, end, f" = {one.words}"))
            known = f"`{name}` is {one.words}, as line {one.line} copies it"
            notes.append(Note("constant", known, name))
    return edits, notes
