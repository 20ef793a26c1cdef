"""What nothing asks for any more is left out: locals, empty branches and loops, shared arrays."""

from __future__ import annotations

from collections import Counter
from collections.abc import Container, Iterator
from dataclasses import replace
from itertools import pairwise

from optiml_magic.kernels.editing import Node, edited
from optiml_magic.kernels.expressions import Assign, Expr, Lambda, Name, Step, Unread, every
from optiml_magic.kernels.primitives.base import Kernel, NotLegal, primitive, where_legal
from optiml_magic.kernels.primitives.scoped import quiet, scoped
from optiml_magic.kernels.primitives.type_names import names_between, names_in
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
    while (shorter := _once(kernel, body)) is not None:
        body = shorter
    short = kernel.rewritten(body) if body is not kernel.function.body else kernel
    made = where_legal(scoped, short)
    if made is kernel:
        raise NotLegal("all that it does has an effect")
    return made


def _once(kernel: Kernel, body: Block) -> Block | None:
    kept = {*_heads(body)}
    if names_between(kernel, body, 0, len(body.body)):
        kept |= {s for s in walk(body) if names_in(kernel, s)}  # macros go with what is behind them
    asked = Counter(_asked(body, kept))
    swaps: _Swaps = {s: None for s in walk(body) if s not in kept and _without_effect(s)}
    for statement in (s for s in walk(body) if s is not body and s not in kept):
        if _idle(statement, asked):
            swaps[statement] = None
        elif isinstance(statement, Declare):
            left = tuple(v for v in statement.variables if asked[v] or not _plain(v))
            if len(left) < len(statement.variables):
                swaps[statement] = replace(statement, variables=left, span=None)
    for block in (s for s in walk(body) if isinstance(s, Block)):
        swaps |= {s: None for s in block.body if _empty(s) and s not in kept}
        for hint, loop in pairwise(block.body):
            plain = isinstance(hint, Blank) and hint.span and hint not in kept
            if plain and swaps.get(loop, loop) is None:
                swaps[hint] = None
        for branch in block.body:  # none inside of it is left with an ``else`` that is not its own
            if not isinstance(branch, If) or branch.other is None or not _empty(branch.other):
                continue
            if branch not in kept and not {*walk(branch)} & swaps.keys():
                swaps[branch] = replace(branch, other=None, span=None, middle=None)
    return edited(body, swaps) if swaps else None


def _heads(body: Block) -> Iterator[Statement]:
    """The statements in the heads of branches and loops, where something has to stand."""
    for statement in walk(body):
        if isinstance(statement, If | Loop) and statement.before is not None:
            yield statement.before


def _without_effect(statement: Statement) -> bool:
    """Whether a branch or a loop does nothing but decide or count."""
    if isinstance(statement, If):
        arms = [arm for arm in (statement.then, statement.other) if arm is not None]
        return statement.before is None and quiet(statement.test) and all(map(_empty, arms))
    return isinstance(statement, Loop) and _empty(statement.body) and _counts(statement)


def _asked(body: Block, kept: Container[Statement]) -> list[Variable]:
    """The locals that something asks for, other than what gives them a value."""
    found = list[Variable]()
    for statement in walk(body):
        own = _decided(statement, kept) if isinstance(statement, If) else None
        for top in statement.expressions:
            given = own or (_given(statement, top) if statement not in kept else None)
            found += [
                e.variable for e in every(top)
                if isinstance(e, Name) and e.variable is not None and e.variable is not given
            ]  # fmt: skip
    return found


def _decided(branch: If, kept: Container[Statement]) -> Variable | None:
    """The local that a branch does no more than give another value to: ``if (x < 0) x += n;``."""
    parts = [s for s in walk(branch) if s is not branch and not isinstance(s, Block)]
    if not quiet(branch.test) or branch.before is not None or branch in kept:
        return None
    if any(s in kept or not isinstance(s, Evaluate) for s in parts):
        return None
    given = {_given(s, s.expression) for s in parts if isinstance(s, Evaluate)}
    return given.pop() if len(given) == 1 else None


def _given(statement: Statement, top: Expr) -> Variable | None:
    """The local that a statement does no more than give a value to."""
    match top:
        case (
            Assign(target=Name(variable=Variable() as v))
            | Step(target=Name(variable=Variable() as v))
        ):
            plain = v.storage == "local" and not v.array and not v.type.reference
            return (
                v if isinstance(statement, Evaluate) and plain and quiet(top, inner=True) else None
            )
    return None


def _idle(statement: Statement, asked: Counter[Variable]) -> bool:
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
    return all(quiet(e) for e in begun) and not (told and not variable.type.depth)


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
    return all(v in own for v in changed) and quiet(loop.test) and all(map(_plain, own))
