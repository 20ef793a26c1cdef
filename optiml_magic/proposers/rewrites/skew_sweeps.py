"""Sweeps along a thread's own array, such as rows of an edit distance: several at once."""

from __future__ import annotations

import math
from collections.abc import Iterator
from functools import partial

from optiml_magic.chips import CHIPS
from optiml_magic.kernels.primitives.base import Kernel, NotLegal, Refused
from optiml_magic.kernels.primitives.block_rounds import block_rounds
from optiml_magic.kernels.primitives.carved import carved
from optiml_magic.kernels.primitives.direct import direct, in_full
from optiml_magic.kernels.primitives.flipped import flipped
from optiml_magic.kernels.primitives.one_buffer import one_buffer
from optiml_magic.kernels.primitives.one_row import one_row
from optiml_magic.kernels.primitives.peeled import peeled
from optiml_magic.kernels.primitives.plain import PLAIN
from optiml_magic.kernels.primitives.sizes import value
from optiml_magic.kernels.primitives.skewed import COUNTS, skewed
from optiml_magic.kernels.primitives.swapped_rows import swapped_rows
from optiml_magic.kernels.primitives.sweeps import Sweeps, sweeps
from optiml_magic.kernels.primitives.thread_for_block import thread_for_block
from optiml_magic.model.hypothesis import TIME, Hypothesis
from optiml_magic.proposers.rewrites.kernel_rule import KernelRule, Site

_UNROLLED = 64  # rounds that compilers write out whole, so that registers hold the array: ours
_PART = 4  # times as long as what a group begins and ends with a sweep should be: ours
_FIRST = 8  # sweeps at once where nothing says how long they are: ours
_MANY = 64  # blocks for each multiprocessor, from which on a thread each is enough: ours


def alone(kernel: Kernel) -> Kernel | Refused:
    """The kernel with a thread for each of its very many blocks."""
    chip = CHIPS.get(kernel.chip)
    few = kernel.facts and chip and math.prod(kernel.facts.grid) < _MANY * chip.sms
    if few or not kernel.reading.barriers:
        return Refused("it has too few blocks for a thread each")
    return thread_for_block(kernel.shaped((carved, one_buffer, block_rounds)))


class SkewSweeps(KernelRule):
    """Trees of prices, edit distances, time warping, curves by repeated interpolation."""

    name = "skew_sweeps"
    before = (alone, *PLAIN, in_full, direct, flipped, swapped_rows, peeled)
    teaches = (
        "A thread went along an array of its own again and again, and each round of each sweep "
        "loaded elements from it and stored one. Such an array lies in memory, and what all "
        "threads have of it is more than a cache holds. A sweep needs of the one before only that "
        "it is an element ahead, so several follow each other at that distance: registers hold "
        "what lies between the first and the last of them, and an element is loaded once and "
        "stored once for all of them. The rounds of different sweeps wait less for each other too. "
        "A block that went along a shared array between its barriers becomes such a thread, where "
        "there are so many blocks that they fill the chip with a thread each."
    )

    def sites(self, kernel: Kernel) -> Iterator[Site | Refused]:
        row = one_row(kernel)
        if isinstance(row, Kernel):
            yield Site(
                "row", "keep one row of a table of which each is made from the one before",
                partial(one_row, kernel), 0.6,
                Hypothesis(TIME, "lower", "a row takes less of the caches", (1.0, 4.0)),
            )  # fmt: skip
            kernel = row
        try:
            found = sweeps(kernel)
        except NotLegal as reason:
            if reason.line:
                yield Refused(reason.reason, reason.line)
            return
        name = kernel.fresh("SWEEPS")
        for at, swept in enumerate(found):
            length = value(kernel, swept.rounds, {swept.outer.name: 0})
            short = length is not None and length <= _UNROLLED
            if short and not swept.apart:
                continue  # sums side by side, which registers hold as they are
            counts = _counts(swept, length)
            if not counts:
                yield Refused("its sweeps are too short to follow each other", swept.outer.line)
                continue
            far = "an element" if swept.apart == 1 else f"{swept.apart} elements"
            apart = f", {far} apart each" if swept.apart else ""
            yield Site(
                f"sweeps {at}",
                f"several sweeps along {swept.names} at once{apart}",
                partial(skewed, kernel, at, counts[0]),
                0.35 if short else 0.88,
                Hypothesis(TIME, "lower", "an element is loaded once for several sweeps", (1.2, 6)),
                tuple({name: count} for count in counts),
            )


def _counts(swept: Sweeps, length: int | None) -> tuple[int, ...]:
    """How many sweeps may be worth a try at once, the likeliest first."""
    if length is None or not swept.apart:
        return _FIRST, 2 * _FIRST, _FIRST // 2
    best = [n for n in COUNTS if n <= 2 * _FIRST and _PART * (n - 1) * swept.apart <= length]
    return tuple(best[-1:-4:-1])
