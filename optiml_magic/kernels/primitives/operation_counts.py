"""How many operations a thread does at the measured sizes, for choosing what is likely to pay off.

Nothing is said of what each of them takes: it is for what a step leaves of them, or multiplies.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping

from optiml_magic.kernels.expressions import Expr, Literal, Name, every
from optiml_magic.kernels.primitives.base import Kernel, once
from optiml_magic.kernels.primitives.costs import is_long
from optiml_magic.kernels.primitives.sizes import usual_rounds
from optiml_magic.kernels.reading import Access
from optiml_magic.kernels.tree import Loop, Statement

_UNKNOWN = 32  # rounds of a loop of which nothing is known: ours
_ATOMIC = 8  # loads that an atomic operation counts for: ours
_CALL = 16  # operations that a long function counts for: ours


@once
def operations(kernel: Kernel) -> float:
    """Those of a thread that takes every branch, such as one that works alone for its block."""
    return _of(kernel, kernel.function.body, _rounds(kernel), ())


def operations_outside(kernel: Kernel, loops: Collection[Loop]) -> float:
    """Those that are in none of these loops; of one around them what it does beside them."""
    return _of(kernel, kernel.function.body, _rounds(kernel), loops)


def requests(kernel: Kernel) -> dict[str, float]:
    """How often a thread asks global memory for elements of each array, by its name."""
    found = dict[str, float]()
    for access in kernel.reading.accesses:
        if access.space == "global":
            each = times(kernel, access) * (_ATOMIC if access.mode == "atomic" else 1)
            found[access.array] = found.get(access.array, 0.0) + each
    return found


def times(kernel: Kernel, access: Access) -> int:
    """How often a thread comes to an access, in all rounds of the loops that it is in."""
    made = {axis.name: _rounds(kernel).get(loop, _UNKNOWN) for loop, axis in kernel.axes().items()}
    return math.prod(made.get(name, _UNKNOWN) for name in access.loops)


def _of(
    kernel: Kernel, statement: Statement, made: Mapping[Loop, int], without: Collection[Loop]
) -> float:
    if statement in without:
        return 0.0
    own = sum(_count(kernel, e) for e in statement.expressions)
    own += sum(_of(kernel, inner, made, without) for inner in statement.statements)
    return own * made.get(statement, _UNKNOWN) if isinstance(statement, Loop) else own


def _count(kernel: Kernel, expr: Expr) -> float:
    found = sum(1 for e in every(expr) if not isinstance(e, (Name, Literal)))
    return found + (_CALL if is_long(kernel, expr) else 0)


@once
def _rounds(kernel: Kernel) -> Mapping[Loop, int]:
    found = {loop: usual_rounds(kernel, axis) for loop, axis in kernel.axes().items()}
    return {loop: made for loop, made in found.items() if made is not None}
