"""What every item computes, whatever else is true: what a vector may load for all of them."""

from __future__ import annotations

from collections.abc import Iterator

from optiml_magic.kernels.expressions import Choice, Expr, is_logical
from optiml_magic.kernels.primitives.decided import Decided
from optiml_magic.kernels.primitives.reached import holds
from optiml_magic.kernels.tree import If, Leave, Loop, Statement, walk


def certain(decided: Decided, statement: Statement) -> Iterator[Expr]:
    """What every item computes in all rounds of the loops around, or in those that a test says.

    Such a test, ``if (dx != 0)``, compares nothing but the counters of loops that are unrolled.
    """
    if isinstance(statement, If) and statement in decided.taken:
        way = statement.then if decided.taken[statement] else statement.other
        yield from certain(decided, way) if way is not None else ()
        return
    for expr in statement.expressions:
        yield from _computed(decided, expr)
    if isinstance(statement, Loop) and not _is_whole(decided, statement):
        return
    branch = statement if isinstance(statement, If) else None
    if branch is None or _says_rounds(decided, branch) or _stays(decided, branch):
        for inner in statement.statements:
            yield from certain(decided, inner)


def _is_whole(decided: Decided, loop: Loop) -> bool:
    """Whether all rounds are made whole, but for those that a test of counters leaves out."""
    axis = decided.kernel.axes().get(loop)
    left = {s for s in decided.alive(loop.body) if isinstance(s, Leave)}
    for inner in decided.alive(loop.body):
        if isinstance(inner, If) and _says_rounds(decided, inner):
            left -= {s for s in walk(inner) if isinstance(s, Leave) and s.kind == "continue"}
    return axis is not None and axis.exact and not left


def _says_rounds(decided: Decided, statement: If) -> bool:
    """Whether a test compares nothing but counters, so that its round decides it."""
    condition, axes = decided.condition(statement), decided.kernel.axes()
    counters = {axes[loop].name: 0 for loop in decided.unrolled if loop in axes}
    return condition is not None and holds(condition, counters) is not None


def _stays(decided: Decided, statement: If) -> bool:
    """Whether it tests a border, which says as well what is loaded at all."""
    padded = decided.padded
    return padded is not None and (statement in padded.around or statement in padded.own)


def _computed(decided: Decided, expr: Expr) -> Iterator[Expr]:
    yield expr
    parts = expr.parts
    if isinstance(expr, Choice):
        parts = (decided.chosen[expr],) if expr in decided.chosen else (expr.test,)
    elif is_logical(expr):
        parts = expr.parts[:1]
    for part in parts:
        yield from _computed(decided, part)
