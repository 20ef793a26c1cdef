"""What a loop of the host fills an array with: ``labels[i] = rand() % classes``."""

from __future__ import annotations

import re
from copy import copy
from typing import TYPE_CHECKING

from optiml_magic.errors import SourceError
from optiml_magic.kernels.hostallocated import called_by, end_of
from optiml_magic.kernels.hostbranches import outward
from optiml_magic.kernels.hostpointers import uncast
from optiml_magic.source.expressions import parse_expression
from optiml_magic.source.formals import formals, text_of
from optiml_magic.source.notes import Note
from optiml_magic.source.syntax import line_of, nodes_of, parse, passed_to, walk

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from tree_sitter import Node

    from optiml_magic.kernels.hostallocated import Memory
    from optiml_magic.kernels.hostscope import Host
    from optiml_magic.kernels.hostvalues import HostValues

INDEX, RANDOM = "INDEX", "RANDOM"  # the place of an element, and what ``rand`` gives for it
_COPIES = frozenset({"cudaMemcpy", "cudaMemcpyAsync"})
_RANDOM = re.compile(r"\b(?:std::)?(?:rand|random|lrand48)\(\)")
_CALL = re.compile(r"\b(\w+)\((\w*)\)")
_VECTOR = re.compile(r"make_u?(?:char|short|int|long|longlong)[234]")
_LOOPS = frozenset({"for_statement", "while_statement", "do_statement", "for_range_loop"})
_DEEPEST = 3  # functions within functions; ours
_LEAVES = _COPIES | {"free", "delete", "printf", "cudaFree", "cudaFreeHost", "cudaMallocHost",
                     "cudaMalloc", "cudaMallocManaged", "cudaMemPrefetchAsync", "malloc",
                     "assert"}  # fmt: skip


def filled(
    host: Host, memory: Memory, name: str, given: Node, values: HostValues, outer: Memory
) -> Iterator[Note]:
    """Notes with what the elements of a buffer are, where one statement of a loop sets them.

    ``memory`` is what the host calls the buffer, the task calls it ``name``; ``outer`` is that of
    the function that it is ``given`` to a launch in, and ``values`` are its numbers there. Of
    structs and vectors there is a note for each member.
    """
    inner = memory.function != outer.function
    body = _body(memory.function)
    sources = {*copied(memory.name, end_of(memory.function) if inner else given, body)}
    if inner and (sources or outer.name != memory.name):
        handed = memory.arguments
        sources = {_plain(handed[source]) for source in sources if source in handed}
    sources |= {*copied(outer.name, given, _body(outer.function))}
    source = (sources or {outer.name}).pop()
    if sources - {source}:
        return
    for member, change, text in _set(host, source, given, outer.function, values, 0):
        shown = text_of(change)
        told = f"`{name}` is filled as on line {line_of(change)}: `{shown[:60]}`"
        yield Note("filled", told, f"{name}.{member}" if member else name, extent=text)


def _body(function: Node) -> Node:
    return function.child_by_field_name("body") or function


def _set(
    host: Host, array: str, given: Node, function: Node, values: HostValues, depth: int
) -> list[tuple[str, Node, str]]:
    """The members of an array's elements, each with the statement that sets it and what to."""
    body = _body(function)
    sets = [node for node in nodes_of(body) if _member(node, array) is not None]
    handed = [*_handed_on(array, given, body)]
    if not sets and len(handed) == 1 and depth < _DEEPEST:
        return [*_by_function(host, array, *handed[0], values, depth)]
    if handed or not sets:
        return []
    if running := _running(sets, array, values):
        return [("", sets[-1], running)]
    members = [_member(node, array) or "" for node in sets]
    if len(members) > len({*members}) or ("" in members and len(members) > 1):
        return []
    found = [*_parts(sets[0])] if members == [""] else []
    found = found or [(member, node, node) for member, node in zip(members, sets, strict=True)]
    texts = [(member, change, _expressed(change, right, values)) for member, change, right in found]
    return [(member, change, text) for member, change, text in texts if text]


