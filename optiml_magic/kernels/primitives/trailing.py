"""A counter that trails another, ``j = i++``, is computed from it in each round.

``for (i = 0, j = n - 1; i < n; j = i++)`` walks along the edges of a polygon, from the last of its
points to the first and on. With ``j = i == 0 ? n - 1 : i - 1`` nothing but ``i`` goes from round to
round, so that the rounds are counted, and what ``j`` stands for is known.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from optiml_magic.kernels.editing import Node, edited, lines, text
from optiml_magic.kernels.expressions import (
    Assign,
    Binary,
    Call,
    Expr,
    Lambda,
    Literal,
    Name,
    Step,
    Unary,
    Unread,
    every,
)
from optiml_magic.kernels.primitives.base import Kernel, NotLegal, primitive
from optiml_magic.kernels.primitives.effects import Effects, loops_in, names
from optiml_magic.kernels.primitives.naming import declared_type
from optiml_magic.kernels.tree import (
    Block,
    Declare,
    Evaluate,
    Leave,
    Loop,
    Statement,
    Variable,
    walk,
)
from optiml_magic.kernels.types import named


@dataclass(frozen=True, eq=False)
class _Trail:
    """``behind`` gets the value of ``ahead`` before this makes its ``step``, once a round."""

    ahead: Variable
    behind: Variable
    step: str
    body: tuple[Statement, ...]


@primitive
def trailing(kernel: Kernel) -> Kernel:
    """The kernel without counters that trail others; there must be one."""
    effects = Effects(kernel)
    for loop in loops_in(kernel.function.body):
        found = _trail(loop)
        try:
            made = _computed(kernel, effects, loop, found) if found is not None else ""
        except NotLegal:
            continue
        if made:
            again = kernel.rewritten(edited(kernel.function.body, {loop: lines(made)}))
            more = trailing(again)
            return more if isinstance(more, Kernel) else again
    raise NotLegal("no counter trails another")


def _trail(loop: Loop) -> _Trail | None:
    """What the head says, or the head and the last statement of the body."""
    body = loop.body.body if isinstance(loop.body, Block) else (loop.body,)
    if loop.kind != "for" or loop.update is None or not body:
        return None
    jumps = any(isinstance(s, Leave) and s.kind == "continue" for s in walk(loop.body))
    match [*_in_turn(loop.update)], body[-1]:
        case [Assign(op="=", target=Name(variable=Variable() as behind),
                     value=Step(op=step, target=Name(variable=Variable() as ahead),
                                prefix=False))], _:  # fmt: skip
            return _Trail(ahead, behind, step, body)
        case [Assign(op="=", target=Name(variable=Variable() as behind),
                     value=Name(variable=Variable() as copied)),
              Step(op=step, target=Name(variable=Variable() as ahead))], _:  # fmt: skip
            return _Trail(ahead, behind, step, body) if copied is ahead else None
        case (
            [Step(op=step, target=Name(variable=Variable() as ahead))],
            Evaluate(expression=Assign(op="=", target=Name(variable=Variable() as behind),
                                       value=Name(variable=Variable() as copied))),
        ) if copied is ahead and not jumps:  # fmt: skip
            return _Trail(ahead, behind, step, body[:-1])
    return None


def _in_turn(expr: Expr) -> Iterator[Expr]:
    """The parts of an expression that commas separate."""
    if isinstance(expr, Binary) and expr.op == ",":
        yield from _in_turn(expr.left)
        yield from _in_turn(expr.right)
    else:
        yield expr


def _computed(kernel: Kernel, effects: Effects, loop: Loop, found: _Trail) -> str:
    """The loop anew; nothing where it must stay."""
    ahead, behind, body = found.ahead, found.behind, found.body
    begun = dict(_begun(loop.before))
    if ahead not in begun or not {*begun} <= {ahead, behind} or loop.test is None:
        return ""
    first, start = begun[ahead], begun.get(behind)
    does = (Assign, Step, Call, Lambda, Unread)
    if any(isinstance(e, does) for v in begun.values() for e in every(v)):
        return ""
    kinds = {v.type.base for v in (ahead, behind)}
    plain = not any(v.type.depth or v.type.reference or v.array for v in (ahead, behind))
    if len(kinds) != 1 or not plain or not named(ahead.type.base, kernel.unit.aliases).integral:
        return ""
    if behind in names([loop.test]) or {ahead, behind} & {
        v for s in body for v in effects.changed(s)
    }:
        return ""
    inside = [e for s in body for e in effects.inside(s)]
    if any(isinstance(e, Lambda | Unread) or (isinstance(e, Unary) and e.op == "&"
           and {ahead, behind} & names([e.operand])) for e in inside):  # fmt: skip
        return ""
    own = isinstance(loop.before, Declare) and behind in loop.before.variables
    if not own and not _unasked(kernel, effects, loop, behind, start is None):
        return ""
    return _spelled(kernel, loop, found, first, start)


def _begun(before: Statement | None) -> Iterator[tuple[Variable, Expr]]:
    """What the head of a loop gives to whom. Raises NotLegal where it does more."""
    match before:
        case Declare(variables=variables) if all(v.value is not None for v in variables):
            yield from ((v, v.value) for v in variables if v.value is not None)
        case Evaluate(expression=expression):
            for part in _in_turn(expression):
                match part:
                    case Assign(op="=", target=Name(variable=Variable() as variable), value=value):
                        yield variable, value
                    case _:
                        raise NotLegal("the head of a loop does more than begin", before.line)


def _unasked(
    kernel: Kernel, effects: Effects, loop: Loop, behind: Variable, ahead: bool
) -> bool:  # fmt: skip
    """Whether nobody else asks for a counter of outside, whose first value may stand there."""
    inside, whole = effects.inside(loop), effects.inside(kernel.function.body)
    others = [e for e in whole if isinstance(e, Name) and e.variable is behind and e not in inside]
    repeated = any(loop in loops_in(o.body) for o in loops_in(kernel.function.body))
    return not others and not (ahead and (repeated or behind.value is None))


def _spelled(
    kernel: Kernel, loop: Loop, found: _Trail, first: Expr, start: Expr | None
) -> str:  # fmt: skip
    def shown(expr: Expr) -> str:
        return kernel.spelled(expr)

    ahead, behind = found.ahead, found.behind
    kind = declared_type(kernel, ahead)
    declared = isinstance(loop.before, Declare) and ahead in loop.before.variables
    own = isinstance(loop.before, Declare) and behind in loop.before.variables
    begin, last = kernel.fresh(f"{ahead.name}_first"), kernel.fresh(f"{behind.name}_first")
    before = [f"const {kind} {last} = {shown(start) if start is not None else behind.name};"]
    if isinstance(first, Literal):
        begin = shown(first)
    else:
        before.insert(0, f"const {kind} {begin} = {shown(first)};")
    name = behind.name if own else kernel.fresh(f"{behind.name}_own")
    swaps: dict[Node, Node] = {
        e: text(name) for s in found.body for e in Effects(kernel).inside(s)
        if isinstance(e, Name) and e.variable is behind and not own
    }  # fmt: skip
    assert loop.test is not None
    back = "-" if found.step == "++" else "+"
    body = "\n".join(kernel.show(s, swaps) for s in found.body)
    head = f"{kind} {ahead.name}" if declared else ahead.name
    return "\n".join([
        "{", *before,
        f"for ({head} = {begin}; {shown(loop.test)}; {found.step}{ahead.name}) {{",
        f"const {kind} {name} = {ahead.name} == {begin} ? {last} : {ahead.name} {back} 1;",
        body, "}", "}",
    ])  # fmt: skip
