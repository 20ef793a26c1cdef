"""Parts of an array that a block reads and writes between its barriers, in shared memory."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from optiml_magic.kernels.primitives.base import Kernel, NotLegal, Refused
from optiml_magic.kernels.primitives.block_slices import held, numbers, slices
from optiml_magic.kernels.primitives.direct import direct
from optiml_magic.kernels.primitives.thread_slices import has_scratch, in_local_arrays, parts_at
from optiml_magic.model.hypothesis import TIME, Hypothesis
from optiml_magic.proposers.rewrites.kernel_rule import KernelRule, Site

_WORD = 4  # bytes
_OFTEN = 8  # times that an element is asked for, from which holding it is certain to pay: ours
_CONFLICTS = 1.25  # times fewer passes of banks, from which words are spread: ours
_ONCE = Hypothesis(TIME, "lower", "an element is loaded and stored once", (1.1, 16.0))


class HoldSlice(KernelRule):
    """Sorts, eliminations, transforms and relaxations in place, a block for each."""

    name = "hold_slice"
    before = (direct,)
    teaches = (
        "Each block worked on a part of an array of its own, and read and wrote it in global "
        "memory between one barrier and the next: every store goes to the L2, and every load "
        "waits for a cache. The indices say that no other block asks for that part. It is brought "
        "into shared memory once, changed there, and taken back at the end; what nobody asks for "
        "afterwards stays there."
    )

    def sites(self, kernel: Kernel) -> Iterator[Site | Refused]:
        if not _in_rounds(kernel):
            return
        if has_scratch(kernel):
            yield from _local(kernel)
        if not kernel.reading.barriers:
            return
        known = slices(kernel)
        if known.found:
            names = ", ".join(one.array for one in known.found)
            plain, spread = (sum(one.passes[n] for one in known.found) for n in (0, 1))
            often = min(one.times / one.count for one in known.found)
            yield Site(
                "slice", f"hold a block's part of {names} in shared memory", partial(held, kernel),
                0.93 if often >= _OFTEN else 0.8, _ONCE,
            )  # fmt: skip
            words = all(one.bytes >= _WORD * one.count for one in known.found)
            if words and plain > _CONFLICTS * spread:
                yield Site(
                    "spread", f"hold a block's part of {names} in shared memory, one word more "
                    "behind every 32", partial(held, kernel, spread=True), 0.94, _ONCE,
                )  # fmt: skip
        yield from known.refused


def _local(kernel: Kernel) -> Iterator[Site | Refused]:
    """Scratch of which each thread has a part."""
    try:
        known = parts_at(kernel, numbers(kernel))
    except NotLegal as reason:
        yield Refused(reason.reason, reason.line)
        return
    if known.found:
        names = ", ".join(one.array for one in known.found)
        yield Site(
            "thread", f"hold a thread's part of {names} in a local array",
            partial(in_local_arrays, kernel), 0.93,
            Hypothesis(TIME, "lower", "neighbours' elements lie side by side", (1.1, 64.0)),
        )  # fmt: skip
    elif not kernel.reading.barriers:
        yield from known.refused


def _in_rounds(kernel: Kernel) -> bool:
    """Whether loops load and store elements of one array in global memory."""
    asked = [a for a in kernel.reading.accesses if a.space == "global" and a.loops]
    stored = {a.array for a in asked if a.mode != "load"}
    return any(a.array in stored for a in asked if a.mode != "store")
