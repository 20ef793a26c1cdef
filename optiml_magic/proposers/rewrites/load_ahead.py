"""Loops over elements in place, of which each round waits for the store of the one before."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from optiml_magic.chips import CHIPS
from optiml_magic.kernels.primitives.base import Kernel, Refused, where_legal
from optiml_magic.kernels.primitives.carried import carried
from optiml_magic.kernels.primitives.cutting import cut
from optiml_magic.kernels.primitives.direct import direct, in_full
from optiml_magic.kernels.primitives.loaded_ahead import COUNTS, loaded_ahead
from optiml_magic.kernels.primitives.plain import PLAIN
from optiml_magic.kernels.primitives.sizes import threads, working
from optiml_magic.model.hypothesis import TIME, Hypothesis
from optiml_magic.proposers.rewrites.kernel_rule import KernelRule, Site

_RESIDENT = 2048  # threads of a multiprocessor that is full
_ASKED = 16  # loads of 4 bytes of each of its threads, which keep the memory busy: ours
_RAISED = 0.1  # the chance of one thread for what a block has shared: ours
_WARP = 32
_NARROW = 32  # threads of a block, where there are few: each multiprocessor gets some


class LoadAhead(KernelRule):
    """Sums along columns in place, sweeps of a tridiagonal solver, filters of a signal in place."""

    name = "load_ahead"
    before = (*PLAIN, in_full, direct, carried)
    teaches = (
        "Each round loaded an element, computed and stored to the same array. The compiler cannot "
        "know that the next load is not what was just stored, so there was one load on its way, "
        "and every round waited for memory. The indices say that they differ: what several rounds "
        "need is loaded first, and they then store one after the other."
    )

    def shaped(self, kernel: Kernel) -> Kernel:
        """What it is, and whether it is a thread for what was a block: lanes share that first."""
        made = super().shaped(kernel)
        before, after = threads(kernel), threads(made)
        made.known[LoadAhead] = bool(before and after and before >= _WARP * after)
        return made

    def sites(self, kernel: Kernel) -> Iterator[Site | Refused]:
        made = loaded_ahead(kernel, COUNTS[0])
        if isinstance(made, Refused):
            return
        busy, chip = working(kernel), CHIPS.get(kernel.chip)
        share = 1.0 if busy is None or chip is None else busy / (_RESIDENT * chip.sms)
        few = share <= 1 / _ASKED
        first = next((n for n in COUNTS if n * share >= _ASKED / COUNTS[0]), COUNTS[-1])
        shape = where_legal(cut, kernel, {"x": _NARROW}) if few else kernel
        name = kernel.fresh("AHEAD")
        counts = dict.fromkeys(
            (first, COUNTS[-1] if first != COUNTS[-1] else COUNTS[-2], *COUNTS[1:3])
        )
        likely = 0.92 if share * _RESIDENT <= _NARROW else 0.86 if few else 0.5
        yield Site(
            "ahead", "load what several rounds need before the first of them stores",
            partial(loaded_ahead, shape, first),
            _RAISED if kernel.known.get(LoadAhead) else likely,
            Hypothesis(TIME, "lower", "more loads are on their way", (1.2, 32.0)),
            tuple({name: count} for count in counts),
        )  # fmt: skip
