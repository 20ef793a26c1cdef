"""A loop over a thread's items with its counter in the head, ``while`` loops among them.

``int i = first; while (i < n) { ...; i += step; }``: steps that look for the items of a thread then
see what moves it from one to the next, and that nobody asks for the counter behind the loop.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from optiml_magic.kernels.editing import Node, edited
from optiml_magic.kernels.expressions import Assign, Expr, Lambda, Name, Step, Unread, every
from optiml_magic.kernels.primitives.base import Kernel, NotLegal, primitive
from optiml_magic.kernels.primitives.effects import Effects, declared_in, names
from optiml_magic.kernels.primitives.scoped import quiet
from optiml_magic.kernels.primitives.stepwise import check_directives, is_read, plain
from optiml_magic.kernels.tree import (
    Blank,
    Block,
    Declare,
    Evaluate,
    Leave,
    Loop,
    Statement,
    Variable,
    walk,
)

_OWN = frozenset({"threadIdx.x", "blockIdx.x"})
_Swaps = dict[Node, Node | tuple[Statement, ...]]


@primitive
def headed(kernel: Kernel) -> Kernel:
    """The kernel with such loops counted in their heads; there must be one."""
    check_directives(kernel)
    effects, swaps = Effects(kernel), _Swaps()
    for scope in walk(kernel.function.body):
        if isinstance(scope, Block):
            for at, loop in enumerate(scope.body):
                if isinstance(loop, Loop):
                    swaps |= _headed(kernel, effects, scope.body, at, loop)
    if not swaps:
        raise NotLegal("no loop goes on at its end to a thread's next item")
    return kernel.rewritten(edited(kernel.function.body, swaps))


def _headed(
    kernel: Kernel, effects: Effects, own: Sequence[Statement], at: int, loop: Loop
) -> _Swaps:
    axis = kernel.axes().get(loop)
    if axis is None or axis.start is None or axis.step is None:
        return {}
    asked, counter = kernel.reading.symbols.inside(axis.start), axis.variable
    if not _OWN & asked or axis.scaled or abs(axis.step.value or 2) == 1 or counter is None:
        return {}
    parts = _parts(effects, loop, counter)
    again = counter.name in {v.name for v in declared_in(loop.body)}
    if parts is None or again or not is_read(kernel, counter):
        return {}
    update, body = parts
    found = _declared(effects, own[:at], counter)
    after = (s for s in own[at + 1 :] if counter in effects.mentions(s))
    if found is None or any(after):
        return {}
    statement, before = found
    made = Loop(
        None, loop.line, "for", before, loop.test, update, Block(None, loop.line, tuple(body)),
    )  # fmt: skip
    return {loop: made, statement: _without(statement, counter)}


def _parts(
    effects: Effects, loop: Loop, counter: Variable
) -> tuple[Expr, Sequence[Statement]] | None:
    """What moves the counter at the end of each round, and what is done before."""
    body = _rounds(loop)
    if loop.kind == "for":
        return (loop.update, body) if loop.before is None and loop.update is not None else None
    last = body[-1] if body and loop.kind == "while" else None
    if not isinstance(last, Evaluate) or not isinstance(last.expression, Assign | Step):
        return None
    if any(counter in effects.changed(s) for s in body[:-1]):
        return None
    if any(isinstance(s, Leave) and s.kind == "continue" for s in walk(loop.body)):
        return None
    return last.expression, body[:-1]


def _declared(
    effects: Effects, before: Sequence[Statement], counter: Variable
) -> tuple[Declare, Declare] | None:
    """The declaration of a counter in front of its loop, and that of it alone for the head.

    None where something between them asks for it, or changes what it begins with.
    """
    for at, statement in enumerate(before):
        if not isinstance(statement, Declare) or counter not in statement.variables:
            continue
        value = next(v for v in statement.variables if v is counter).value
        later = [*before[at + 1 :]]
        rest = statement.variables[statement.variables.index(counter) + 1 :]
        beside = replace(statement, variables=rest).expressions
        if value is None or not plain(value, effects):
            return None
        if any(map(_changes, beside)):
            return None
        hidden = {v.name for s in later for v in declared_in(s)} | {v.name for v in rest}
        if hidden & {e.name for e in every(value) if isinstance(e, Name)}:
            return None
        moved = names([value]) | {counter}
        if counter in names(beside) or any(moved & set(effects.changed(s)) for s in later):
            return None
        if any(counter in effects.mentions(s) for s in later):
            return None
        return statement, replace(statement, variables=(counter,), lead=None, span=None)
    return None


def _changes(value: Expr) -> bool:
    return not quiet(value) or any(isinstance(e, Lambda | Unread) for e in every(value))


def _without(statement: Declare, counter: Variable) -> tuple[Statement, ...]:
    """What else a statement declares."""
    others = tuple(v for v in statement.variables if v is not counter)
    return (replace(statement, variables=others, span=None),) if others else ()


def _rounds(loop: Loop) -> list[Statement]:
    body = loop.body.body if isinstance(loop.body, Block) else (loop.body,)
    return [s for s in body if not isinstance(s, Blank)]
