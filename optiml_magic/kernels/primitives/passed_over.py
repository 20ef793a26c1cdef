"""Rounds from one on that a loop ends with, as rounds that each pass over what they would do.

``for (j = 0; j < n; j++) { if (j > i) break; f(j); }`` is the loop with ``continue``: once the
counter is beyond, it stays so. Steps that take rounds away by a comparison know that one.
"""

from __future__ import annotations

from optiml_magic.kernels.editing import Node, edited
from optiml_magic.kernels.expressions import (
    Assign,
    Binary,
    Call,
    Expr,
    Index,
    Member,
    Name,
    Step,
    every,
)
from optiml_magic.kernels.polynomial import Polynomial
from optiml_magic.kernels.primitives.base import Kernel, NotLegal, primitive
from optiml_magic.kernels.primitives.effects import Effects, is_counted, loops_in, names
from optiml_magic.kernels.tree import Blank, If, Leave, Loop, body_of, only_leaves


@primitive
def passed_over(kernel: Kernel) -> Kernel:
    """The kernel whose loops go on where their counter is beyond what they begin by asking."""
    effects, swaps = Effects(kernel), dict[Node, Node]()
    for loop in loops_in(kernel.function.body):
        axis = kernel.axes().get(loop)
        if axis is None or axis.variable is None or axis.step != Polynomial.constant(1):
            continue
        first = _first(loop)
        if first is None or not is_counted(axis, effects):
            continue
        changed = {*effects.changed(loop.body), axis.variable}
        bound = _beyond(first.test, axis.variable.name)
        if bound is None or names([bound]) & changed or not _is_plain(bound):
            continue
        for leave in (first.then, *first.then.statements):
            if isinstance(leave, Leave):
                swaps[leave] = Leave(None, leave.line, "continue")
    if not swaps:
        raise NotLegal("no loop breaks where its counter passes a bound")
    return kernel.rewritten(edited(kernel.function.body, swaps))


def _first(loop: Loop) -> If | None:
    """The branch that a round begins with, where it does nothing but to end the loop."""
    for statement in body_of(loop.body):
        if isinstance(statement, If):
            alone = statement.other is None and statement.before is None
            return statement if alone and only_leaves(statement.then, "break") else None
        if not isinstance(statement, Blank):
            return None
    return None


def _beyond(test: Expr, counter: str) -> Expr | None:
    """What the counter is greater than, where a test asks for that."""
    match test:
        case Binary(op=">" | ">=", left=Name(name=name), right=bound) if name == counter:
            return bound
        case Binary(op="<" | "<=", left=bound, right=Name(name=name)) if name == counter:
            return bound
    return None


def _is_plain(bound: Expr) -> bool:
    loads_or_acts = Assign | Step | Call | Index | Member
    return not any(isinstance(e, loads_or_acts) for e in every(bound))
