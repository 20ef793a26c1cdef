"""P14, wrapped: ``(x + 1) % n`` of a place on a ring becomes ``x + 1 >= n ? x + 1 - n : x + 1``.

A division by a size that the compiler does not know is some twenty instructions; neighbours of a
place lie within one turn of it, so that a comparison says which turn that is.
"""

from __future__ import annotations

from optiml_magic.kernels.editing import Node, edited
from optiml_magic.kernels.expressions import (
    Binary,
    Cast,
    Choice,
    Expr,
    Literal,
    Name,
    builtin,
    every,
)
from optiml_magic.kernels.polynomial import Polynomial
from optiml_magic.kernels.primitives.base import Kernel, NotLegal, primitive
from optiml_magic.kernels.ranges import Ranges
from optiml_magic.kernels.reading import Rest
from optiml_magic.kernels.tree import expressions

_MOST = 4  # turns that are taken away one by one: ours
_ONE = Polynomial.constant(1)


@primitive
def wrapped(kernel: Kernel) -> Kernel:
    """The kernel without divisions of what lies within one turn, or two; it has such."""
    found = turns(kernel)
    if not found:
        raise NotLegal("no index goes around once")
    swaps: dict[Node, Node] = {}
    for expr in expressions(kernel.function.body):
        if isinstance(expr, Binary) and expr in found:
            swaps[expr] = _without(kernel, expr, *found[expr])
    return kernel.rewritten(edited(kernel.function.body, swaps))


def turns(kernel: Kernel) -> dict[Expr, tuple[int, bool]]:
    """Rests that need no division: the turns that are taken away, and whether one more may be."""
    found: dict[Expr, tuple[int, bool]] = {}
    own = {*expressions(kernel.function.body)}
    for expr, rests in kernel.reading.rests.items():
        if expr not in own or not isinstance(expr, Binary) or not _is_plain(expr):
            continue
        ways = {_turn(kernel, rest) for rest in rests}
        way = next(iter(ways)) if len(ways) == 1 else None
        if way is not None:
            found[expr] = way
    inside = {e for expr in found for part in expr.parts for e in every(part)}
    return {expr: way for expr, way in found.items() if expr not in inside}


def _is_plain(expr: Binary) -> bool:
    """Whether it is made of names and numbers, which cost nothing to be asked for again."""
    return all(
        isinstance(part, Name | Literal | Cast) or bool(builtin(part))
        or (isinstance(part, Binary) and part.op in "+-*")
        for side in (expr.left, expr.right) for part in every(side)
    )  # fmt: skip


def _turn(kernel: Kernel, rest: Rest) -> tuple[int, bool] | None:
    left, right, ranges = rest.left, rest.right, Ranges(rest.guard, kernel.reading.symbols)
    if len(right.terms) != 1 or right.value is not None:
        return None
    ((size, factor),) = right.terms
    most = dict(left.terms).get(size, 0) // factor
    for turn in (most, most - 1):
        if 0 <= turn <= _MOST and ranges.nonnegative(
            own := left - Polynomial.constant(turn) * right
        ):
            if ranges.nonnegative(right - own - _ONE):
                return turn, False
            if ranges.nonnegative(right + right - own - _ONE):
                return turn, True
    return None


def _without(kernel: Kernel, expr: Binary, turn: int, more: bool) -> Expr:
    less = expr.left
    for _ in range(turn):
        less = _less(kernel, less, expr.right)
    if not more:
        return less
    over = Binary(None, ">=", less, expr.right)
    return Choice(None, over, _less(kernel, less, expr.right), less)


def _less(kernel: Kernel, expr: Expr, by: Expr) -> Expr:
    """The one less the other, without what is added first and taken away again."""
    match expr:
        case Binary(op="+", left=left, right=right) if _shown(kernel, right) == _shown(kernel, by):
            return left
        case Binary(op="+", left=left, right=right) if _shown(kernel, left) == _shown(kernel, by):
            return right
    return Binary(None, "-", expr, by)


def _shown(kernel: Kernel, expr: Expr) -> str:
    return kernel.spelled(expr)
