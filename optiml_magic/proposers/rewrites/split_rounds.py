"""Filters along time: what a round makes of its state alone, by a thread for each round."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from optiml_magic.chips import CHIPS
from optiml_magic.kernels.primitives.accumulating import in_register
from optiml_magic.kernels.primitives.base import Kernel, NotLegal, Refused
from optiml_magic.kernels.primitives.beforehand import gives_product
from optiml_magic.kernels.primitives.direct import direct, in_full
from optiml_magic.kernels.primitives.opened import opened
from optiml_magic.kernels.primitives.plain import PLAIN
from optiml_magic.kernels.primitives.shaped import linear
from optiml_magic.kernels.primitives.sizes import rounds, threads
from optiml_magic.kernels.primitives.tailed import tail_of, tailed
from optiml_magic.model.hypothesis import TIME, Hypothesis
from optiml_magic.proposers.rewrites.compute_once import LARGEST
from optiml_magic.proposers.rewrites.kernel_rule import KernelRule, Site

_FEW = 512  # threads of a multiprocessor, from which on they hide what a row of rounds takes: ours
_LONG = 64  # rounds, below which another launch is not worth it: ours
_SAVED = 4  # numbers of a round that wait in memory at most: ours


class SplitRounds(KernelRule):
    """Envelopes and gains, volatilities, gates: a recurrence, and a function of what it is at."""

    name = "split_rounds"
    before = (*PLAIN, linear, in_full, direct, opened, in_register)
    teaches = (
        "A thread went along its row round by round, since each round needs what the one before "
        "left. But most of a round was a function of that alone, which no other round asks for. "
        "With few rows there are few threads, and each of them did all of it one after the other. "
        "The first launch now follows what is handed on, and notes it; the one behind has a thread "
        "for each round, so that the long functions of all of them are computed side by side."
    )

    def sites(self, kernel: Kernel) -> Iterator[Site | Refused]:
        if not kernel.reading.axes:
            return
        try:
            _, _, tail = tail_of(kernel)
        except NotLegal:
            return
        if not tail.is_long(kernel) or len(tail.saved) > _SAVED:
            return
        count, chip = threads(kernel), CHIPS.get(kernel.chip)
        length = rounds(kernel, kernel.axes()[tail.loop])
        if length is not None and length < _LONG:
            return
        if count is not None and chip is not None and count >= _FEW * chip.sms:
            yield Refused("its rows are enough to keep the chip busy", tail.loop.line)
            return
        if count is not None and length is not None and count * length > LARGEST:
            yield Refused("what its rounds leave does not fit", tail.loop.line)
            return
        kept = (*tail.saved, *tail.held)
        rounded = gives_product(kernel, kernel.function.body, kept)
        yield Site(
            "tail", "a launch behind computes what rounds do not hand on, a thread a round",
            partial(tailed, kernel), 0.84,
            Hypothesis(TIME, "lower", "what rounds make of their state is made side by side",
                       (1.2, 8.0)),
            arithmetic=("the rounding of products",) * rounded,
        )  # fmt: skip
