"""Small problems of one thread each, held in registers: their loops written out."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial

from optiml_magic.kernels.primitives.base import Kernel, NotLegal, Refused, in_turn, where_legal
from optiml_magic.kernels.primitives.cutting import block_names, cut, tuned
from optiml_magic.kernels.primitives.direct import direct, in_full
from optiml_magic.kernels.primitives.effects import Effects, loops_in
from optiml_magic.kernels.primitives.endings import ended
from optiml_magic.kernels.primitives.owned import hold, owned, region_of, unroll
from optiml_magic.kernels.primitives.raised import raised
from optiml_magic.kernels.primitives.records import Owned
from optiml_magic.kernels.primitives.regions import written_out
from optiml_magic.kernels.primitives.room import SHARED
from optiml_magic.kernels.primitives.shaped import linear
from optiml_magic.kernels.reading import Axis
from optiml_magic.kernels.tree import Blank, Block, Loop, walk
from optiml_magic.model.hypothesis import Hypothesis
from optiml_magic.model.space import Point
from optiml_magic.proposers.rewrites.kernel_rule import KernelRule, Site

_FEW = 64  # rounds of the outermost loop
_BLOCKS = (128, 64, 256)


class ScalariseArray(KernelRule):
    """A matrix a thread, in memory or in a local array that loops of constant bounds walk through.

    What such loops index by their counters has constant indices once they are unrolled.
    """

    name = "scalarise_array"
    before = (raised, linear, in_full, direct)
    teaches = (
        "Each thread worked on a few elements of its own in memory, one access for each use. In "
        "a local array whose indices are constants, since the loops around them are unrolled, a "
        "compiler keeps them in registers; memory is read once and written once, by 16 bytes. "
        "Where the elements of neighbouring threads lie one behind the other, the lanes of a warp "
        "bring them together, so that neighbours load neighbours, and change them in shared memory."
    )

    def sites(self, kernel: Kernel) -> Iterator[Site | Refused]:
        loops, effects = loops_in(kernel.function.body), Effects(kernel)
        done, held = set[Loop](), list[set[str]]()
        for number, loop in enumerate(loops):
            axis = kernel.axes().get(loop)
            if loop in done or axis is None or not 1 < (axis.trips or 0) <= _FEW:
                continue
            done |= set(loops_in(loop.body))
            try:
                region = region_of(kernel, number, effects)
                found = owned(kernel, region, effects) if region is not None else []
            except NotLegal as reason:
                yield Refused(reason.reason, reason.line)
                continue
            if found:
                arrays = ", ".join(one.array for one in found)
                held.append({one.array for one in found})
                yield from _together(kernel, number, found)
                yield Site(
                    f"own {number}", f"hold a thread's elements of {arrays} in registers",
                    partial(hold, kernel, number), 0.78,
                    Hypothesis(
                        "l1tex__t_requests_pipe_lsu_mem_global_op_ld.sum", "lower",
                        "an element is loaded once, with its neighbours", (1.5, 16.0),
                    ),
                )  # fmt: skip
            elif _indexed(kernel, axis) and not _said(kernel, loop):
                yield Site(
                    f"local {number}", "unroll the loops that index a local array",
                    partial(unroll, kernel, number), 0.4,
                    Hypothesis(
                        "launch__local_bytes_per_thread", "lower",
                        "constant indices let the array lie in registers", (1.5, 1e6),
                    ),
                )  # fmt: skip
        yield from _stretch(kernel, held)


def _stretch(kernel: Kernel, held: Sequence[set[str]]) -> Iterator[Site]:
    """All that a thread does, where it owns more than what is ``held`` in a single loop."""
    whole = where_legal(ended, kernel)
    effects = Effects(whole)
    try:
        region = region_of(whole, None, effects)
        found = owned(whole, region, effects) if region is not None else []
    except NotLegal:  # which is no less to be expected than that there are no such elements
        return
    arrays = {one.array for one in found}
    if not any(arrays <= one for one in held):
        yield from _together(whole, None, found)


def _together(kernel: Kernel, number: int | None, found: Sequence[Owned]) -> Iterator[Site]:
    """The lanes of a warp bring what they own, where it lies in rows."""
    blocks = _blocks(kernel, found)
    if blocks is None:
        return
    points, step = blocks
    arrays = ", ".join(one.array for one in found)
    yield Site(
        f"rows {'all' if number is None else number}",
        f"hold a thread's elements of {arrays} in registers, "
        "which the lanes of a warp bring and store together",
        partial(in_turn, kernel, (step, partial(hold, at=number, together=True))), 0.82,
        Hypothesis(
            "l1tex__t_sectors_pipe_lsu_mem_global_op_ld.sum", "lower",
            "neighbouring lanes load neighbouring vectors", (1.5, 16.0),
        ),
        points,
    )  # fmt: skip


def _blocks(
    kernel: Kernel, found: Sequence[Owned]
) -> tuple[tuple[Point, ...], Callable[[Kernel], Kernel | Refused]] | None:
    """Blocks whose warps can bring what they own together, where it lies in rows.

    Small ones where they are free, since registers and shared memory limit these less.
    """
    warp = max((one.room for one in found if one.in_rows), default=0)
    fitting = [n for n in _BLOCKS if n // 32 * warp <= SHARED]
    if not warp or not fitting:
        return None
    one = {} if kernel.block[1] == 1 else {"y": 1}  # a warp's records lie along a row
    extents = {"x": fitting[0], **one}
    steps = [partial(cut, extents=extents), partial(tuned, values={"x": fitting})]
    step = partial(in_turn, steps=steps)
    if isinstance(step(kernel), Kernel):
        name = block_names(kernel, "x")["x"]
        return tuple({name: n} for n in fitting), step
    fits = (kernel.block[0] or 0) // 32 * warp <= SHARED
    return (({},), lambda same: same) if fits else None


def _indexed(kernel: Kernel, axis: Axis) -> bool:
    """Whether a local array is indexed by the rounds of a loop that a compiler can write out."""
    inside = [a for a in kernel.reading.accesses if axis.name in a.loops and a.space == "local"]
    moving = (a for a in inside if a.index is not None and a.index.symbols & {*a.loops})
    if not any(moving):
        return False
    try:
        return bool(written_out(kernel, axis))
    except NotLegal:
        return False


def _said(kernel: Kernel, loop: Loop) -> bool:
    """Whether something stands before a loop that says how it is unrolled."""
    return any(
        isinstance(before, Blank) and after is loop
        for block in walk(kernel.function.body) if isinstance(block, Block)
        for before, after in zip(block.body, block.body[1:], strict=False)
    )  # fmt: skip
