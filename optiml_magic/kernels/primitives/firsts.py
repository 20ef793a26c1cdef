"""Branches that the first of several threads or rounds takes alone: ``if (threadIdx.x == 0)``."""

from __future__ import annotations

from optiml_magic.kernels.primitives.base import Kernel
from optiml_magic.kernels.primitives.effects import Effects
from optiml_magic.kernels.primitives.flow import ends
from optiml_magic.kernels.symbols import Compare
from optiml_magic.kernels.tree import If, Statement


def decides(kernel: Kernel, branch: If, number: str) -> tuple[bool, bool] | None:
    """How those decide whose ``number`` is 0 and 1; None where that takes more than this."""
    found = {(g.condition, g.exits) for g in kernel.reading.guards if g.test is branch.test}
    if len(found) != 1 or branch.before is not None:
        return None
    ((condition, exits),) = found
    if not isinstance(condition, Compare) or condition.form.symbols != {number}:
        return None
    by, rest = condition.form.coefficient(number), condition.form.without([number]).value or 0
    if by is None or by.value is None:
        return None
    zero, one = (_holds(condition.op, rest + by.value * at) for at in (0, 1))
    return zero is not exits, one is not exits  # of one that leaves, what holds behind it is known


def _holds(op: str, value: int) -> bool:
    return {">=": value >= 0, "==": value == 0, "!=": value != 0}[op]


def stores_first(kernel: Kernel, effects: Effects, statement: Statement, number: str) -> bool:
    """Whether all that a statement does is to store, for the first alone, what nobody else touches.

    ``number`` counts them from 0.
    """
    if not isinstance(statement, If) or statement.other is not None:
        return False
    if decides(kernel, statement, number) != (True, False) or effects.kept(statement):
        return False
    own = {a.own for a in effects.accesses(statement)}
    stored = {a.array for a in effects.accesses(statement) if a.mode == "store"}
    others = [a for a in kernel.reading.accesses if a.own not in own]
    return (
        bool(stored)
        and "" not in stored
        and all(a.mode != "atomic" for a in effects.accesses(statement))
        and not any(effects.same(a.array, array) for a in others for array in stored)
        and not effects.given(statement)
        and not any(ends(statement))
    )
