"""Atomic operations whose order is no matter though one of them is told something: claims.

``if (atomicCAS(&dist[v], -1, level + 1) == -1) atomicExch(changed, 1);`` of all that come to an
element lets one go on, whichever it is, and what that one does is the same for each of them. The
same value that all exchange for what is there is left in the end in any order.
"""

from __future__ import annotations

from collections.abc import Iterable

from optiml_magic.kernels.expressions import (
    Binary,
    Call,
    Cast,
    Expr,
    Index,
    Literal,
    Name,
    Unary,
    every,
)
from optiml_magic.kernels.functions import ATOMICS
from optiml_magic.kernels.primitives.base import Kernel
from optiml_magic.kernels.primitives.effects import Effects
from optiml_magic.kernels.reading import Access
from optiml_magic.kernels.tree import Blank, Block, Evaluate, If, Statement, walk

_SIZES = (4, 8)


def claimed(kernel: Kernel) -> frozenset[Access]:
    """The exchanges that rounds, and threads, may make in any order.

    Nothing else is done to their arrays, and all on one array are by the same numbers, which only
    what the kernel is given says.
    """
    effects, found = Effects(kernel), set[Access]()
    accesses = kernel.reading.accesses
    for array in dict.fromkeys(a.array for a in accesses if a.mode == "atomic" and a.array):
        own = [a for a in accesses if effects.same(a.array, array)]
        if any(a.array != array or not _is_plain(kernel, a) for a in own):
            continue
        calls = [a.node for a in own if isinstance(a.node, Call)]
        said = {tuple(kernel.show(Evaluate(None, 0, e)) for e in c.arguments[1:]) for c in calls}
        given = [e for c in calls for e in c.arguments[1:]]
        if len(said) != 1 or not all(_is_given(effects, e) for e in given):
            continue
        functions = {c.function for c in calls}
        if functions == {"atomicExch"} and {*calls} <= effects.unasked:
            found |= {*own}
        if functions == {"atomicCAS"} and {*calls} <= _asked_for(kernel, effects):
            found |= {*own}
    return frozenset(found)


def _is_plain(kernel: Kernel, access: Access) -> bool:
    """Whether an access is one of the two, by itself, on a whole number."""
    call, kind = access.node, access.element
    return (
        access.mode == "atomic" and access.call is None and access.space == "global"
        and isinstance(call, Call) and call.function in ATOMICS and not call.template
        and len(call.arguments) == {"atomicExch": 2, "atomicCAS": 3}.get(call.function)
        and not kernel.unit.called(call.function, len(call.arguments))
        and kind.integral and kind.lanes == 1 and kind.size in _SIZES
    )  # fmt: skip


def _is_given(effects: Effects, expr: Expr) -> bool:
    """Whether all threads have a number alike, in all rounds: numbers, and what never changes."""
    given = {p for p in effects.kernel.function.parameters if not p.type.depth}
    return all(
        isinstance(e, Literal | Binary | Unary | Cast)
        or (isinstance(e, Name) and e.variable in given and e.name not in effects.moved)
        for e in every(expr)
    )  # fmt: skip


def _asked_for(kernel: Kernel, effects: Effects) -> set[Expr]:
    """The calls of which a branch asks whether they have found what they looked for.

    All that it does then is the same for whoever comes to it.
    """
    found = set[Expr]()
    for statement in walk(kernel.function.body):
        match statement:
            case If(
                before=None,
                test=Binary(op="==", left=Call(function="atomicCAS") as call, right=wanted),
                then=then, other=None,
            ) if len(call.arguments) == 3 and _all_alike(effects, _statements(then)):  # fmt: skip
                shown = (kernel.show(Evaluate(None, 0, e)) for e in (wanted, call.arguments[1]))
                if len({*shown}) == 1:
                    found.add(call)
    return found


def _statements(then: Statement) -> Iterable[Statement]:
    return then.body if isinstance(then, Block) else (then,)


def _all_alike(effects: Effects, statements: Iterable[Statement]) -> bool:
    """Whether all do the same by them: atomic operations that say nothing, at one place."""
    for statement in statements:
        match statement:
            case Blank():
                continue
            case Evaluate(expression=Call(function=name, arguments=(place, *values))) if (
                name in ATOMICS and name != "atomicCAS" and len(values) == 1
            ):  # fmt: skip
                if not _is_given(effects, values[0]) or not _is_one(effects, place):
                    return False
            case _:
                return False
    return True


def _is_one(effects: Effects, place: Expr) -> bool:
    """Whether an address is the same for all: a parameter, or an element of one."""
    match place:
        case Name(variable=v, name=name):
            return v in effects.kernel.function.parameters and name not in effects.moved
        case Unary(op="&", operand=Index(base=Name() as base, index=index)):
            return _is_one(effects, base) and _is_given(effects, index)
        case Binary(op="+", left=Name() as left, right=right):
            return _is_one(effects, left) and _is_given(effects, right)
    return False
