"""Where the memory of a pointer comes from: its own function, another that sees it, or a helper."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from optiml_magic.kernels.hostmemory import ALLOCATE, calls, is_pointer
from optiml_magic.kernels.hostouter import class_of, functions_of, member_name, own_names
from optiml_magic.kernels.hostpointers import uncast
from optiml_magic.kernels.signature import split_name
from optiml_magic.source.formals import formals, text_of
from optiml_magic.source.syntax import nodes_of, passed_to

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from tree_sitter import Node

    from optiml_magic.kernels.hostscope import Host
    from optiml_magic.kernels.hostvalues import HostValues

_DEEPEST = 4  # helpers within helpers; ours


@dataclass(frozen=True, eq=False)
class Memory:
    """The function that allocates, what it calls the pointer, and its numbers where it does.

    ``arguments`` are what its call gives each parameter, as they are spelled.
    """

    function: Node
    name: str
    known: HostValues
    arguments: Mapping[str, str] = field(default_factory=dict)


def end_of(function: Node) -> Node:
    """Behind all that a function does."""
    body = function.child_by_field_name("body") or function
    return body.children[-1] if body.children else body


def function_seeing(host: Host, function: Node, name: str) -> Node:
    """The function that sets a pointer which this one sees from outside; itself where unclear."""
    root = re.split(r"[\[.]", name.removeprefix("this->"), maxsplit=1)[0]
    if root in own_names(function) or _is_set(function, name):
        return function
    owner = class_of(function)
    found = [
        other
        for other in functions_of(host.root)
        if other != function
        and class_of(other) in ("", owner)
        and root not in own_names(other)
        and _is_set(other, name)
    ]
    caller = host.callers.get(found[0].start_byte) if found else None
    again = caller is not None and caller.others  # for another object, or with another size
    return found[0] if len(found) == 1 and not again else function


def memory_of(host: Host, function: Node, name: str, known: HostValues) -> Memory:
    """The allocation of a pointer, in a function that is called for it if not in its own."""
    found = Memory(function, name, known)
    for _ in range(_DEEPEST):
        body = found.function.child_by_field_name("body") or found.function
        if any(is_pointer(given[0], found.name) for _, given in calls(body, ALLOCATE)):
            break
        made = found.known.pointer(found.name)
        inner = [*_returned(host, found, made)] if made is not None else []
        inner += _handed(host, found, body)
        if len(inner) != 1:
            break
        found = inner[0]
    return found


def _is_set(function: Node, name: str) -> bool:
    """Whether a function allocates a pointer, sets it, or lends it to one that may."""
    body = function.child_by_field_name("body")
    own = name.removeprefix("this->")
    for node in nodes_of(body) if body is not None else ():
        field = {"assignment_expression": "left", "pointer_expression": "argument"}.get(node.type)
        lent = node.type == "assignment_expression" or text_of(node).startswith("&")
        part = text_of(node.child_by_field_name(field)) if field is not None and lent else ""
        if part.removeprefix("this->") == own:
            return True
    return False


def _returned(host: Host, outer: Memory, made: Node) -> Iterator[Memory]:
    """What a helper returns that it allocated: ``float* d = on_device(n);``."""
    call = uncast(made)
    for called in called_by(host, call):
        body = called.child_by_field_name("body") or called
        allocated = {text_of(uncast(given[0])).lstrip("&") for _, given in calls(body, ALLOCATE)}
        returned = {
            text_of(part)
            for node in nodes_of(body)
            if node.type == "return_statement"
            for part in nodes_of(node)
            if part.type == "identifier"
        }
        for name in allocated & returned:
            yield _in_call(host, called, call, name, outer)


def _handed(host: Host, outer: Memory, body: Node) -> Iterator[Memory]:
    """What a helper allocates that it is given the address of: ``allocate(&d, n);``."""
    for call in nodes_of(body):
        if call.type != "call_expression":
            continue
        given = passed_to(call)
        for at, argument in enumerate(given):
            inner = uncast(argument)
            address = inner.type == "pointer_expression" and text_of(inner).startswith("&")
            spelled = text_of(inner.child_by_field_name("argument")) if address else text_of(inner)
            if spelled.removeprefix("this->") != outer.name.removeprefix("this->"):
                continue
            for called in called_by(host, call):
                own = formals(called)
                if at < len(own) and (own[at].depth > 1 if address else own[at].reference):
                    yield _in_call(host, called, call, own[at].name, outer)


def _in_call(host: Host, called: Node, call: Node, name: str, outer: Memory) -> Memory:
    given = passed_to(call)
    own = [formal.name for formal in formals(called)]
    spelled = {formal: text_of(uncast(one)) for formal, one in zip(own, given, strict=False)}
    spelled = {formal: outer.arguments.get(one, one) for formal, one in spelled.items()}
    return Memory(called, name, host.in_call(called, call, outer.known), spelled)


def called_by(host: Host, call: Node) -> list[Node]:
    """The one function of the text that a call is of, if that is clear."""
    if call.type != "call_expression":
        return []
    name = split_name(text_of(call.child_by_field_name("function")))[0].rpartition("::")[2]
    found = [one for one in functions_of(host.root) if member_name(one) == name]
    return found if len(found) == 1 else []
