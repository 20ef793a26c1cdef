"""Ways out of a loop that its later rounds would take as well lead on to the next round.

``if (i >= n) break;`` in rounds whose ``i`` grows is the guard of each of them: with ``continue``
in its place the loop has as many rounds as its head says, of which the last ones do nothing. So
has ``if (i >= n) return;`` where nothing stands behind the loop.
"""

from __future__ import annotations

from dataclasses import replace
from itertools import takewhile

from optiml_magic.kernels.editing import Node, edited
from optiml_magic.kernels.expressions import (
    Assign,
    Call,
    Index,
    Lambda,
    Step,
    Unary,
    Unread,
    every,
)
from optiml_magic.kernels.functions import OF_ALL_NUMBERS
from optiml_magic.kernels.primitives.base import Kernel, NotLegal, primitive
from optiml_magic.kernels.primitives.effects import Effects
from optiml_magic.kernels.reading import Axis, Guard
from optiml_magic.kernels.symbols import Compare
from optiml_magic.kernels.tree import (
    Blank,
    Declare,
    Evaluate,
    If,
    Leave,
    Loop,
    Statement,
    body_of,
    walk,
)

_FIXED = ("builtin", "scalar", "operation", "load", "select")


@primitive
def onward(kernel: Kernel) -> Kernel:
    """The kernel with such ways out as ``continue``; it has some."""
    effects = Effects(kernel)
    axes = {axis.name: axis for axis in kernel.axes().values()}
    guards = {g.test: g for g in kernel.reading.guards if g.exits and g.loops}
    body = [s for s in kernel.function.body.body if not isinstance(s, Blank)]
    swaps = dict[Node, Node]()
    for loop in (s for s in walk(kernel.function.body) if isinstance(s, Loop)):
        if not _counts_alone(effects, loop):
            continue
        last = bool(body) and loop is body[-1]
        for branch in takewhile(_does_nothing, body_of(loop.body)):
            leaves = _leaves(branch, last=last)
            guard = guards.get(branch.test) if isinstance(branch, If) else None
            axis = axes.get(guard.loops[-1]) if guard is not None else None
            own = guard is not None and axis is not None and axis.node is loop
            if leaves and guard and axis and own and _stays(kernel, effects, axis, guard):
                swaps[leaves] = replace(leaves, kind="continue", span=None)
            elif not last and any(
                isinstance(s, Leave) and s.kind == "return" for s in walk(branch)
            ):
                break  # a later round may leave the kernel here
    if not swaps:
        raise NotLegal("no round ends a loop that the rounds behind it would end as well")
    return kernel.rewritten(edited(kernel.function.body, swaps))


def _counts_alone(effects: Effects, loop: Loop) -> bool:
    """Whether what the head of a loop changes is asked for in the loop alone."""
    if loop.kind != "for" or loop.update is None or not isinstance(loop.before, Declare):
        return False
    changed = effects.changed(Evaluate(None, loop.line, loop.update))
    return {*changed} <= {*loop.before.variables}


def _does_nothing(statement: Statement) -> bool:
    """Whether a round that goes on to the next one may do this on its way, or be left by it."""
    if isinstance(statement, If):
        ways = (w for w in (statement.then, statement.other) if w is not None)
        if statement.before is not None or not all(
            isinstance(s, Leave | Blank) for way in ways for s in body_of(way)
        ):
            return False
    elif not isinstance(statement, Declare | Blank):
        return False
    return not any(
        isinstance(e, Assign | Step | Index | Lambda | Unread)
        or (isinstance(e, Unary) and e.op == "*")
        or (isinstance(e, Call) and e.function not in OF_ALL_NUMBERS)
        for top in statement.expressions for e in every(top)
    )  # fmt: skip


def _leaves(branch: Statement, *, last: bool) -> Leave | None:
    """The way out that is all that a branch does."""
    if not isinstance(branch, If) or branch.other is not None or branch.before is not None:
        return None
    inside = [s for s in body_of(branch.then) if not isinstance(s, Blank)]
    match inside:
        case [Leave(kind=kind, value=None) as only]:
            return only if kind == "break" or (kind == "return" and last) else None
    return None


def _stays(kernel: Kernel, effects: Effects, axis: Axis, guard: Guard) -> bool:
    """Whether a test that fails in a round fails in all behind it."""
    if not isinstance(guard.condition, Compare) or guard.condition.op != ">=":
        return False
    form, symbols = guard.condition.form, kernel.reading.symbols
    by = form.coefficient(axis.name)
    if by is None or by.value is None or by.value >= 0:
        return False
    rest = form.without([axis.name])
    if axis.name in symbols.inside(rest) or not symbols.known(rest):
        return False
    fixed = {n for n in symbols.inside(rest) if symbols[n].kind not in _FIXED}
    return fixed <= {*guard.loops[:-1]} and not rest.symbols & effects.moved
