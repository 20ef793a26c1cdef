"""P7, unroll: several rounds of a loop at a time, so that more loads are under way.

A compiler writes the remaining rounds for itself. Source: CUDA C++ Programming Guide, "#pragma
unroll".
"""

from __future__ import annotations

from optiml_magic.kernels.editing import Node, edited, lines
from optiml_magic.kernels.primitives.base import Kernel, NotLegal, primitive
from optiml_magic.kernels.primitives.effects import Effects, loops_in
from optiml_magic.kernels.tree import Blank, Block, Loop, Statement, walk
from optiml_magic.source.directives import TuneDirective

COUNTS = (1, 2, 4, 8, 16)


@primitive
def unroll_by(kernel: Kernel, count: int) -> Kernel:
    """The kernel whose ``open_loops`` take ``count`` rounds at a time, a tuned number."""
    found = open_loops(kernel)
    if not found:
        raise NotLegal("no loop with loads has a number of rounds that is not known")
    name = kernel.fresh("UNROLL")
    swaps: dict[Node, tuple[Statement, ...]] = {
        loop: (lines(f"#pragma unroll {name}"), loop) for loop in found
    }
    return kernel.rewritten(
        edited(kernel.function.body, swaps), directives=[TuneDirective(name, COUNTS, count)]
    )


def open_loops(kernel: Kernel) -> list[Loop]:
    """Innermost loops that load from memory, and of which nothing says how they are unrolled."""
    said = {
        after for block in walk(kernel.function.body) if isinstance(block, Block)
        for before, after in zip(block.body, block.body[1:], strict=False)
        if isinstance(before, Blank)
    }  # fmt: skip
    effects = Effects(kernel)
    return [
        loop for loop, axis in kernel.axes().items()
        if loop not in said and len(loops_in(loop)) == 1
        and axis.trips is None and axis.exact and axis.step is not None
        and any(access.mode == "load" for access in effects.accesses(loop))
        and not any(axis.name in barrier.loops for barrier in kernel.reading.barriers)
    ]  # fmt: skip
