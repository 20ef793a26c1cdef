"""When a list that rounds append to is full, and the loop ends: ``count < k``, ``count == k``."""

from __future__ import annotations

from dataclasses import dataclass

from optiml_magic.errors import SourceError
from optiml_magic.kernels.expressions import Binary, Cast, Expr, Literal, Name, Step, Unary, every
from optiml_magic.kernels.primitives.base import Kernel, NotLegal
from optiml_magic.kernels.primitives.effects import Effects, names
from optiml_magic.kernels.primitives.grids import said_alike
from optiml_magic.kernels.primitives.sizes import measured, whole_number
from optiml_magic.kernels.tree import Block, Declare, Loop, Variable, walk
from optiml_magic.source.expressions import parse_expression

_GOING = {"<": "<", "!=": "!="}
_LEAVING = {">=": "<", "==": "!="}
_TURNED = {">": "<", "<": ">", "<=": ">=", ">=": "<=", "==": "==", "!=": "!="}


@dataclass(frozen=True)
class Full:
    """Rounds append while the list has fewer than ``end`` elements; ``asked`` are sizes for it."""

    end: Expr
    asked: tuple[str, ...]


def full(
    kernel: Kernel, effects: Effects, loop: Loop, count: Variable, test: Expr,
    *, late: bool = False, going: bool = False,
) -> Full:  # fmt: skip
    """What a test says of when a list is full; where rounds are ``going`` it holds until then.

    One that comes ``late`` is asked when an element is there already, so that the list holds one.
    Raises NotLegal for any other test.
    """
    while isinstance(test, Unary) and test.op == "!":
        test, going = test.operand, not going
    ops = _GOING if going else _LEAVING
    unread = NotLegal(f"`{kernel.spelled(test)}` does not say when a list is full", loop.line)
    if not isinstance(test, Binary):
        raise unread
    sides = ((test.left, test.op, test.right), (test.right, _TURNED.get(test.op, ""), test.left))
    for own, op, end in sides:
        grows = isinstance(own, Step) and own.op == "++" and own.prefix and late
        counted = own.target if isinstance(own, Step) and grows else own
        if isinstance(counted, Name) and counted.variable is count and op in ops:
            if not _steady(kernel, effects, loop, end) or count in names([end]):
                raise unread
            exact = ops[op] == "!="
            start = begun(kernel, effects, loop, count)
            return Full(end, _room(kernel, end, start, late, loop) if late or exact else ())
    raise unread


def begun(kernel: Kernel, effects: Effects, loop: Loop, count: Variable) -> int | None:
    """The number that a count certainly has where a loop begins."""
    for block in (s for s in walk(kernel.function.body) if isinstance(s, Block)):
        if loop not in block.body:
            continue
        before = block.body[: block.body.index(loop)]
        for at, statement in enumerate(before):
            if isinstance(statement, Declare) and count in statement.variables:
                kept = count not in effects.changed(*before[at + 1 :])
                return whole_number(kernel, count.value) if kept else None
    return None


def _steady(kernel: Kernel, effects: Effects, loop: Loop, end: Expr) -> bool:
    """Whether an end is a whole number made of what stays as it is in the loop."""
    changed = {*effects.changed(loop)} | {
        v for s in walk(loop) if isinstance(s, Declare) for v in s.variables
    }
    kind = kernel.reading.types.get(end)
    whole = kind is not None and kind.integral and not kind.depth
    plain = all(
        isinstance(e, Name | Literal | Cast) or (isinstance(e, Binary) and e.op in ("+", "-", "*"))
        for e in every(end)
    )
    return whole and plain and not names([end]) & (changed | effects.lent)


def _room(kernel: Kernel, end: Expr, start: int | None, late: bool, loop: Loop) -> tuple[str, ...]:
    """What sizes have to be so that a list is not full before its first element is asked for."""
    if start is None:
        raise NotLegal("how long the list is at first is not known", loop.line)
    least = start + late
    number = whole_number(kernel, end)
    if number is not None and number >= least:
        return ()
    try:
        condition = parse_expression(f"{kernel.spelled(end)} >= {least}")
        given = {p.name for p in kernel.function.parameters} | {*kernel.program.values}
        told = {*condition.names} <= given and said_alike(kernel, condition.names)
        met = kernel.facts is not None and told and measured(kernel, condition)
    except SourceError:
        met = False
    if not met:
        raise NotLegal("the list may be full before its first element", loop.line)
    return (str(condition),)
