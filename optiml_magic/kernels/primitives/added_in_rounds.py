"""``collected`` undone: what a thread adds up and adds to memory at last it adds in its rounds.

``int own = 0; for (...) if (test) ++own; atomicAdd(&count, own);`` becomes a loop that updates the
count. So its rounds can be dealt out anew, and threads without work have nothing to add.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from optiml_magic.kernels.editing import Swaps, edited
from optiml_magic.kernels.expressions import Assign, Call, Cast, Expr, Literal, Name, Step, every
from optiml_magic.kernels.primitives.base import Kernel, NotLegal, Refused, primitive
from optiml_magic.kernels.primitives.effects import Effects, declared_in, loops_in, names
from optiml_magic.kernels.primitives.places import bare
from optiml_magic.kernels.primitives.roles import key_of
from optiml_magic.kernels.primitives.updates import Update, Updated, updated
from optiml_magic.kernels.tree import Block, Declare, Evaluate, Leave, Statement, Variable, walk
from optiml_magic.kernels.types import CType, named

_WORD = 4  # bytes of a number that is added up in its own type


@primitive
def added_in_rounds(kernel: Kernel) -> Kernel:
    """The kernel that updates memory in its rounds; there must be a sum that it had apart."""
    effects, body = Effects(kernel), kernel.function.body
    effects.straightforward()
    swaps: Swaps = {}
    for whole in updated(kernel):
        if isinstance(whole, Refused):
            raise NotLegal(whole.reason, whole.line)
        for update in whole.updates if whole.op == "+" else ():
            swaps = {**swaps, **_moved(kernel, effects, whole, update)}
    if not swaps:
        raise NotLegal("nothing that is added at last is a sum of what rounds find")
    return kernel.rewritten(edited(body, swaps))


def parts_of(body: Block, variable: Variable, last: Statement) -> Sequence[tuple[Statement, Expr]]:
    """The statements that add to a local which begins at zero, and what; none if more is done.

    Nothing else asks for it but the ``last`` one.
    """
    declared = next((v for s in body.body if isinstance(s, Declare) for v in s.variables
                     if v is variable), None)  # fmt: skip
    if declared is None or declared.value is None or key_of(bare(declared.value)) != "0":
        return ()
    found, given = list[tuple[Statement, Expr]](), list[Statement]()
    rounds = in_rounds(body)
    for statement in walk(body):
        heads = [e for top in statement.expressions for e in every(top)]
        if statement is last or variable not in names(heads):
            continue
        match statement:
            case Evaluate(expression=Assign(op="+=", target=Name(), value=part)) if (
                variable not in names([part])
            ):
                found.append((statement, part))
            case Evaluate(expression=Assign(op="=", target=Name(), value=part)) if (
                statement not in rounds and variable not in names([part])
            ):
                found.append((statement, part))
                given.append(statement)
            case Evaluate(expression=Step(op="++", target=Name())):
                found.append((statement, Literal(None, "1", 1)))
            case _:
                return ()
    return found if not given or len(found) == 1 else ()


def in_rounds(body: Block) -> frozenset[Statement]:
    """The statements of its loops."""
    return frozenset(s for loop in loops_in(body) for s in walk(loop))


def adding(call: Call, name: Expr, part: Expr) -> Statement:
    """An update of a part in the place of the sum that has a ``name``."""
    arguments = tuple(edited(e, {name: part}) for e in call.arguments)
    return Evaluate(None, 0, replace(call, span=None, arguments=arguments))


def _moved(kernel: Kernel, effects: Effects, whole: Updated, update: Update) -> Swaps:
    """An update in each place where a part of the sum is found, in the place of the last one."""
    body, call, name = kernel.function.body, update.access.node, bare(update.value)
    variable = name.variable if isinstance(name, Name) else None
    if not isinstance(call, Call) or variable is None or update.statement not in body.body:
        return {}
    kind = named(variable.type.base, kernel.unit.aliases)
    parts = parts_of(body, variable, update.statement)
    rounds = in_rounds(body)
    if (
        not any(statement in rounds for statement, _ in parts)
        or variable in effects.lent or variable.type.depth or variable.storage != "local"
        or not _converts(kernel, update.value, kind, whole.type)
        or not all(_fits(kernel, part, kind, whole.type) for _, part in parts)
        or not _stays(kernel, effects, update, variable)
    ):  # fmt: skip
        return {}
    at = next(s for s in body.body if isinstance(s, Declare) and variable in s.variables)
    left = tuple(v for v in at.variables if v is not variable)
    swaps: Swaps = {statement: adding(call, name, part) for statement, part in parts}
    begun = replace(at, variables=left, span=None) if left else None
    return {**swaps, update.statement: None, at: begun}


def _stays(kernel: Kernel, effects: Effects, update: Update, variable: Variable) -> bool:
    """Whether each round knows the place, and every way leads to the last update."""
    call, body = update.access.node, kernel.function.body
    assert isinstance(call, Call)
    place = {*every(call.arguments[0])}
    begun = next(n for n, s in enumerate(body.body) if isinstance(s, Declare)
                 and variable in s.variables)  # fmt: skip
    before = {v for s in body.body[: begun + 1] for v in declared_in(s)} & effects.lasting
    known = before | {p for p in kernel.function.parameters if p.name not in effects.moved}
    ways = (s for later in body.body[begun:] for s in walk(later))
    return (
        names(place) <= known
        and not any(isinstance(e, Call | Assign | Step) for e in place)
        and not any(a.own in place and a.mode == "load" for a in kernel.reading.accesses)
        and not any(isinstance(s, Leave) and s.kind == "return" for s in ways)
    )


def _converts(kernel: Kernel, value: Expr, kind: CType, element: CType) -> bool:
    """Whether a sum is what its parts come to when each becomes an element by itself."""
    if isinstance(value, Cast):
        if not isinstance(value.operand, Name):
            return False
        element = named(value.type, kernel.unit.aliases) if element.floating else element
        if named(value.type, kernel.unit.aliases).size != element.size:
            return False
    if kind.floating:
        return element.floating and kind.size == element.size
    wide = kind.kind == "int" and (kind.size or 0) >= _WORD and element.kind == "int"
    return wide and (kind.signed or (kind.size or 0) >= (element.size or 0))


def _fits(kernel: Kernel, part: Expr, kind: CType, element: CType) -> bool:
    """Whether a part is added in the type of the sum, which does not wrap where elements do not."""
    own = kernel.reading.types.get(part)
    if own is None:
        return isinstance(part, Literal)
    if kind.floating:
        return own.floating or own.integral
    wraps = (kind.size or 0) < (element.size or 0)
    return own.integral and not (wraps and not own.signed and (own.size or 0) >= _WORD)
