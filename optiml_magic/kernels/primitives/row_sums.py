"""Windows as sums of their rows, each of which neighbours in other rows have as well.

``for (dy) for (dx) s += f(y + dy, x + dx);`` sums up each row by itself. A thread that takes
several items below each other then finds a row once for all of their windows, as a compiler sees
that it is the same sum; of a window of 7 by 7 eight items have 14 rows in the place of 56.
"""

from __future__ import annotations

from collections.abc import Iterator

from optiml_magic.kernels.primitives.base import Kernel, NotLegal, Refused, primitive
from optiml_magic.kernels.primitives.cutting import uses
from optiml_magic.kernels.primitives.effects import Effects, loops_in
from optiml_magic.kernels.primitives.factored import factored
from optiml_magic.kernels.primitives.moves import Along, Following
from optiml_magic.kernels.primitives.sizes import rounds
from optiml_magic.kernels.tree import Block, Declare, Loop, Statement, walk

_LEAST = 3  # rows of a window, and elements of a row, from which on it pays: ours


@primitive
def row_sums(kernel: Kernel, letter: str) -> Kernel:
    """The kernel with sums of rows, of which neighbours along an axis have most in common."""
    made = factored(kernel, plain=True)
    if isinstance(made, Refused):
        raise NotLegal(made.reason, made.line)
    effects, places = Effects(made), uses(made, letter).whole
    why = NotLegal("no window is summed up row by row")
    for loop, axis in made.axes().items():
        within = [made.axes().get(one) for one in loops_in(loop.body)]
        if len(within) != 1 or within[0] is None:
            continue
        if min(rounds(made, one) or 0 for one in (axis, within[0])) < _LEAST:
            continue
        begun = tuple(_begun(made.function.body, loop))
        try:
            Following(made, effects, Along(letter, places), axis, loop, begun).sign()
        except NotLegal as reason:
            why = reason
        else:
            return made
    raise why


def _begun(body: Statement, loop: Loop) -> Iterator[Statement]:
    """What is declared before a loop, in all blocks around it."""
    for block in (b for b in walk(body) if isinstance(b, Block) and loop in walk(b)):
        for statement in block.body:
            if loop in walk(statement):
                break
            if isinstance(statement, Declare):
                yield statement
