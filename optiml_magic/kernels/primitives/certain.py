"""What every item computes, whatever else is true: what a vector may load for all of them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from optiml_magic.kernels.expressions import Choice, Expr, is_logical
from optiml_magic.kernels.primitives.decided import Decided
from optiml_magic.kernels.primitives.reached import holds
from optiml_magic.kernels.tree import If, Leave, Loop, Statement, walk


def certain(decided: Decided, statement: Statement) -> Iterator[Expr]:
    """What every item computes in all rounds of the loops around, or in those that a test says.

    Such a test, ``if (dx != 0)``, compares nothing but the counters of loops that are unrolled. An
    element that both ways of another test load, or store, is certain as well.
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
    elif branch.other is not None and not any(isinstance(s, Leave) for s in walk(branch)):
        yield from _either(
            decided, [*certain(decided, branch.then)], [*certain(decided, branch.other)]
        )


def _either(decided: Decided, *ways: Sequence[Expr]) -> Iterator[Expr]:
    """What the accesses to those elements compute that each way comes to."""
    found = [{e: touched for e in way for touched in _touched(decided, e)} for way in ways]
    both = set[object].intersection(*(set(own.values()) for own in found))
    for own in found:
        yield from (expr for expr, touched in own.items() if touched in both)


def _touched(decided: Decided, expr: Expr) -> Iterator[object]:
    """The element that an expression loads or stores, and which of these it does."""
    for element, accesses in decided.found.values():
        modes = frozenset(a.mode for a in accesses)
        if any(a.own is expr for a in accesses):
            steps = frozenset((sizes, form) for sizes, form in element.steps.items())
            yield element.array, element.base, steps, modes, accesses[0].loops


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
    """Whether its test says as well what is loaded at all."""
    padded = decided.padded
    own = padded is not None and statement in padded.own
    return own or statement in decided.scopes.around


def _computed(decided: Decided, expr: Expr) -> Iterator[Expr]:
    yield expr
    parts = expr.parts
    if isinstance(expr, Choice):
        parts = (decided.chosen[expr],) if expr in decided.chosen else (expr.test,)
    elif is_logical(expr):
        parts = expr.parts[:1]
    for part in parts:
        yield from _computed(decided, part)
