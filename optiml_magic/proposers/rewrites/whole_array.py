"""One thread, or one block, that goes through a whole array, and then through it once more.

A norm adds up all elements and divides each of them; a softmax asks for the greatest before. Blocks
share the rounds that combine, one loop after the other, and what is left has a thread for each
round, behind a launch that puts the parts of these together.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import partial

from optiml_magic.kernels.primitives.base import Kernel, Refused, where_legal
from optiml_magic.kernels.primitives.chunks import chunk, is_alone
from optiml_magic.kernels.primitives.counted import all_counted
from optiml_magic.kernels.primitives.cutting import cut
from optiml_magic.kernels.primitives.effects import loops_in
from optiml_magic.kernels.primitives.lanes import Lanes
from optiml_magic.kernels.primitives.rows import rows
from optiml_magic.kernels.primitives.sizes import rounds
from optiml_magic.kernels.primitives.spread import spread_rounds
from optiml_magic.model.hypothesis import TIME, Hypothesis
from optiml_magic.proposers.rewrites.compute_once import computed_once
from optiml_magic.proposers.rewrites.kernel_rule import Site
from optiml_magic.proposers.rewrites.row_to_lanes import THREADS, order, shared_by

_WIDTH = 256  # threads of a block
_PARTS = (32, 64, 128, 256)  # which one thread puts together: ours
_SHORT = 512  # rounds that parts are not made of: ours


def whole_array(kernel: Kernel) -> Iterator[Site]:
    """The loops of a kernel of one thread by all of the chip."""
    if not is_alone(kernel) or isinstance(_apart(kernel), Refused):
        return
    yield Site(
        "whole", "blocks share the loops that combine, and each round of the last has a thread",
        partial(_apart, kernel), 0.95,
        Hypothesis(TIME, "lower", "the whole chip goes through the array", (4.0, 512.0)),
        arithmetic=order(kernel, rows(kernel)),
    )  # fmt: skip


def _apart(kernel: Kernel) -> Kernel | Refused:
    made, count = kernel, 0
    while (number := next(iter(_long(made)), None)) is not None:
        split = all_counted(made, (number,))
        split = split if isinstance(split, Refused) else chunk(split, number, _PARTS[-1], _PARTS)
        if isinstance(split, Refused):
            last = _a_thread_a_round(made, number)
            if isinstance(last, Refused):
                return last
            return where_legal(computed_once, _by_blocks(last, count))
        made, count = split, count + 1
    return Refused("no long loop is left behind those that combine")


def _long(kernel: Kernel) -> list[int]:
    """The loops that parts are made of, or threads for their rounds, by number."""
    axes, loops = kernel.axes(), loops_in(kernel.function.body)
    inside = {inner for loop in loops for inner in loops_in(loop.body)}
    return [
        number for number, loop in enumerate(loops)
        if loop in axes and loop not in inside and (rounds(kernel, axes[loop]) or _SHORT) >= _SHORT
    ]  # fmt: skip


def _a_thread_a_round(kernel: Kernel, number: int) -> Kernel | Refused:
    """The only long loop, the rounds of which do not meet."""
    if _long(kernel) != [number]:
        return Refused("another loop is as long, and left to one thread")
    made = all_counted(kernel, (number,))
    made = made if isinstance(made, Refused) else spread_rounds(made, number, order="x")
    return made if isinstance(made, Refused) else cut(made, {"x": _WIDTH})


def _by_blocks(kernel: Kernel, count: int) -> Kernel:
    """As many launches in front, which make the parts, by blocks that each share one."""
    last = kernel.program.launches.index(kernel.launch)
    for at in range(last - count, last):
        part = replace(kernel, launch=kernel.program.launches[at], behind=None)
        walked, loops = rows(part), loops_in(part.function.body)
        lanes = Lanes("block", _WIDTH, _WIDTH, THREADS, THREADS)
        made = shared_by(part, tuple(loops.index(axis.node) for axis in walked), lanes)
        if walked and isinstance(made, Kernel):
            kernel = replace(kernel, program=made.program, launch=made.program.launches[last])
    return kernel
