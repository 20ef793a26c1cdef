"""A loop whose test asks for more than its counter's end: that becomes a branch which ends it.

``while (k < n && x[k] < t) k++;`` and ``for (j = 0; j < n && !met; ++j) if (...) met = true;`` are
searches as one with a ``break`` is, and are written as that.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import replace

from optiml_magic.kernels.editing import Node, edited, lines
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
from optiml_magic.kernels.primitives.halving import flat
from optiml_magic.kernels.primitives.mapped import joined_test, split_test
from optiml_magic.kernels.primitives.naming import bracketed
from optiml_magic.kernels.tree import Blank, Block, Declare, Evaluate, If, Loop, Statement, Variable
from optiml_magic.kernels.types import named


@primitive
def ended(kernel: Kernel) -> Kernel:
    """The kernel with its first such loop as one that is left by ``break``."""
    effects = Effects(kernel)
    for loop in loops_in(kernel.function.body):
        if loop.test is None or loops_in(loop.body):
            continue
        parts = [*split_test(loop.test, "&&")]
        if len(parts) < 2 or effects.changed(Evaluate(None, 0, loop.test)):
            continue
        made = _walked(kernel, effects, loop, parts) or _flagged(kernel, effects, loop, parts)
        if made is not None:
            return kernel.rewritten(edited(kernel.function.body, {loop: made}))
    raise NotLegal("no loop asks for more than the end of its counter")


@primitive
def asked_within(kernel: Kernel) -> Kernel:
    """The kernel with its first loop that has work to do as one that asks the rest in its rounds.

    ``while (k < n && x[k] >= 0) { s += x[k]; k++; }`` begins each round with the ``break``. A test
    that comes before the bound is asked no longer where there is no round.
    """
    effects = Effects(kernel)
    for loop in loops_in(kernel.function.body):
        found = [*asking(kernel, effects, loop)]
        if not found:
            continue
        bound, rest = min(found, key=lambda one: not _stepped(effects, loop, one[0]))
        leaves = lines(f"if (!({rest})) break;")
        own = loop.body.body if isinstance(loop.body, Block) else (loop.body,)
        body = Block(None, loop.line, (leaves, *own))
        made = replace(loop, span=None, head=None, test=bound, body=body)
        return kernel.rewritten(edited(kernel.function.body, {loop: (made,)}))
    raise NotLegal("no loop asks for more than the end of its counter")


def asking(kernel: Kernel, effects: Effects, loop: Loop) -> Iterator[tuple[Expr, str]]:
    """What may be the end of a loop's counter, and what its test asks for besides."""
    if loop.test is None or loop.kind == "do":
        return
    parts = [*split_test(loop.test, "&&")]
    if len(parts) < 2 or effects.changed(Evaluate(None, loop.line, loop.test)):
        return
    stepped = [Evaluate(None, loop.line, loop.update)] if loop.update is not None else []
    moving = {*effects.changed(loop.body, *stepped)}
    for bound in (p for p in parts if _bounds(p, moving, first=p is parts[0])):
        yield bound, " && ".join(bracketed(kernel, p, tested=True) for p in parts if p is not bound)


def _stepped(effects: Effects, loop: Loop, part: Expr) -> bool:
    """Whether a part of a test asks for what the head of a loop moves."""
    if loop.update is None:
        return False
    return bool(names([part]) & {*effects.changed(Evaluate(None, loop.line, loop.update))})


def _bounds(part: Expr, moving: Collection[Variable], *, first: bool) -> bool:
    """Whether a part of a test compares what moves with numbers, as far as it shows.

    One that is not asked ``first`` divides by nothing that others may have to be asked before.
    """
    while isinstance(part, Unary) and part.op == "!":
        part = part.operand
    if not isinstance(part, Binary) or part.op not in ("<", "<=", ">", ">=", "!="):
        return False
    plain = all(isinstance(e, Name | Literal | Binary) for e in every(part))
    divides = any(isinstance(e, Binary) and e.op in ("/", "%") for e in every(part))
    return plain and (first or not divides) and bool(names([part]) & {*moving})


def _walked(
    kernel: Kernel, effects: Effects, loop: Loop, parts: Sequence[Expr]
) -> tuple[Statement, ...] | None:
    """A loop that does no more than to count up."""
    own = [s for s in flat(loop.body) if not isinstance(s, Blank)]
    match loop.kind, own, loop.before, loop.update:
        case "while", [Evaluate(expression=counting)], None, None:
            pass
        case "for", [], None, Step() | Assign() as counting:
            pass
        case _:
            return None
    match parts[0], counting:
        case (
            Binary(op="<", left=Name(variable=Variable() as counter), right=end),
            Step(op="++", target=Name(variable=counted)) | Assign(
                op="+=", target=Name(variable=counted), value=Literal(value=1)),
        ) if counted is counter and _steady(end, counter) and _plain(kernel, counter):  # fmt: skip
            pass
        case _:
            return None
    if counter.storage != "local" or effects.changed(loop).keys() != {counter}:
        return None
    at, last = kernel.fresh(counter.name), kernel.fresh("last")
    swaps: dict[Node, Node] = {
        e: Name(None, at)
        for part in parts
        for e in every(part)
        if isinstance(e, Name) and e.variable is counter
    }
    bound, *rest = (bracketed(kernel, edited(p, swaps), tested=True) for p in parts)
    ends, kind = bracketed(kernel, end), counter.type.base
    return (
        lines(f"{kind} {last} = {counter.name} < {ends} ? {ends} : {counter.name};"),
        lines(
            f"for ({kind} {at} = {counter.name}; {bound}; ++{at}) {{\n"
            f"if (!({' && '.join(rest)})) {{\n{last} = {at};\nbreak;\n}}\n}}"
        ),
        lines(f"{counter.name} = {last};"),
    )


