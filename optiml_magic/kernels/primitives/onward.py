"""Ways out of a loop that its later rounds would take as well lead on to the next round.

``if (i >= n) break;`` in rounds whose ``i`` grows is the guard of each of them: with ``continue``
in its place the loop has as many rounds as its head says, of which the last ones do nothing. So
has ``if (i >= n) return;`` where nothing stands behind the loop, and ``k < 4 && i < n`` in a head.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import takewhile

from optiml_magic.kernels.editing import Node, edited, lines, text
from optiml_magic.kernels.expressions import (
    Assign,
    Binary,
    Call,
    Expr,
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
from optiml_magic.kernels.primitives.naming import bracketed
from optiml_magic.kernels.primitives.places import bare
from optiml_magic.kernels.reading import Axis
from optiml_magic.kernels.symbols import Compare, Condition
from optiml_magic.kernels.tree import (
    Blank,
    Block,
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
    headed = _headed(kernel)
    kernel = headed or kernel
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
            if leaves and guard and axis and own and _stays(
                kernel, effects, axis, guard.condition, guard.loops[:-1]
            ):  # fmt: skip
                swaps[leaves] = replace(leaves, kind="continue", span=None)
            elif not last and any(
                isinstance(s, Leave) and s.kind == "return" for s in walk(branch)
            ):
                break  # a later round may leave the kernel here
    if not swaps and headed is None:
        raise NotLegal("no round ends a loop that the rounds behind it would end as well")
    return kernel.rewritten(edited(kernel.function.body, swaps)) if swaps else kernel


def _headed(kernel: Kernel) -> Kernel | None:
    """The kernel whose last loop has a number of rounds, its other bounds as their guards."""
    effects = Effects(kernel)
    body = [s for s in kernel.function.body.body if not isinstance(s, Blank)]
    loop = body[-1] if body else None
    axis = kernel.axes().get(loop) if isinstance(loop, Loop) else None
    if not isinstance(loop, Loop) or loop.kind != "for" or loop.test is None or axis is None:
        return None
    parts, conditions = [*_together(loop.test)], [*axis.test.conjuncts()]
    tests = [If(None, loop.line, part, Block(None, loop.line, ())) for part in parts]
    if len(parts) != len(conditions) or not all(map(_does_nothing, tests)):
        return None
    number = {
        part for part, one in zip(parts, conditions, strict=True)
        if isinstance(one, Compare) and one.form.symbols == {axis.name}
    }  # fmt: skip
    own = [
        (part, one) for part, one in zip(parts, conditions, strict=True) if part not in number
    ]  # fmt: skip
    if not own or not number or not all(_stays(kernel, effects, axis, one, ()) for _, one in own):
        return None
    guard = " && ".join(f"({kernel.spelled(part)})" for part, _ in own)
    test = " && ".join(bracketed(kernel, part, tested=True) for part in parts if part in number)
    inside = Block(None, loop.line, (lines(f"if (!({guard})) continue;"), *body_of(loop.body)))
    again = replace(loop, test=text(test), body=inside, span=None, head=None)
    return kernel.rewritten(edited(kernel.function.body, {loop: again}))


def _together(test: Expr) -> Iterator[Expr]:
    """What a test asks for together."""
    plain = bare(test)
    if isinstance(plain, Binary) and plain.op == "&&":
        yield from _together(plain.left)
        yield from _together(plain.right)
    else:
        yield test


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


def _stays(
    kernel: Kernel, effects: Effects, axis: Axis, condition: Condition, outer: Sequence[str]
) -> bool:
    """Whether a test that fails in a round fails in all behind it."""
    if not isinstance(condition, Compare) or condition.op != ">=":
        return False
    form, symbols = condition.form, kernel.reading.symbols
    by = form.coefficient(axis.name)
    if by is None or by.value is None or by.value >= 0:
        return False
    rest = form.without([axis.name])
    if axis.name in symbols.inside(rest) or not symbols.known(rest):
        return False
    fixed = {n for n in symbols.inside(rest) if symbols[n].kind not in _FIXED}
    return fixed <= {*outer} and not rest.symbols & effects.moved
