"""Blocks whose threads wait for each other often: a warp, or fewer threads, do the same work."""

from __future__ import annotations

import math
from collections.abc import Iterator
from functools import partial

from optiml_magic.chips import CHIPS
from optiml_magic.kernels.primitives.base import Kernel, NotLegal, Refused
from optiml_magic.kernels.primitives.block_rounds import block_rounds
from optiml_magic.kernels.primitives.carved import carved
from optiml_magic.kernels.primitives.loaded_before import loaded_before
from optiml_magic.kernels.primitives.loosened import all_loosened
from optiml_magic.kernels.primitives.one_buffer import one_buffer
from optiml_magic.kernels.primitives.own_elements import Held
from optiml_magic.kernels.primitives.raised import raised
from optiml_magic.kernels.primitives.thread_loops import (
    WARP,
    extent,
    fewer_threads,
    folded,
    registers_for_shared,
    warp_for_block,
)
from optiml_magic.kernels.primitives.unstaged import unstaged
from optiml_magic.kernels.primitives.waits import Waits
from optiml_magic.kernels.primitives.widened import widened
from optiml_magic.model.hypothesis import Hypothesis
from optiml_magic.proposers.rewrites.kernel_rule import KernelRule, Site

_FULL = 16  # warps of a multiprocessor that are enough where threads have more to do; ours
_EMPTY = 0.1  # the chance of blocks of a warp where there are too few of them; ours
_OFTEN = 4  # barriers outside of loops; ours
_MOST = 512  # accesses that are written out; ours
_WAITS = Hypothesis(
    "smsp__average_warps_issue_stalled_barrier_per_issue_active.ratio", "lower",
    "fewer warps wait for each other, and each has more to do meanwhile", (1.2, 1000.0),
)  # fmt: skip


class FewerThreads(KernelRule):
    """Trees, scans, sorts, lattices and small problems of a block each."""

    name = "fewer_threads"
    before = (raised, unstaged, widened, carved, one_buffer, block_rounds, loaded_before)
    teaches = (
        "A block did little between two barriers, at which all of its warps waited for the "
        "slowest; and where half of its threads had nothing to do any more, they still came to "
        "each. A thread that takes several of them has more to do from one barrier to the next, "
        "independent work that hides latencies, and what they have in common it does once. A block "
        "that becomes one warp needs no barrier but that of its lanes, and more such blocks fit a "
        "multiprocessor. Where threads ask for their neighbours' elements, a lane that takes "
        "neighbours has most of these in registers, and the others by a shuffle."
    )

    def sites(self, kernel: Kernel) -> Iterator[Site | Refused]:
        if not kernel.reading.barriers:
            return
        axis, own = folded(kernel), extent(kernel)
        threads = math.prod(size or 1 for size in kernel.block)
        if threads <= WARP:
            return
        Waits(kernel, axis)
        warps = threads // WARP
        if warps > 1 and _written_out(kernel, warps):
            likely = _chance(kernel) if _fills(kernel) else _EMPTY
            try:
                Held(kernel, warps)
            except NotLegal as reason:
                yield Refused(reason.reason, reason.line)
            else:
                title = "a warp does what a block did, with its elements in registers"
                yield Site("registers", title, partial(_in_registers, kernel), likely, _WAITS)
            title = "a warp does what a block did"
            yield Site("warp", title, partial(warp_for_block, kernel), 0.9 * likely, _WAITS)
        wide = [own // by for by in (2, 4, 8) if own % by == 0 and threads // by > WARP
                and threads // by % WARP == 0 and _written_out(kernel, by)]  # fmt: skip
        if wide:
            name = kernel.fresh("THREADS")
            points = tuple({name: size} for size in wide[:2])
            make = partial(fewer_threads, kernel, wide)
            yield Site(
                "fewer",
                "each thread does what several did",
                make,
                0.8 * _chance(kernel),
                _WAITS,
                points,
            )


def _in_registers(kernel: Kernel) -> Kernel | Refused:
    """Where a lane takes neighbours, a guard leaves none of its items out that it might save."""
    return registers_for_shared(all_loosened(kernel))


def _chance(kernel: Kernel) -> float:
    """More where the threads of a block wait again and again."""
    barriers = kernel.reading.barriers
    often = len(barriers) > _OFTEN or any(barrier.loops for barrier in barriers)
    return 0.5 if often else 0.2


def _fills(kernel: Kernel) -> bool:
    """Whether blocks of one warp are enough to keep all multiprocessors busy."""
    chip = CHIPS.get(kernel.chip)
    if kernel.facts is None or chip is None:
        return True
    return math.prod(kernel.facts.grid) >= _FULL * chip.sms


def _written_out(kernel: Kernel, times: int) -> bool:
    return len(kernel.reading.accesses) * times <= _MOST
