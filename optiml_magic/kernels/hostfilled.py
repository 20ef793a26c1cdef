"""What a loop of the host fills an array with: ``labels[i] = rand() % classes``."""

from __future__ import annotations

import re
from copy import copy
from typing import TYPE_CHECKING

from optiml_magic.errors import SourceError
from optiml_magic.kernels.hostbranches import outward
from optiml_magic.kernels.hostpointers import uncast
from optiml_magic.source.expressions import parse_expression
from optiml_magic.source.formals import text_of
from optiml_magic.source.notes import Note
from optiml_magic.source.syntax import line_of, nodes_of, parse, walk

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tree_sitter import Node

    from optiml_magic.kernels.hostvalues import HostValues

INDEX, RANDOM = "INDEX", "RANDOM"  # the place of an element, and what ``rand`` gives for it
_COPIES = frozenset({"cudaMemcpy", "cudaMemcpyAsync"})
_RANDOM = re.compile(r"\b(?:std::)?(?:rand|random|lrand48)\(\)")
_CALL = re.compile(r"\b(\w+)\(\w+\)")
_LEAVES = _COPIES | {"free", "delete", "printf", "cudaFree", "cudaFreeHost", "cudaMallocHost",
                     "cudaMalloc", "cudaMallocManaged", "cudaMemPrefetchAsync", "malloc",
                     "assert"}  # fmt: skip


def filled(origin: str, name: str, given: Node, body: Node, values: HostValues) -> Iterator[Note]:
    """A note with what the elements of a buffer are, where one statement of a loop sets them.

    ``origin`` is what the host calls the buffer that is ``given`` to a launch, and ``name`` what
    the task does; ``values`` are the numbers of the program.
    """
    sources = {*_copied(origin, given, body)} or {origin}
    source = sources.pop()
    sets = [node for node in nodes_of(body) if _sets(node, source)]
    if sources or len(sets) != 1 or _is_handed_on(source, given, body):
        return
    text = _expressed(sets[0], values)
    if text:
        shown = text_of(sets[0])
        told = f"`{name}` is filled as on line {line_of(sets[0])}: `{shown[:60]}`"
        yield Note("filled", told, name, extent=text)


def _copied(origin: str, given: Node, body: Node) -> Iterator[str]:
    """The arrays of the host that a buffer is a copy of before a launch."""
    for call in nodes_of(body):
        if call.type != "call_expression" or call.start_byte > given.start_byte:
            continue
        listed = call.child_by_field_name("arguments")
        arguments = listed.named_children if listed is not None else []
        copies = text_of(call.child_by_field_name("function")) in _COPIES and len(arguments) > 1
        if copies and text_of(uncast(arguments[0])) == origin:
            yield re.sub(r"\.(?:data|get|begin)\(\)$|^&(?=\w+\[0\]$)|\[0\]$", "",
                         text_of(uncast(arguments[1])))  # fmt: skip


def _sets(node: Node, array: str) -> bool:
    left = node.child_by_field_name("left") if node.type == "assignment_expression" else None
    element = left is not None and left.type == "subscript_expression"
    return element and left is not None and text_of(left.child_by_field_name("argument")) == array


def _is_handed_on(array: str, given: Node, body: Node) -> bool:
    """Whether a function that may fill it otherwise is given an array before a launch."""
    for node in nodes_of(body):
        if node.start_byte >= given.start_byte:
            break
        if node.type != "call_expression":
            continue
        listed = node.child_by_field_name("arguments")
        called = text_of(node.child_by_field_name("function")).partition("<")[0]
        handed = [re.sub(r"\.\w+\(\)$", "", text_of(uncast(a)))
                  for a in (listed.named_children if listed is not None else ())]  # fmt: skip
        if array in handed and called not in _LEAVES:
            return True
    return False


def _expressed(change: Node, values: HostValues) -> str:
    """What an element is set to, by its place and by random numbers; nothing where more decides."""
    left, right = (change.child_by_field_name(side) for side in ("left", "right"))
    if left is None or text_of(change.child_by_field_name("operator")) != "=":
        return ""
    place = text_of(left.child_by_field_name("indices")).strip("[] ")
    counted = any(
        parent.type == "for_statement"
        and re.search(rf"\b{place}\b", text_of(parent.child_by_field_name("condition")))
        for _, parent in outward(change)
        if place.isidentifier()
    )
    words = _CALL.sub(lambda call: _drawn(call, values), _RANDOM.sub(RANDOM, text_of(right)))
    if counted:
        words = re.sub(rf"\b{place}\b", INDEX, words)
    reread = parse(f"auto x = {words};").root
    made = next((n for n in walk(reread) if n.type == "init_declarator"), None)
    own = copy(values)
    own.kept = frozenset({INDEX, RANDOM})
    text = own.text(made.child_by_field_name("value")) if made is not None else None
    try:
        found = parse_expression(text) if text is not None else None
    except SourceError:
        return ""
    return str(found) if found is not None and found.names <= {INDEX, RANDOM} else ""


def _drawn(call: re.Match[str], values: HostValues) -> str:
    """``die(engine)`` of a ``uniform_int_distribution`` as what it draws."""
    ends = [values.number(end) for end in values.constructed(call[1])]
    if len(ends) != 2 or not all(isinstance(end, int) for end in ends):
        return call[0]
    low, high = ends
    return f"({low} + {RANDOM} % ({high} - {low} + 1))"