def _parts(change: Node) -> Iterator[tuple[str, Node, Node]]:
    """The members that ``e[i] = make_int2(a, b)`` sets."""
    right = change.child_by_field_name("right")
    function = right.child_by_field_name("function") if right is not None else None
    listed = right.child_by_field_name("arguments") if right is not None else None
    if _VECTOR.fullmatch(text_of(function)) and listed is not None:
        for axis, part in zip("xyzw", listed.named_children, strict=False):
            yield axis, change, part


def _by_function(
    host: Host, array: str, call: Node, at: int, values: HostValues, depth: int
) -> Iterator[tuple[str, Node, str]]:
    """What a function fills an array with that is given it, ``init(ids, n, limit)``."""
    name = text_of(call.child_by_field_name("function")).partition("<")[0].rpartition("::")[2]
    given = passed_to(call)
    whole = [_plain(text_of(one)) for one in given[:2]] == [array, array]
    if name in ("iota", "sequence") and whole:
        first = values.number(given[2]) if len(given) > 2 else 0
        if isinstance(first, int):
            yield "", call, f"{first} + {INDEX}"
        return
    for called in called_by(host, call):
        own = formals(called)
        if at < len(own) and own[at].name:
            inner = host.in_call(called, call, values)
            yield from _set(host, own[at].name, end_of(called), called, inner, depth + 1)


def _running(sets: Sequence[Node], array: str, values: HostValues) -> str:
    """Of ``p[0] = 0`` and ``p[i + 1] = p[i] + 16`` what that comes to at each place."""
    if len(sets) != 2:
        return ""
    first, step = ("".join(text_of(one).split()) for one in sets)
    begins = re.fullmatch(rf"{re.escape(array)}\[0\]=(\d+)", first)
    grown = re.fullmatch(
        rf"{re.escape(array)}\[(\w+)\+1\]=(?:{re.escape(array)}\[\1\]\+(.+)|(.+)\+{re.escape(array)}\[\1\])",
        step,
    ) or re.fullmatch(rf"{re.escape(array)}\[(\w+)\]={re.escape(array)}\[\1-1\]\+(.+)()", step)
    if begins is None or grown is None or not any(p.type in _LOOPS for _, p in outward(sets[1])):
        return ""
    right = sets[1].child_by_field_name("right")
    more = next(
        (n for n in (right.named_children if right is not None else ())
         if "".join(text_of(n).split()) in (grown[2], grown[3])), None,
    )  # fmt: skip
    each = values.number(more)
    return f"{begins[1]} + {each} * {INDEX}" if isinstance(each, int) and each >= 0 else ""


def copied(origin: str, given: Node, body: Node) -> Iterator[str]:
    """The arrays of the host that a buffer is a copy of before a launch."""
    for call in nodes_of(body):
        if call.type != "call_expression" or call.start_byte > given.start_byte:
            continue
        listed = call.child_by_field_name("arguments")
        arguments = listed.named_children if listed is not None else []
        copies = text_of(call.child_by_field_name("function")) in _COPIES and len(arguments) > 1
        if copies and text_of(uncast(arguments[0])) == origin:
            yield _plain(text_of(uncast(arguments[1])))


def _plain(source: str) -> str:
    """The array of ``v.data()``, ``&v[0]`` and the like."""
    return re.sub(r"\.(?:data|get|begin|end)\(\)$|^&(?=\w+\[0\]$)|\[0\]$", "", source)


def _member(node: Node, array: str) -> str | None:
    """Which member of an element of the array is set, empty for all of it; None for none."""
    left = node.child_by_field_name("left") if node.type == "assignment_expression" else None
    member = ""
    if left is not None and left.type == "field_expression":
        member, left = (
            text_of(left.child_by_field_name("field")),
            left.child_by_field_name("argument"),
        )
    element = left is not None and left.type == "subscript_expression"
    own = element and left is not None and text_of(left.child_by_field_name("argument")) == array
    return member if own else None


