"""What nothing asks for any more is left out: locals, empty branches and loops, shared arrays."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from itertools import pairwise

from optiml_magic.kernels.editing import Node, edited
from optiml_magic.kernels.expressions import Assign, Call, Expr, Lambda, Name, Step, Unread, every
from optiml_magic.kernels.functions import bare, pure
from optiml_magic.kernels.primitives.base import Kernel, NotLegal, primitive
from optiml_magic.kernels.tree import (
    Blank,
    Block,
    Declare,
    Evaluate,
    If,
    Loop,
    Statement,
    Variable,
    Verbatim,
    walk,
)
from optiml_magic.kernels.types import named

_Swaps = dict[Node, "Node | tuple[Statement, ...] | None"]


@primitive
def pruned(kernel: Kernel) -> Kernel:
    """The kernel without what has no effect; there must be such."""
    for leaf in walk(kernel.function.body):
        if isinstance(leaf, Verbatim):
            raise NotLegal(f"{leaf.reason} is not read", leaf.line)
        if any(isinstance(e, Lambda | Unread) for top in leaf.expressions for e in every(top)):
            raise NotLegal("an expression is not read", leaf.line)
    body = kernel.function.body
    while (shorter := _once(body)) is not None:
        body = shorter
    if body is kernel.function.body:
        raise NotLegal("all that it does has an effect")
    return kernel.rewritten(body)


def _once(body: Block) -> Block | None:
    asked = Counter(_asked(body))
    swaps: _Swaps = {s: None for s in walk(body) if _without_effect(s)}
    for block in (s for s in walk(body) if isinstance(s, Block)):
        for statement in block.body:
            if _idle(statement, asked):
                swaps[statement] = None
            elif isinstance(statement, Declare):
                left = tuple(v for v in statement.variables if asked[v] or not _plain(v))
                if len(left) < len(statement.variables):
                    swaps[statement] = replace(statement, variables=left, span=None)
        for hint, loop in pairwise(block.body):
            if isinstance(hint, Blank) and hint.span and swaps.get(loop, loop) is None:
                swaps[hint] = None
    swaps = swaps or _later(body)
    return edited(body, swaps) if swaps else None


def _without_effect(statement: Statement) -> bool:
    """Whether a branch or a loop does nothing but decide or count."""
    if isinstance(statement, If):
        arms = [arm for arm in (statement.then, statement.other) if arm is not None]
        return statement.before is None and _quiet(statement.test) and all(map(_empty, arms))
    return isinstance(statement, Loop) and _empty(statement.body) and _counts(statement)


def _asked(body: Block) -> list[Variable]:
    """The locals that something asks for, other than what gives them a value."""
    found = list[Variable]()
    for statement in walk(body):
        for top in statement.expressions:
            given = _given(statement, top)
            found += [
                e.variable for e in every(top)
                if isinstance(e, Name) and e.variable is not None and e.variable is not given
            ]  # fmt: skip
    return found


def _given(statement: Statement, top: Expr) -> Variable | None:
    """The local that a statement does no more than give a value to."""
    match top:
        case (
            Assign(target=Name(variable=Variable() as v))
            | Step(target=Name(variable=Variable() as v))
        ):
            plain = v.storage == "local" and not v.array and not v.type.reference
            return (
                v if isinstance(statement, Evaluate) and plain and _quiet(top, inner=True) else None
            )
    return None


def _idle(statement: Statement, asked: Counter[Variable]) -> bool:
    if isinstance(statement, Block) and not statement.body:
        return True
    if isinstance(statement, Declare):
        return all(not asked[v] and _plain(v) for v in statement.variables)
    if isinstance(statement, Evaluate):
        given = _given(statement, statement.expression)
        return given is not None and not asked[given]
    return False


def _plain(variable: Variable) -> bool:
    """Whether it can be left out where nobody asks for it: nothing happens as it begins."""
    begun = [variable.value] if variable.value is not None else [*variable.initial]
    made = named(variable.type.base, {}).kind in ("record", "unknown") and variable.opening != "="
    told = variable.type.base != "auto" and variable.storage == "local" and made
    return all(_quiet(e) for e in begun) and not (told and not variable.type.depth)


def _quiet(expr: Expr, *, inner: bool = False) -> bool:
    """Whether an expression changes nothing; of an assignment what is ``inner`` is asked."""
    parts = [*every(expr)][1 if inner else 0 :]
    calls = [e for e in parts if isinstance(e, Call)]
    pure_calls = all(pure(bare(c.function)) and c.callee is None for c in calls)
    return pure_calls and not any(isinstance(e, Assign | Step) for e in parts)


def _empty(statement: Statement) -> bool:
    return isinstance(statement, Block) and not statement.body


def _counts(loop: Loop) -> bool:
    """Whether a loop does nothing but count by a variable of its own."""
    if not isinstance(loop.before, Declare) or loop.test is None or loop.update is None:
        return False
    own = {*loop.before.variables}
    changed = [
        e.target.variable if isinstance(e.target, Name) else None
        for e in every(loop.update) if isinstance(e, Assign | Step)
    ]  # fmt: skip
    return all(v in own for v in changed) and _quiet(loop.test) and all(map(_plain, own))


def _later(body: Block) -> _Swaps:
    """A local that gets its one value after it was declared is declared there."""
    for block in (s for s in walk(body) if isinstance(s, Block)):
        for at, statement in enumerate(block.body):
            if not isinstance(statement, Declare):
                continue
            for variable in statement.variables:
                swaps = _moved(body, block, at, variable)
                if swaps:
                    return swaps
    return {}


def _moved(body: Block, block: Block, at: int, variable: Variable) -> _Swaps:
    if variable.storage != "local" or variable.array or variable.type.reference:
        return {}
    if variable.initial or not _plain(variable) or variable.type.const:
        return {}
    statement = block.body[at]
    assert isinstance(statement, Declare)
    changing = [e for s in walk(body) for top in s.expressions for e in every(top)
                if isinstance(e, Assign | Step) and isinstance(e.target, Name)
                and e.target.variable is variable]  # fmt: skip
    for later in block.body[at + 1 :]:
        match later:
            case Evaluate(expression=Assign(op="=", target=Name(variable=v)) as made) if (
                v is variable
            ):
                value = made.value
                if changing != [made] or any(_names(e, variable) for e in every(value)):
                    return {}
                left = tuple(v for v in statement.variables if v is not variable)
                new = replace(variable, value=value, span=None, opening="=")
                words = statement.words
                after = Declare(None, later.line, words, (new,))
                rest = replace(statement, variables=left, span=None) if left else None
                renamed: _Swaps = {
                    e: Name(None, variable.name, new)
                    for s in walk(body) for top in s.expressions for e in every(top)
                    if _names(e, variable) and e is not made.target
                }  # fmt: skip
                return {**renamed, statement: rest, later: after}
        if any(_names(e, variable) for s in walk(later) for t in s.expressions for e in every(t)):
            return {}
    return {}


def _names(expr: Expr, variable: Variable) -> bool:
    return isinstance(expr, Name) and expr.variable is variable
