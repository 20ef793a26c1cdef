"""Rounds in which the lanes of a warp combine what a local holds, by shuffles: five make it whole.

Source: CUDA C++ Programming Guide, "Warp Shuffle Functions" and "Warp Reduce Functions".
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from optiml_magic.kernels.editing import edited
from optiml_magic.kernels.expressions import Assign, Binary, Call, Expr, Literal, Name, Unary, every
from optiml_magic.kernels.functions import bare as bare_name
from optiml_magic.kernels.primitives.halving import flat, one_more
from optiml_magic.kernels.primitives.places import bare
from optiml_magic.kernels.primitives.striding import names
from optiml_magic.kernels.tree import (
    Blank,
    Block,
    Declare,
    Evaluate,
    Leave,
    Loop,
    Statement,
    Variable,
)
from optiml_magic.kernels.types import CType, named
from optiml_magic.kernels.unit import Unit

ROUNDS = frozenset({1, 2, 4, 8, 16})
Number = Callable[[Expr], int | None]
_SHUFFLES = {"__shfl_down_sync": False, "__shfl_xor_sync": True}
_REDUCING = {
    "__reduce_add_sync": "+", "__reduce_min_sync": "min", "__reduce_max_sync": "max",
    "__reduce_and_sync": "&", "__reduce_or_sync": "|", "__reduce_xor_sync": "^",
}  # fmt: skip
_WHOLE_MASK = (-1, 0xFFFFFFFF)
_EXTREMES = {"<": "min", ">": "max"}
_FOR = {"fmaxf": "float", "fminf": "float", "fmax": "double", "fmin": "double",
        "__hmax": "__half", "__hmin": "__half", "__hadd": "__half", "__hmul": "__half",
        "__fadd_rn": "float", "__fmul_rn": "float", "__dadd_rn": "double",
        "umax": "unsigned int", "umin": "unsigned int"}  # fmt: skip


@dataclass(frozen=True)
class Exchange:
    """Rounds of a warp, each by how far its lanes were ``apart``, and the ``calls`` they make.

    All ``lanes`` get what the first gets, bit by bit, where each gives what it takes. ``function``
    is what combines, where a function does.
    """

    variable: Variable
    op: str
    apart: frozenset[int]
    lanes: bool
    function: str
    calls: tuple[Call, ...]

    def of(self, kind: CType) -> Exchange | None:
        """The rounds with a local of this type; None where they do not combine all of it."""
        wide = kind.depth == 0 and kind.lanes == 1 and (kind.size in (4, 8) or kind.size == 2)
        if not wide or (kind.size == 2 and not kind.floating):
            return None
        if self.op in _EXTREMES:
            return replace(self, op=_EXTREMES[self.op]) if kind.integral else None
        if self.function.startswith("__reduce"):
            fits = kind.integral and kind.size == 4
        else:
            fits = self.function in ("", "min", "max") or _FOR.get(self.function) == kind.name
        return self if fits else None


def exchange_of(statement: Statement, number: Number) -> Exchange | None:
    """The rounds that a statement makes; None for any other statement."""
    match statement:
        case Loop():
            return _loop(statement, number)
        case Evaluate() | Block():
            found = _round(statement, number)
            apart = number(found[1]) if found is not None else None
            if found is not None and apart is not None:
                return replace(found[0], apart=frozenset({apart}))
    return None


def reduced(call: Call, number: Number) -> tuple[Expr, Exchange] | None:
    """The argument of a function that combines a whole warp's, and its rounds."""
    op = _REDUCING.get(bare_name(call.function))
    if op is None or len(call.arguments) != 2 or number(call.arguments[0]) not in _WHOLE_MASK:
        return None
    value = call.arguments[1]
    if not isinstance(value, Name) or value.variable is None:
        return None
    return value, Exchange(value.variable, op, ROUNDS, True, bare_name(call.function), (call,))


def helped(
    unit: Unit, call: Call, kind: CType | None, number: Number
) -> tuple[Expr, Exchange] | None:
    """The same for a function of the text, which does nothing else with its only parameter."""
    found = unit.called(call.function, len(call.arguments))
    if len(found) != 1 or len(call.arguments) != 1 or kind is None or call.receiver is not None:
        return None
    (function,) = found
    (given,) = function.parameters or (None,)
    *rounds, last = flat(function.body) or [Blank(None, 0)]
    if given is None or len(function.parameters) != 1 or not isinstance(last, Leave):
        return None
    plain = not (given.type.depth or given.type.reference or given.type.volatile)
    kinds = {p.name for p in function.template if p.is_type}
    generic = len(function.template) == 1 and given.type.base in kinds
    spelled = call.template[0] if call.template else given.type.base
    if not plain or (function.template and not generic) or len(call.template) > generic:
        return None
    told = named(spelled, unit.aliases)
    if (not generic or call.template) and not alike(told, kind):
        return None
    if function.result != replace(given.type, const=function.result.const):
        return None
    if not isinstance(last.value, Name) or last.value.variable is not given:
        return None
    steps = [exchange_of(s, number) for s in rounds]
    made = [s for s in steps if s is not None and s.variable is given]
    if not made or len(made) != len(steps):
        return None
    first, count = made[0], sum(len(s.apart) for s in made)
    ways = {(s.op, s.lanes, s.function) for s in made}
    if (
        len(ways) != 1
        or count != len(ROUNDS)
        or frozenset().union(*(s.apart for s in made)) != ROUNDS
    ):
        return None
    return call.arguments[0], replace(first, apart=ROUNDS, calls=(call,))