def _handed_on(array: str, given: Node, body: Node) -> Iterator[tuple[Node, int]]:
    """The calls that may fill an array before a launch, and at which place they are given it."""
    for node in nodes_of(body):
        if node.start_byte >= given.start_byte:
            break
        launches = any(child.type == "kernel_call_syntax" for child in node.children)
        leads_there = given.start_byte < node.end_byte
        if node.type != "call_expression" or launches or leads_there:
            continue  # a launch changes an array behind what it begins with
        listed = node.child_by_field_name("arguments")
        called = text_of(node.child_by_field_name("function")).partition("<")[0]
        handed = [re.sub(r"\.\w+\(\)$", "", text_of(uncast(a)))
                  for a in (listed.named_children if listed is not None else ())]  # fmt: skip
        if array in handed and called not in _LEAVES:
            yield node, handed.index(array)


def _expressed(change: Node, part: Node, values: HostValues) -> str:
    """What an element is set to, by its place and by random numbers; nothing where more decides.

    ``part`` is what one member of it is set to, or the change itself.
    """
    left, right = (change.child_by_field_name(side) for side in ("left", "right"))
    right = right if part == change else part
    if left is not None and left.type == "field_expression":
        left = left.child_by_field_name("argument")
    if left is None or text_of(change.child_by_field_name("operator")) != "=":
        return ""
    place = text_of(left.child_by_field_name("indices")).strip("[] ")
    counted = any(
        parent.type == "for_statement"
        and re.search(rf"\b{place}\b", text_of(parent.child_by_field_name("condition")))
        for _, parent in outward(change)
        if place.isidentifier()
    )
    if _is_left_out(change):
        return ""
    words = _CALL.sub(lambda call: _drawn(call, values), _RANDOM.sub(RANDOM, text_of(right)))
    if counted:
        words = re.sub(rf"\b{place}\b", INDEX, words)
    for counter, index in _of_rows(left, values):
        words = re.sub(rf"\b{counter}\b", index, words)
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


def _is_left_out(change: Node) -> bool:
    """Whether a round of the loop around it may do without a statement."""
    for _, parent in outward(change):
        if parent.type in _LOOPS:
            return False
        if parent.type in ("if_statement", "switch_statement"):
            return True
    return False


def _of_rows(left: Node, values: HostValues) -> Iterator[tuple[str, str]]:
    """The counters of ``a[i * 16 + j]`` by the place of the element."""
    place = "".join(text_of(left.child_by_field_name("indices")).strip("[] ").split())
    rows = re.fullmatch(r"(?:(\w+)\*(\w+)|\((\w+)\*(\w+)\))\+(\w+)", place)
    indices = left.child_by_field_name("indices")
    total = indices.named_child(0) if indices is not None else None
    product = total.child_by_field_name("left") if total is not None else None
    product = uncast(product) if product is not None else None
    long = values.number(product.child_by_field_name("right")) if product is not None else None
    if rows is not None and isinstance(long, int) and long > 0:
        yield rows[1] or rows[3], f"({INDEX} / {long})"
        yield rows[5], f"({INDEX} % {long})"


def _drawn(call: re.Match[str], values: HostValues) -> str:
    """``die(engine)`` of a ``uniform_int_distribution`` as what it draws, ``engine()`` as well."""
    if not call[2]:
        engine = rf"\b(?:mt19937(?:_64)?|default_random_engine|minstd_rand)\s+{call[1]}\b"
        return RANDOM if re.search(engine, text_of(values.body)) else call[0]
    ends = [values.number(end) for end in values.constructed(call[1])]
    if len(ends) != 2 or not all(isinstance(end, int) for end in ends):
        return call[0]
    low, high = ends
    return f"({low} + {RANDOM} % ({high} - {low} + 1))"
