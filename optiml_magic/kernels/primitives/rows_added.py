"""Items of a row that all add to one element of it, an atomic operation each, as a thread a row.

``atomicAdd(&y[row], a[row * n + c] * x[c])`` of a thread for each element adds up what a loop over
the row would. As one it is a sum of a row like any other, which lanes or a block may share.
"""

from __future__ import annotations

from dataclasses import replace

from optiml_magic.kernels.primitives.base import Kernel, NotLegal, Refused, primitive, where_legal
from optiml_magic.kernels.primitives.collected import collected
from optiml_magic.kernels.primitives.effects import Effects, loops_in
from optiml_magic.kernels.primitives.grids import needed
from optiml_magic.kernels.primitives.paired import done
from optiml_magic.kernels.primitives.serial import by_rows
from optiml_magic.kernels.primitives.sizes import measured, rounds, with_grid
from optiml_magic.kernels.primitives.unravelled import unravelled
from optiml_magic.kernels.primitives.updates import updated

_ROW = {"threadIdx.x", "blockIdx.x"}
_WIDTH = 128  # rows of a block; rules choose another
_FEW = 256  # rows, below which blocks for each of them leave the chip empty: ours
_SHORT = 32  # elements of a row, below which lanes have no part of it: ours


@primitive
def rows_added(kernel: Kernel) -> Kernel:
    """A thread for each row, which adds up what its elements add to one place, and adds it once."""
    if loops_in(kernel.function.body):
        raise NotLegal("an item has a loop of its own")
    Effects(kernel).straightforward()
    for one in updated(kernel):
        if isinstance(one, Refused):
            raise NotLegal(one.reason, one.line)
    others = [a for a in kernel.reading.accesses if a.mode == "store"]
    if others:
        raise NotLegal("an item stores as well", others[0].line)
    if not any(a.mode == "atomic" for a in kernel.reading.accesses):
        raise NotLegal("its items add to nothing")
    rows = by_rows(where_legal(unravelled, kernel), _WIDTH)
    made = done(collected(done(rows)))
    inside = made.reading.symbols.inside
    for access in made.reading.accesses:
        if access.mode == "atomic" and access.loops:
            raise NotLegal("elements of a row add to several places", access.line)
        if access.mode == "atomic" and not (access.index and _ROW & inside(access.index)):
            raise NotLegal("several rows add to one place", access.line)
    if kernel.facts is None:
        return made
    made = with_grid(replace(made, facts=kernel.facts))
    lengths = [rounds(made, axis) for axis in made.axes().values()]
    count = needed(made, "x")
    if count is None or measured(made, count) < _FEW:
        raise NotLegal("there are few rows")
    if any(length is not None and length < _SHORT for length in lengths):
        raise NotLegal("its rows are short")
    return made
