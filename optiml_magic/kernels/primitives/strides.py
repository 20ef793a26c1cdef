"""What moves by the same amount in each round of a loop, and how far it has come in some rounds.

Rounds times a stride are that only in the type of what moves: a sum that is kept in 64 bits, or
without a sign, is no product of ints, and one that is kept in fewer bits comes back again.
"""

from __future__ import annotations

from collections.abc import Collection

from optiml_magic.kernels.changes import Change, skips
from optiml_magic.kernels.expressions import Call, Expr, Lambda, Literal, Name, Unread, every
from optiml_magic.kernels.primitives.base import Kernel
from optiml_magic.kernels.primitives.effects import Effects, declared_in
from optiml_magic.kernels.tree import Block, Loop, Variable
from optiml_magic.kernels.types import INT, CType, arithmetic, named, promoted

_PLAIN = ("min", "max")  # functions that say the same again


def is_steady(effects: Effects, loop: Loop, change: Change, *, whole: bool) -> bool:
    """Whether each round makes a change, and rounds times its stride are how far that goes.

    ``whole`` says that this is asked of what is no counter, whose type may be too small.
    """
    kernel, variable = effects.kernel, change.variable
    if not change.always or change.within or change.op not in ("+", "-"):
        return False
    if variable in effects.addressed or _is_skipped(effects, loop, variable):
        return False
    kind = named(variable.type.base, kernel.unit.aliases)
    step = INT if change.value is None else kernel.reading.types.get(change.value)
    if step is None or not step.integral or step.lanes != 1 or step.depth:
        return False
    small = kind.kind != "int" or kind.lanes != 1 or (kind.size or 0) < (INT.size or 0)
    return bool(variable.type.depth) or not (whole and small)


def _is_skipped(effects: Effects, loop: Loop, variable: Variable) -> bool:
    """Whether a round may end before it changes a variable."""
    if not skips(loop.body) or variable not in effects.changed(loop.body):
        return False
    body = loop.body.body if isinstance(loop.body, Block) else (loop.body,)
    first = next(at for at, statement in enumerate(body) if skips(statement))
    return variable not in effects.changed(*body[:first])


def is_still(
    effects: Effects, loop: Loop, value: Expr | None, changed: Collection[Variable]
) -> bool:
    """Whether a stride is the same in all rounds, which change these."""
    parts = [*every(value)] if value is not None else []
    moving = declared_in(loop.body) | effects.addressed | {*changed}
    accesses = effects.kernel.reading.accesses
    return not any(
        (isinstance(e, Name) and e.variable is not None
         and (e.variable in moving or e.variable.type.reference))
        or (isinstance(e, Call) and e.function not in _PLAIN)
        or isinstance(e, Lambda | Unread)
        for e in parts
    ) and not any(a.own in parts for a in accesses)  # fmt: skip


def by(kernel: Kernel, variable: Variable, step: Expr | None, rounds: str) -> str:
    """So many rounds times a stride, in the type of what moves."""
    shown = "" if step is None else _spelled(kernel, step)
    kind = named(variable.type.base, kernel.unit.aliases)
    if not variable.type.depth and kind.integral and (kind.size or 0) >= (INT.size or 0):
        own = INT if step is None else kernel.reading.types.get(step) or INT
        if not _alike(promoted(own), kind) and not _alike(arithmetic(kind, own), kind):
            shown = f"({variable.type.base}){shown}"
        if not _alike(kind, INT):
            rounds = f"({variable.type.base}){rounds}"
    return f"{rounds} * {shown}" if shown else rounds


def _alike(one: CType, other: CType) -> bool:
    return (one.size, one.signed, one.integral) == (other.size, other.signed, other.integral)


def _spelled(kernel: Kernel, step: Expr) -> str:
    shown = kernel.spelled(step)
    return shown if isinstance(step, Name | Literal) else f"({shown})"
