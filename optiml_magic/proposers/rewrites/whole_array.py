"""Few threads, or few blocks, that go through long rows, and then through them once more.

A norm of a whole array adds up all elements and divides each of them; a softmax asks for the
greatest before. Blocks share the rounds that combine, one loop after the other; of the last loop
each makes some rounds, behind the parts of the others, which its threads put together.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import partial

from optiml_magic.kernels.primitives.base import Kernel, Refused
from optiml_magic.kernels.primitives.chunks import chunk
from optiml_magic.kernels.primitives.counted import all_counted
from optiml_magic.kernels.primitives.effects import loops_in
from optiml_magic.kernels.primitives.lanes import Lanes
from optiml_magic.kernels.primitives.rows import rows
from optiml_magic.kernels.primitives.sizes import rounds
from optiml_magic.kernels.primitives.spread import spread_rounds
from optiml_magic.model.hypothesis import TIME, Hypothesis
from optiml_magic.proposers.rewrites.kernel_rule import Site
from optiml_magic.proposers.rewrites.row_to_lanes import THREADS, order, shared_by

_WIDTH = 256  # threads of a block
_PARTS = (8, 16, 32, 64, 128, 256)  # of each row, which every block puts together: ours
_EACH = (1024, 2048, 4096, 8192, 16384)  # rounds of a block: ours
_SHORT = 512  # rounds that no parts are made of: ours


def whole_array(kernel: Kernel, few: int) -> Iterator[Site]:
    """All long loops of a kernel by as ``few`` blocks for each row as fill the chip."""
    if isinstance(_apart(kernel, few), Refused):
        return
    yield Site(
        "whole", "blocks share the loops that combine, and make some rounds each of the last",
        partial(_apart, kernel, few), 0.95,
        Hypothesis(TIME, "lower", "the whole chip goes through the rows", (4.0, 512.0)),
        arithmetic=order(kernel, rows(kernel)),
    )  # fmt: skip


def _apart(kernel: Kernel, few: int) -> Kernel | Refused:
    made, count = kernel, 0
    parts = max(n for n in _PARTS if n <= max(few, _PARTS[0]))
    while (number := next(iter(_long(made)), None)) is not None:
        split = all_counted(made, (number,))
        split = split if isinstance(split, Refused) else chunk(split, number, parts, _PARTS)
        if isinstance(split, Refused):
            last = _some_rounds(made, number, few)
            return last if isinstance(last, Refused) else _in_front(last, count)
        made, count = split, count + 1
    return Refused("no long loop is left behind those that combine")


def _long(kernel: Kernel) -> list[int]:
    """The loops that parts are made of, or blocks for their rounds, by number."""
    axes, loops = kernel.axes(), loops_in(kernel.function.body)
    inside = {inner for loop in loops for inner in loops_in(loop.body)}
    return [
        number for number, loop in enumerate(loops)
        if loop in axes and loop not in inside and (rounds(kernel, axes[loop]) or _SHORT) >= _SHORT
    ]  # fmt: skip


def _some_rounds(kernel: Kernel, number: int, few: int) -> Kernel | Refused:
    """The only long loop, the rounds of which do not meet, by blocks along a free axis."""
    made = all_counted(kernel, (number,))
    if isinstance(made, Refused) or _long(kernel) != [number]:
        return Refused("another loop is as long, and left to as few threads")
    length = rounds(made, made.axes()[loops_in(made.function.body)[number]])
    first = max(n for n in _EACH if n <= max((length or 0) // few, _EACH[0]))
    spread = spread_rounds(made, number, (first, *(n for n in _EACH if n != first)))
    return spread if isinstance(spread, Refused) else _shared(spread)


def _in_front(kernel: Kernel, count: int) -> Kernel:
    """With as many launches in front, which make the parts, by blocks that each share one."""
    last = kernel.program.launches.index(kernel.launch)
    for at in range(last - count, last):
        made = _shared(replace(kernel, launch=kernel.program.launches[at], behind=None))
        if isinstance(made, Kernel):
            kernel = replace(kernel, program=made.program, launch=made.program.launches[last])
    return kernel


def _shared(kernel: Kernel) -> Kernel | Refused:
    """A block for each thread, which shares its loops, also those over parts."""
    loops = tuple(range(len(loops_in(kernel.function.body))))
    lanes = Lanes("block", _WIDTH, _WIDTH, THREADS, THREADS)
    return shared_by(kernel, loops, lanes) if loops else Refused("it has no loop")
