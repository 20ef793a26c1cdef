"""Locals that only hold what another one holds give their place to it.

``float all = m; ... m = all;`` is left of a block that handed its maximum around, once it is a
thread: ``m`` is meant all along. Where one of the two changes, the copy is one no more. Copies that
nobody asks for then go.
"""

from __future__ import annotations

from dataclasses import replace

from optiml_magic.kernels.editing import Node, edited
from optiml_magic.kernels.expressions import Assign, Call, Expr, Name, Step, every
from optiml_magic.kernels.primitives.base import Kernel, NotLegal, primitive, where_legal
from optiml_magic.kernels.primitives.effects import Effects, declared_in
from optiml_magic.kernels.tree import (
    Block,
    Declare,
    Evaluate,
    Statement,
    Variable,
    expressions,
    walk,
)


@primitive
def copied(kernel: Kernel) -> Kernel:
    """The kernel without such locals among the statements of its body."""
    effects, body = Effects(kernel), kernel.function.body
    copies: dict[Variable, Variable] = {}
    made: list[Statement] = []
    found = False
    for statement in body.body:
        moving = {*effects.changed(statement), *declared_in(statement)}
        top = _assigned(statement)
        asked = _without(copies, moving - ({top[0]} if top is not None else set()))
        hidden = {v.name for v in declared_in(statement)}
        asked = {v: c for v, c in asked.items() if c.name not in hidden}
        swaps: dict[Node, Node] = {
            e: Name(None, copy.name, copy) for e in _loads(statement)
            if e.variable is not None and (copy := asked.get(e.variable)) is not None
        }  # fmt: skip
        found |= bool(swaps)
        copies = _without(copies, moving)
        if top is not None and top[1] is not None:
            source = asked.get(top[1], top[1])
            if source is top[0]:
                found = True
                copies |= {v: c for v, c in asked.items() if c is source}
                continue
            if _alike(effects, top[0], source):
                copies[top[0]] = source
        made.append(edited(statement, swaps) if swaps else statement)
    if not found:
        raise NotLegal("no local is a copy of another one")
    return kernel.rewritten(_asked_for(replace(body, body=tuple(made))))


@primitive
def copied_within(kernel: Kernel) -> Kernel:
    """The kernel without locals of inner blocks that hold what one of outside holds all along."""
    effects, body = Effects(kernel), kernel.function.body
    swaps: dict[Node, Node | tuple[Statement, ...] | None] = {}
    gone: set[Variable] = set()
    for block in (s for s in walk(body) if isinstance(s, Block) and s is not body):
        for at, statement in enumerate(block.body):
            rest = block.body[at + 1 :]
            top = _assigned(statement) if isinstance(statement, Declare) else None
            if top is None or top[1] is None or top[0] not in effects.lasting:
                continue
            if top[1] in gone:  # its turn comes when that one is away
                continue
            one, other = top[0], top[1]
            hidden = {v.name for s in rest for v in declared_in(s)}
            moving = {v for s in rest for v in effects.changed(s)}
            if not _alike(effects, one, other) or other in moving or other.name in hidden:
                continue
            named = [e for s in rest for e in expressions(s)
                     if isinstance(e, Name) and e.variable is one]  # fmt: skip
            swaps.update({e: Name(None, other.name, other) for e in named})
            swaps[statement] = ()
            gone.add(one)
    if not swaps:
        raise NotLegal("no local of an inner block is a copy of another one")
    return where_legal(copied_within, kernel.rewritten(edited(body, swaps)))


def _without(copies: dict[Variable, Variable], moving: set[Variable]) -> dict[Variable, Variable]:
    return {v: c for v, c in copies.items() if not {v, c} & moving}


def _assigned(statement: Statement) -> tuple[Variable, Variable | None] | None:
    """The local that a statement gives a value and does nothing else, and the one it gives."""
    value: Expr | None
    match statement:
        case Declare(variables=(Variable(value=value) as variable,)) if value is not None:
            pass
        case Evaluate(expression=Assign(op="=", target=Name(variable=Variable() as variable),
                                        value=value)):  # fmt: skip
            pass
        case _:
            return None
    return variable, value.variable if isinstance(value, Name) else None


def _alike(effects: Effects, one: Variable, other: Variable) -> bool:
    """Whether one local may stand for another: plain, of one type, and nothing else leads there."""
    plain = [v.storage == "local" and not v.array and not v.type.reference and not v.type.volatile
             and v not in effects.lent for v in (one, other)]  # fmt: skip
    return all(plain) and replace(one.type, const=False) == replace(other.type, const=False)


def _loads(statement: Statement) -> list[Name]:
    """The names in a statement but those that it gives a value."""
    given = {e.target for e in expressions(statement) if isinstance(e, Assign | Step)}
    return [e for e in expressions(statement) if isinstance(e, Name) and e not in given]


def _asked_for(body: Block) -> Block:
    """A body without the copies that nobody asks for."""
    while True:
        asked = {e.name for s in body.body for e in _loads(s)}
        given = {e.target.name for e in expressions(body) if isinstance(e, Assign | Step)
                 if isinstance(e.target, Name)}  # fmt: skip
        gone: list[Statement] = []
        for statement in body.body:
            top = _assigned(statement)
            if top is None or top[0].name in asked or top[0].array:
                continue
            kind = top[0].type
            plain = top[0].storage == "local" and not (kind.reference or kind.volatile)
            alone = plain and not any(_does(e) for e in statement.expressions)
            if alone and (not isinstance(statement, Declare) or top[0].name not in given):
                gone.append(statement)
        if not gone:
            return body
        body = replace(body, body=tuple(s for s in body.body if s not in gone))


def _does(expr: Expr) -> bool:
    """Whether an expression does more than to give one local what others hold."""
    parts = [*every(expr)]
    return any(isinstance(e, Call | Step) for e in parts) or sum(
        isinstance(e, Assign) for e in parts
    ) > isinstance(expr, Assign)  # fmt: skip
