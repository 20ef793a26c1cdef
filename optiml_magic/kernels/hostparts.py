"""Launches that are given a part of an array which is passed from its beginning, too."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from optiml_magic.kernels.hostpointers import is_null, pointed, uncast
from optiml_magic.kernels.hostscope import DEEPEST
from optiml_magic.source.formals import text_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tree_sitter import Node

    from optiml_magic.kernels.hostscope import Call
    from optiml_magic.kernels.signature import Parameter


@dataclass(frozen=True, eq=False)
class _Use:
    """``part`` says which of the memory it is, and is empty for all of it."""

    argument: Node
    parameter: Parameter
    memory: tuple[int, str]  # the function that has it, and what that calls it
    part: str


def parts_passed(calls: Sequence[Call]) -> frozenset[int]:
    """The places of arguments that are parts of arrays which launches have in other ways, too.

    A task has an array for each: what one writes the other would not see.
    """
    uses = [
        _use(call, parameter, argument)
        for call in calls
        for parameter, argument in zip(call.kernel.parameters, call.arguments, strict=False)
        if parameter.pointer and not is_null(argument)
    ]
    found: set[int] = set()
    for use in uses if any(use.part for use in uses) else ():
        for other in uses:
            meet = use.part and use.part != other.part and use.memory == other.memory
            if meet and any(_stores(one.parameter) for one in (use, other)):
                found.add(use.argument.start_byte)
    return frozenset(found)


def _stores(parameter: Parameter) -> bool:
    return parameter.writes or parameter.adds


def _use(call: Call, parameter: Parameter, argument: Node) -> _Use:
    """The memory that an argument is of, by the names of the outermost function that has it."""
    part, function, values, node = "", call.function, call.names, argument
    for _ in range(DEEPEST):
        for _ in range(DEEPEST):
            name = pointed(node, values)
            made = (values.declared_pointer(name) if name else None) or node
            base = _base(uncast(made))
            if base is None:
                break
            part += f" {function.start_byte}: {text_of(made)}"
            node = base
        caller = call.host.callers.get(function.start_byte)
        given = caller.arguments.get(name) if caller is not None else None
        if caller is None or given is None:
            break
        function, node = caller.function, given
        values = call.host.values(caller.function, {}, caller.call)
    return _Use(argument, parameter, (function.start_byte, name or text_of(argument)), part)


def _base(node: Node) -> Node | None:
    """``p`` of ``p + n`` and of ``&p[n]``; None for what is not a part of an array."""
    if node.type == "binary_expression":
        left, right = (node.child_by_field_name(side) for side in ("left", "right"))
        return right if left is None or left.type == "number_literal" else left
    element = node.child_by_field_name("argument") if node.type == "pointer_expression" else None
    if element is None or element.type != "subscript_expression":
        return None
    first = text_of(element.child_by_field_name("indices")) == "[0]"
    return None if first else element.child_by_field_name("argument")
