"""P7, unroll: several rounds of a loop at a time, so that more loads are under way.

A compiler writes the remaining rounds for itself. Source: CUDA C++ Programming Guide, "#pragma
unroll".
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet

from optiml_magic.kernels.editing import Node, edited, lines
from optiml_magic.kernels.primitives.base import Kernel, NotLegal, primitive
from optiml_magic.kernels.primitives.effects import Effects, loops_in
from optiml_magic.kernels.primitives.sizes import most_rounds
from optiml_magic.kernels.reading import Axis
from optiml_magic.kernels.tree import Blank, Block, Loop, Statement, walk
from optiml_magic.source.directives import TuneDirective

COUNTS = (1, 2, 4, 8, 16)
_SHORT = 16  # rounds of a loop over what a vector holds
_WRITTEN_OUT = 64  # known rounds, of which compilers write out all, and of more but a few: ours


@primitive
def unroll_by(kernel: Kernel, count: int) -> Kernel:
    """The kernel whose ``open_loops`` take ``count`` rounds at a time, a tuned number."""
    found = open_loops(kernel)
    if not found:
        raise NotLegal("of no loop with loads do compilers leave rounds for later")
    name = kernel.fresh("UNROLL")
    swaps: dict[Node, tuple[Statement, ...]] = {
        loop: (lines(f"#pragma unroll {name}"), loop) for loop in found
    }
    return kernel.rewritten(
        edited(kernel.function.body, swaps), directives=[TuneDirective(name, COUNTS, count)]
    )


def open_loops(kernel: Kernel) -> list[Loop]:
    """Innermost loops that load from memory, and of which nothing says how they are unrolled.

    One of vectors counts as innermost, as the loop over what it loaded is written out. Those that
    have no two rounds at the measured sizes, such as what vectors leave over, are none of them.
    """
    said = {
        after for block in walk(kernel.function.body) if isinstance(block, Block)
        for before, after in zip(block.body, block.body[1:], strict=False)
        if isinstance(before, Blank)
    }  # fmt: skip
    effects, axes = Effects(kernel), kernel.axes()
    return [
        loop for loop, axis in axes.items()
        if loop not in said and _written_out(loop, said, axes)
        and not _compiled(kernel, axis)
        and axis.exact and axis.step is not None
        and any(access.mode == "load" for access in effects.accesses(loop))
        and not any(axis.name in barrier.loops for barrier in kernel.reading.barriers)
        and ((count := most_rounds(kernel, axis)) is None or count > 1)
    ]  # fmt: skip


def _compiled(kernel: Kernel, axis: Axis) -> bool:
    """Whether a compiler writes out all rounds: few, or as many as tuned numbers alone say."""
    if axis.trips is not None:
        return axis.trips <= _WRITTEN_OUT
    forms = (axis.start, axis.step, axis.stop)
    return all(f is not None and f.symbols <= kernel.program.values.keys() for f in forms)


def longest(kernel: Kernel, loops: Sequence[Loop]) -> int | None:
    """The most rounds of any of the loops at the measured sizes; None where one's are unknown."""
    axes = kernel.axes()
    counts = [most_rounds(kernel, axes[loop]) for loop in loops]
    known = [count for count in counts if count is not None]
    return max(known) if known and len(known) == len(counts) else None


def _written_out(loop: Loop, said: AbstractSet[Statement], axes: Mapping[Loop, Axis]) -> bool:
    """Whether each loop within is short, and something says how it is unrolled."""
    inner = [one for one in loops_in(loop) if one is not loop]
    return all(
        one in said and (axis := axes.get(one)) is not None
        and axis.trips is not None and axis.trips <= _SHORT
        for one in inner
    )  # fmt: skip
