"""Loops in which all threads of a block read the same elements, through tiles in shared memory."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace
from functools import partial

from optiml_magic.kernels.primitives.base import Kernel, NotLegal, Refused, in_turn, where_legal
from optiml_magic.kernels.primitives.bounded import bounded
from optiml_magic.kernels.primitives.counted import as_counted
from optiml_magic.kernels.primitives.effects import Effects, is_simple, loops_in
from optiml_magic.kernels.primitives.flagged import flagged
from optiml_magic.kernels.primitives.flow import Flow
from optiml_magic.kernels.primitives.foreseen import foreseen
from optiml_magic.kernels.primitives.held import holding
from optiml_magic.kernels.primitives.levelled import levelled
from optiml_magic.kernels.primitives.sizes import rounds
from optiml_magic.kernels.primitives.staged import (
    ROUNDS,
    block_rounds,
    most_rounds_staged,
    slices,
    stage,
)
from optiml_magic.kernels.primitives.unbroken import unbroken
from optiml_magic.kernels.primitives.unstaged import unstaged
from optiml_magic.kernels.tree import Loop
from optiml_magic.model.hypothesis import Hypothesis
from optiml_magic.model.space import Point
from optiml_magic.proposers.rewrites.kernel_rule import KernelRule, Site
from optiml_magic.proposers.rewrites.scalarise_array import written_short

_REQUESTS = "l1tex__t_requests_pipe_lsu_mem_global_op_ld.sum"
_FEW = 32  # rounds that are not worth two waits: ours


class StageTile(KernelRule):
    """All pairs, tables and filters: what a round reads does not depend on the thread."""

    name = "stage_tile"
    before = (unstaged, bounded, unbroken, foreseen)
    teaches = (
        "Each thread of a block read the same elements in each round, so a warp asked the caches "
        "for one element at a time. A block that brings the elements of the next rounds with "
        "neighbouring lanes on neighbouring elements asks once for each sector, and the threads "
        "read them from shared memory, which gives one word to all lanes at once."
    )

    def sites(self, kernel: Kernel) -> Iterator[Site | Refused]:
        rows = holding(kernel)
        held = written_short(rows.kernel) if rows.words else kernel
        if isinstance(held, Kernel) and held is not kernel:
            with suppress(NotLegal):
                for site in _staged(where_legal(levelled, held)):
                    if isinstance(site, Site):
                        own = f"hold a thread's row of {', '.join(rows.arrays)} in registers"
                        where = "".join(f", where {n} is {v}" for n, v in rows.sizes.items())
                        title = f"{own}, and {site.title}{where}"
                        yield replace(site, key=f"held {site.key}", title=title, prior=0.93)
        yield from _staged(where_legal(levelled, kernel))


def _staged(kernel: Kernel) -> Iterator[Site | Refused]:
    effects, flow = Effects(kernel), Flow(kernel)
    numbers, names, most, inside = [], list[str](), 0, set[Loop]()
    room = ROUNDS[-1]
    for number, loop in enumerate(loops_in(kernel.function.body)):
        axis = flow.axes.get(loop)
        if loop in inside or axis is None or not slices(kernel, axis, effects, always=False):
            continue
        length = rounds(kernel, axis)
        if length is not None and length < _FEW:
            yield Refused(f"a loop of {length} rounds is too short for tiles", loop.line)
            continue
        try:
            flow.together(loop)
        except NotLegal as reason:
            yield Refused(reason.reason, reason.line)
            continue
        found = slices(kernel, axis, effects)
        if not found:
            alike = "what all threads read alike they read in some rounds only"
            yield Refused(alike, loop.line)
            continue
        numbers.append(number)
        inside |= set(loops_in(loop.body))
        names += [s.array for s in found]
        most, room = max(most, length or 0), min(room, most_rounds_staged(found))
    if not numbers:
        return
    effects.straightforward()
    arrays = ", ".join(dict.fromkeys(names))
    yield Site(
        f"loops {numbers}",
        f"stage {arrays} in shared tiles for the whole block",
        partial(_apply, kernel, tuple(numbers), block_rounds(kernel)),
        0.3,
        Hypothesis(_REQUESTS, "lower", "a block loads each element once", (2.0, 32.0)),
        _points(block_rounds(kernel), most, len(numbers), room),
    )


def _points(threads: int, rounds_: int, loops: int, room: int) -> tuple[Point, ...]:
    more = min(4 * threads, room)
    if loops > 1 or more <= threads or (rounds_ and rounds_ < more):
        return ({},)
    return ({"TILE": threads}, {"TILE": more})


def _apply(kernel: Kernel, at: tuple[int, ...], rounds_: int) -> Kernel | Refused:
    """Counted, flagged and staged: the loops with these numbers, the last one first."""
    steps = [
        *(partial(as_counted, at=number, ready=is_simple) for number in at),
        partial(flagged, at=at),
        *(
            partial(stage, at=number, rounds=rounds_, left=left)
            for left, number in reversed([*enumerate(at)])
        ),
    ]
    return in_turn(kernel, steps)
