"""Arrays of global memory that a kernel touches in one stretch, where no thread waits for another.

Threads of a kernel without races then exchange nothing by them, whichever barriers stand elsewhere.
"""

from __future__ import annotations

from optiml_magic.kernels.expressions import Call, Expr
from optiml_magic.kernels.functions import BLOCK_BARRIERS, LANES, WARP_BARRIERS, bare
from optiml_magic.kernels.primitives.base import Kernel, once
from optiml_magic.kernels.primitives.places import reached
from optiml_magic.kernels.tree import Statement, expressions


@once
def stretches(kernel: Kernel) -> dict[Expr, int]:
    """Which stretch each expression of a kernel stands in, counted by the statements that wait.

    What stands in such a statement is in none.
    """
    found: dict[Expr, int] = {}
    at = 0
    for statement in kernel.function.body.body:
        if _waits(kernel, statement):
            at += 1
        else:
            found |= dict.fromkeys(expressions(statement), at)
    return found


def _waits(kernel: Kernel, statement: Statement) -> bool:
    """Whether threads wait for each other somewhere in a statement, or exchange values."""
    unit = kernel.unit
    for call in (e for e in expressions(statement) if isinstance(e, Call)):
        bodies = [f for one in unit.called(call.function, len(call.arguments))
                  for f in (one, *reached(unit, one))]  # fmt: skip
        inner = (e for f in bodies for e in expressions(f.body) if isinstance(e, Call))
        for name in (bare(one.function) for one in (call, *inner)):
            if name in BLOCK_BARRIERS | WARP_BARRIERS or LANES.fullmatch(name):
                return True
    return False