def _flagged(
    kernel: Kernel, effects: Effects, loop: Loop, parts: Sequence[Expr]
) -> tuple[Statement, ...] | None:
    """A loop that goes on while a flag is what it was, which its last branch changes."""
    block = next((b for b in _blocks(kernel.function.body) if loop in b.body), None)
    own = [s for s in flat(loop.body) if not isinstance(s, Blank)]
    if block is None or not _is_left_alone(effects, loop, block):
        return None
    for at, part in enumerate(parts):
        match part, own[-1:]:
            case (
                Unary(op="!", operand=Name(variable=Variable() as flag))
                | Name(variable=Variable() as flag),
                [If(other=None, before=None, then=then) as branch],
            ) if _is_flag(kernel, effects, loop, flag):
                goes_on = isinstance(part, Name)
                begun = _begun(effects, loop, block, flag)
                if begun is not None and begun is not goes_on:
                    continue
                if not _sets(then, flag, value=not goes_on):
                    continue
                if begun is None and not _only_begins(effects, loop):
                    continue
                rest = [p for i, p in enumerate(parts) if i != at]
                left = Block(None, branch.line, (*flat(then), lines("break;")))
                test = joined_test(rest, "&&")
                body = edited(loop.body, {then: left})
                made = replace(loop, span=None, head=None, test=test, body=body)
                return (made,) if begun is not None else (If(None, loop.line, part, made),)
    return None


def _is_left_alone(effects: Effects, loop: Loop, block: Block) -> bool:
    """Whether nobody asks for what a loop's head moves, which its last round moves no more."""
    if loop.update is None:
        return True
    moved = {*effects.changed(Evaluate(None, loop.line, loop.update))}
    given = effects.given(loop.before) if loop.before is not None else set[Variable]()
    given |= {v for s in block.body if isinstance(s, Declare) for v in s.variables}
    within = effects.inside(loop)
    asked = names(e for e in effects.inside(effects.kernel.function.body) - within)
    return moved <= given and not moved & asked and not moved & effects.lent


def _only_begins(effects: Effects, loop: Loop) -> bool:
    """Whether what comes before the first round of a loop is of no use to anybody else."""
    if loop.before is None:
        return True
    moved = set[Variable]()
    if loop.update is not None:
        moved = {*effects.changed(Evaluate(None, loop.line, loop.update))}
    acts = (Call, Lambda, Unread)
    return {*effects.changed(loop.before)} <= moved and not effects.accesses(loop.before) and not (
        any(isinstance(e, acts) for e in effects.inside(loop.before))
    )  # fmt: skip


def _is_flag(kernel: Kernel, effects: Effects, loop: Loop, flag: Variable) -> bool:
    """Whether a loop asks for a whole number of the thread once, and sets it once."""
    found = [e for e in effects.inside(loop) if isinstance(e, Name) and e.variable is flag]
    plain = flag.storage == "local" and _plain(kernel, flag) and flag not in effects.lent
    return len(found) == 2 and plain


def _begun(effects: Effects, loop: Loop, block: Block, flag: Variable) -> bool | None:
    """What a flag is before a loop, where that is a number."""
    at = next((i for i, s in enumerate(block.body)
               if isinstance(s, Declare) and flag in s.variables), None)  # fmt: skip
    if at is None or not isinstance(flag.value, Literal) or flag.value.value not in (0, 1):
        return None
    between = block.body[at + 1 : block.body.index(loop)]
    return None if flag in effects.changed(*between) else bool(flag.value.value)


def _sets(then: Statement, flag: Variable, *, value: bool) -> bool:
    """Whether a branch certainly gives a flag this value, and no other."""
    return any(
        isinstance(s, Evaluate)
        and isinstance(s.expression, Assign)
        and s.expression.op == "="
        and isinstance(s.expression.target, Name)
        and s.expression.target.variable is flag
        and isinstance(s.expression.value, Literal)
        and s.expression.value.value in ((1, True) if value else (0, False))
        for s in flat(then)
    )


def _blocks(statement: Statement) -> list[Block]:
    inner = [b for s in statement.statements for b in _blocks(s)]
    return [statement, *inner] if isinstance(statement, Block) else inner


def _plain(kernel: Kernel, variable: Variable) -> bool:
    """Whether a local is one whole number."""
    kind = named(variable.type.base, kernel.unit.aliases)
    other = variable.type.depth or variable.type.reference or variable.type.volatile
    return not other and not variable.array and (kind.integral or kind.kind == "bool")


def _steady(end: Expr, counter: Variable) -> bool:
    """Whether an end is made of names and numbers, none of which is the counter."""
    return all(
        (isinstance(e, Name) and e.variable is not counter)
        or (isinstance(e, Literal) and isinstance(e.value, int))
        or (isinstance(e, Binary) and e.op in "+-*/")
        for e in every(end)
    )