def _loop(loop: Loop, number: Number) -> Exchange | None:
    head = loop.before.variables if isinstance(loop.before, Declare) else ()
    if loop.kind != "for" or len(head) != 1 or head[0].value is None:
        return None
    found = _round(loop.body, number)
    if found is None or not names(found[1], head[0]):
        return None
    counts = _counts(loop, head[0], number)
    if counts is None or len(counts) != len(ROUNDS) or frozenset(counts) != ROUNDS:
        return None
    return replace(found[0], apart=ROUNDS)


def _counts(loop: Loop, counter: Variable, number: Number) -> list[int] | None:
    """What the counter of a loop is in each of its rounds; None where that is not read."""
    start = number(counter.value) if counter.value is not None else None
    counts: list[int] = []
    while start is not None and len(counts) <= len(ROUNDS):
        goes_on = _holds(loop.test, counter, start, number)
        if goes_on is None:
            return None
        if not goes_on:
            return counts
        counts.append(start)
        start = _next(loop.update, counter, start, number)
    return None


def _holds(test: Expr | None, counter: Variable, value: int, number: Number) -> bool | None:
    match test:
        case Name(variable=variable) if variable is counter:
            return value != 0
        case Binary(op=op, left=left, right=right) if names(left, counter):
            other = number(right)
            if other is not None:
                return {">": value > other, ">=": value >= other, "<": value < other,
                        "<=": value <= other, "!=": value != other}.get(op)  # fmt: skip
    return None


def _next(update: Expr | None, counter: Variable, value: int, number: Number) -> int | None:
    match update:
        case Assign(op="=", target=target, value=Binary(op=op, left=left, right=right)) if names(
            left, counter
        ):
            by = number(right)
        case Assign(op=assigned, target=target, value=right):
            op, by = assigned.removesuffix("="), number(right)
        case _:
            return None
    if not names(target, counter) or by is None or by < 1:
        return None
    return {"/": value // by, ">>": value >> by, "*": value * by, "<<": value << by}.get(op)


def _round(statement: Statement, number: Number) -> tuple[Exchange, Expr] | None:
    """One round, and how far its lanes are apart."""
    body = flat(statement)
    *lets, last = body or [Blank(None, 0)]
    assign = last.expression if isinstance(last, Evaluate) else None
    if not isinstance(assign, Assign) or len(lets) > 1:
        return None
    if lets:
        other = _given(lets[0])
        shuffled = [other.value] if other is not None and other.value is not None else []
        plain: Expr = assign
    else:
        other = None
        shuffled = [e for e in every(assign.value) if _shuffles(e)]
        plain = edited(assign, {e: Name(None, "?") for e in shuffled})
    combined = one_more(plain) if isinstance(plain, Assign) else None
    if combined is None or len(shuffled) != 1 or not isinstance(combined.target, Name):
        return None
    variable, taken, value = combined.target.variable, combined.values[0], shuffled[0]
    if variable is None or not isinstance(taken, Name) or taken.variable is not other:
        return None
    if other is not None and other.type.base not in ("auto", variable.type.base):
        return None
    if not isinstance(value, Call) or not _shuffles(value) or (other is None and taken.name != "?"):
        return None
    mask, own, apart, *width = value.arguments if len(value.arguments) in (3, 4) else [value] * 3
    if number(mask) not in _WHOLE_MASK or any(number(w) != 32 for w in width):
        return None
    if not isinstance(own, Name) or own.variable is not variable:
        return None
    function = assign.value.function if isinstance(assign.value, Call) and assign.op == "=" else ""
    lanes = _SHUFFLES[bare_name(value.function)]
    return Exchange(variable, combined.op, frozenset(), lanes, bare_name(function), (value,)), apart


def _shuffles(expr: Expr) -> bool:
    return isinstance(expr, Call) and bare_name(expr.function) in _SHUFFLES


def _given(statement: Statement) -> Variable | None:
    """The local that a declaration gives a value."""
    match statement:
        case Declare(variables=(Variable(storage="local", extents=()) as only,)):
            plain = not (only.type.reference or only.type.depth or only.value is None)
            return only if plain else None
    return None


def value_of(expr: Expr, known: Number) -> int | None:
    """The whole number that a constant expression is; ``known`` tells of names."""
    told = bare(expr)
    match told:
        case Literal(value=int() as value):
            return value
        case Name():
            return known(told)
        case Unary(op="~", operand=operand):
            inner = value_of(operand, known)
            return ~inner if inner is not None else None
        case Binary(op=op, left=left, right=right):
            one, other = value_of(left, known), value_of(right, known)
            if one is not None and other is not None and one >= 0 and 0 <= other < 2**31:
                return _made(op, one, other)
    return None


def alike(one: CType, other: CType) -> bool:
    """Whether two types are one, however it is called."""
    named_so = one.name == other.name or one.size != 2
    return named_so and replace(one, name="") == replace(other, name="")


def _made(op: str, one: int, other: int) -> int | None:
    match op:
        case "+" | "-":
            return one + other if op == "+" else one - other
        case "*":
            return one * other
        case "/" | "%" if other:
            return one // other if op == "/" else one % other
        case "<<" | ">>" if other < 32:
            return one << other if op == "<<" else one >> other
    return None
