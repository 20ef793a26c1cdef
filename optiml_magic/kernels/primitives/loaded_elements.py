"""The element of a global array that a load takes all of, or a member of, in a kernel's own text.

``p[i]`` of ``p[i].x``, of ``Body b = p[i];`` and of ``dist(p[i], q)``, by value or by reference.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator

from optiml_magic.kernels.expressions import (
    Assign,
    Call,
    Expr,
    Index,
    Lambda,
    Member,
    Name,
    Step,
    Unary,
    Unread,
    every,
)
from optiml_magic.kernels.primitives.base import Kernel
from optiml_magic.kernels.primitives.effects import Effects, names
from optiml_magic.kernels.primitives.items import element, is_plain
from optiml_magic.kernels.primitives.places import reached
from optiml_magic.kernels.primitives.tabulated import is_value
from optiml_magic.kernels.reading import Access
from optiml_magic.kernels.tree import Declare, Function, Verbatim, expressions, walk
from optiml_magic.kernels.types import CType

_NUMBERS = ("int", "float", "bool")


def whole_element(
    kernel: Kernel, effects: Effects, access: Access, touching: Collection[Expr]
) -> Index | None:
    """The element that a load takes a part of, where it stays the same as long as the kernel runs.

    None where a copy of it would not do. ``touching`` are all expressions that load or store.
    """
    if access.space != "global" or access.mode != "load" or access.verbatim:
        return None
    array = kernel.reading.arrays.get(access.array)
    if array is None or access.index is None or array.element.depth:
        return None
    place = _place(kernel, effects, access)
    if place is None or not isinstance(place.base, Name):
        return None
    pointer = place.base.variable
    if pointer not in kernel.function.parameters or pointer is None or pointer.type.volatile:
        return None
    if pointer.name != access.array or pointer.name in effects.moved or pointer.type.depth != 1:
        return None
    if not is_value(kernel, place.index, touching):
        return None
    if not kernel.reading.symbols.known(access.index):
        return None
    if any(effects.same(access.array, other) for other in kernel.reading.written):
        return None
    return place


def is_number(kind: CType) -> bool:
    return kind.kind in _NUMBERS and not kind.depth


def _place(kernel: Kernel, effects: Effects, access: Access) -> Index | None:
    """Where the element of an access stands: what it is a member of, or what a call is given."""
    if access.call is None and is_plain(kernel, access) and access.element.kind != "vector":
        found = element(effects, access)
        return found if isinstance(found, Index) else None
    kind = kernel.reading.arrays[access.array].element
    if kind.kind not in ("vector", "record") or not kind.size or _is_made(kernel, kind):
        return None
    if access.call is None:
        node = access.node
        while isinstance(node, Member) and not node.arrow:
            node = node.base
        whole = isinstance(node, Index) and _is_whole(kernel, node, kind)
        return node if isinstance(node, Index) and whole and node not in _led_to(kernel) else None
    return _given(kernel, access, kind)


def _is_made(kernel: Kernel, kind: CType) -> bool:
    """Whether a structure has constructors, so that a local of it may not begin without a value."""
    body = kernel.unit.structs.body(kind.name)
    words = body.text.decode() if body is not None and body.text is not None else ""
    return re.search(rf"\b{re.escape(kind.name.rpartition('::')[2])}\s*\(", words) is not None


def _is_whole(kernel: Kernel, place: Index, kind: CType) -> bool:
    """Whether this is an element as its array holds them, asked for by the array's own name."""
    if not isinstance(place.base, Name) or place.base.variable is None:
        return False
    words = place.base.variable.type
    return words.depth == 1 and kernel.unit.structs.type(words.base, kernel.unit.aliases) == kind


def _given(kernel: Kernel, access: Access, kind: CType) -> Index | None:
    """The argument of a call of which the function asks for a member, by a reference."""
    call, node = access.call, access.node
    if not isinstance(call, Call) or call.receiver is not None or call.callee is not None:
        return None
    called = kernel.unit.called(call.function, len(call.arguments))
    while isinstance(node, Member) and not node.arrow:
        node = node.base
    if len(called) != 1 or not isinstance(node, Name) or not _only_asks(kernel, called[0]):
        return None
    for parameter, argument in zip(called[0].parameters, call.arguments, strict=False):
        if parameter is node.variable and isinstance(argument, Index):
            leads = parameter.type.reference and parameter.type.const and not parameter.type.depth
            return argument if leads and _is_whole(kernel, argument, kind) else None
    return None


def _only_asks(kernel: Kernel, function: Function) -> bool:
    """Whether a function asks for nothing beside what references lead to: it takes no address."""
    for one in (function, *reached(kernel.unit, function)):
        if any(isinstance(s, Verbatim) for s in walk(one.body)):
            return False
        given = {p for p in one.parameters if p.type.reference}
        for e in expressions(one.body):
            if isinstance(e, Lambda | Unread):
                return False
            if isinstance(e, Unary) and e.op == "&" and given & names([e.operand]):
                return False
    return True


def _led_to(kernel: Kernel) -> Iterator[Expr]:
    """What addresses and references lead to, which a copy is not, and what is given a value."""
    body = kernel.function.body
    for statement in walk(body):
        for variable in statement.variables if isinstance(statement, Declare) else ():
            if variable.type.reference and variable.value is not None:
                yield from every(variable.value)
    for e in expressions(body):
        match e:
            case Unary(op="&", operand=operand):
                yield from every(operand)
            case Assign(target=target) | Step(target=target):
                yield from every(target)
            case Call(receiver=Expr() as receiver):
                yield from every(receiver)
