"""A local array of rows, ``acc[i * 4 + j]``, has an axis for each, ``acc[i][j]``.

Results that a thread has along two axes are then rows of results (``unjammed``). A loop that gives
all of them zero, by one counter, is what the array begins with.
"""

from __future__ import annotations

from collections.abc import Sequence

from optiml_magic.kernels.editing import Node, edited, lines
from optiml_magic.kernels.expressions import Assign, Binary, Expr, Index, Literal, Name
from optiml_magic.kernels.primitives.base import Kernel, NotLegal, primitive
from optiml_magic.kernels.primitives.effects import Effects, is_simple
from optiml_magic.kernels.primitives.scoped import fills_whole
from optiml_magic.kernels.primitives.shaped import fixed_numbers, number_of
from optiml_magic.kernels.primitives.staged import hints_of
from optiml_magic.kernels.primitives.unjammed import is_results
from optiml_magic.kernels.tree import (
    Block,
    Declare,
    Evaluate,
    Loop,
    Statement,
    Variable,
    expressions,
    walk,
)


@primitive
def in_rows(kernel: Kernel) -> Kernel:
    """The kernel with one such array, of which there must be one."""
    effects = Effects(kernel)
    effects.straightforward()
    for block in (s for s in walk(kernel.function.body) if isinstance(s, Block)):
        for at, statement in enumerate(block.body):
            match statement:
                case Declare(variables=(variable,)) if is_results(kernel, variable):
                    found = _rows(kernel, effects, variable, block.body[at + 1 :])
                    if found is not None:
                        width, swaps = found
                        high = _size(kernel, variable) // width
                        zeros = variable.value is not None or None in swaps.values()
                        words = f"{variable.type.base} {variable.name}[{high}][{width}]"
                        new = lines(f"{words}{' = {}' if zeros else ''};")
                        swaps[statement] = new
                        body = edited(kernel.function.body, swaps)
                        return kernel.rewritten(body)
    raise NotLegal("no local array is asked for by rows")


def _size(kernel: Kernel, variable: Variable) -> int:
    extent = variable.extents[0] if len(variable.extents) == 1 else None
    return (number_of(extent, fixed_numbers(kernel)) or 0) if extent is not None else 0


def _rows(
    kernel: Kernel, effects: Effects, variable: Variable, rest: Sequence[Statement]
) -> tuple[int, dict[Node, Node | None]] | None:
    """How long a row is, and each element by its row and its place there; None where not all are.

    None stands for the loop that gives all elements zero.
    """
    asking = [s for s in rest if variable in effects.mentions(s)]
    size, swaps = _size(kernel, variable), dict[Node, Node | None]()
    if not asking or not size:
        return None
    first, *others = asking
    if isinstance(first, Loop) and fills_whole(effects, first, variable) and _zero(first):
        swaps |= dict.fromkeys((first, *hints_of(kernel, first)))
        asking = others
    inside = [e for s in asking for e in expressions(s)]
    elements = {e.base: e for e in inside if isinstance(e, Index)}
    found = set[int]()
    for e in inside:
        if isinstance(e, Name) and e.variable is variable:
            place = elements.get(e)
            parts = _parts(kernel, effects, place.index, size) if place is not None else None
            if place is None or parts is None:
                return None
            row, width, at = parts
            found.add(width)
            swaps[place] = Index(None, Index(None, e, row), at)
    if len(found) != 1 or size % min(found):
        return None
    return min(found), swaps


def _zero(loop: Loop) -> bool:
    """Whether all that a loop does is to give zeros."""
    body = loop.body.body if isinstance(loop.body, Block) else (loop.body,)
    match body:
        case (Evaluate(expression=Assign(value=Literal(value=0))),):
            return True
    return False


def _parts(
    kernel: Kernel, effects: Effects, index: Expr, size: int
) -> tuple[Expr, int, Expr] | None:
    """Row, width and place in the row of an index, by counters that stay within these."""
    match index:
        case Binary(op="+", left=Binary(op="*", left=one, right=other), right=Name() as at):
            pass
        case Binary(op="+", left=Name() as at, right=Binary(op="*", left=one, right=other)):
            pass
        case _:
            return None
    row, by = (one, other) if isinstance(one, Name) else (other, one)
    width = number_of(by, fixed_numbers(kernel))
    if not isinstance(row, Name) or not width or width < 2:
        return None
    rounds = {
        axis.variable: axis.trips for axis in kernel.axes().values()
        if axis.exact and is_simple(axis, effects)
    }  # fmt: skip
    high, wide = rounds.get(row.variable), rounds.get(at.variable)
    if not high or not wide or wide > width or high * width > size:
        return None
    return row, width, at
