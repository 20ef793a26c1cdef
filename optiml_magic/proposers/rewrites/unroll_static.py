"""Loops over elements in memory, several rounds at a time."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from functools import partial

from optiml_magic.chips import CHIPS
from optiml_magic.kernels.primitives.base import Kernel, Refused, where_legal
from optiml_magic.kernels.primitives.batched import batched, batches
from optiml_magic.kernels.primitives.chains import SUMS, chains, split_chains
from optiml_magic.kernels.primitives.cutting import cut
from optiml_magic.kernels.primitives.restricted import held_up, restricted
from optiml_magic.kernels.primitives.sizes import threads
from optiml_magic.kernels.primitives.unrolling import longest, open_loops, unroll_by
from optiml_magic.kernels.tree import Loop
from optiml_magic.model.hypothesis import TIME, Hypothesis
from optiml_magic.proposers.rewrites.kernel_rule import KernelRule, Site

_RESIDENT = 1024  # threads of a multiprocessor, of which some work while others wait
_BLOCK, _NARROW = 256, 32  # threads below which each multiprocessor gets blocks of one warp


class UnrollStatic(KernelRule):
    """``#pragma unroll N`` before long loops whose rounds are unknown; batches in short ones."""

    name = "unroll_static"
    teaches = (
        "A loop asks after each few rounds whether there is another, and its loads wait behind "
        "that question. With more rounds written out, their loads are under way together, and "
        "counters and tests are shared among them; too many need registers that other warps lack. "
        "Of a loop that has few rounds a compiler makes those that are left over one by one: it "
        "loads those that there are into registers first. "
        "A sum of floats waits for each of its additions; several sums side by side do not. "
        "Where a round also stores, loads of later ones may pass only if no pointer leads there."
    )

    def sites(self, kernel: Kernel) -> Iterator[Site | Refused]:
        yield from _chains(kernel)
        found = open_loops(kernel)
        if not found:
            return
        first, more, few = kernel, "", _busy(kernel) < _RESIDENT
        short = [batch.loop for batch in batches(kernel)]
        if short:
            yield _at_once(kernel, short, 0.6 if few else 0.4)
        if len(short) == len(found):
            return
        if held_up(kernel) and isinstance(alone := restricted(kernel), Kernel):
            first = where_legal(cut, alone, {"x": _NARROW}) if _busy(kernel) < _BLOCK else alone
            more = ", and say that pointers lead to arrays of their own"
        name = kernel.fresh("UNROLL")
        where = ", ".join(str(loop.line) for loop in found)
        yield Site(
            "unroll", f"several rounds at a time of the loop on line {where}{more}",
            partial(unroll_by, first, 8), 0.6 if few else 0.3,
            Hypothesis(
                "smsp__inst_executed.sum", "lower", "rounds share counters and tests", (1.02, 1.6)
            ),
            tuple({name: count} for count in _counts(longest(kernel, found), few=few)),
        )  # fmt: skip


def _at_once(kernel: Kernel, short: Sequence[Loop], prior: float) -> Site:
    """Loops of few rounds, of which a compiler would make the rest in smaller and smaller steps."""
    name, where = kernel.fresh("ROUNDS"), ", ".join(str(loop.line) for loop in short)
    most = longest(kernel, short)
    counts = [n for n in (4, 8, 2) if most is None or n <= most]
    return Site(
        "at once", f"load at once what several rounds of the loop on line {where} need",
        partial(batched, kernel, counts[0]), prior,
        Hypothesis(TIME, "lower", "more loads are under way", (1.0, 3.0)),
        tuple({name: count} for count in counts),
    )  # fmt: skip


def _chains(kernel: Kernel) -> Iterator[Site]:
    """Sums whose additions wait for each other, where few warps fill the time."""
    names = dict.fromkeys(v.name for chain in chains(kernel) for v, _ in chain.sums)
    if names:
        yield Site(
            "chains", f"{SUMS} sums side by side for {', '.join(names)}",
            partial(split_chains, kernel), 0.7 if _busy(kernel) < _RESIDENT else 0.3,
            Hypothesis(TIME, "lower", "additions do not wait for each other", (1.0, 3.0)),
            arithmetic=("the order of additions",),
        )  # fmt: skip


def _counts(most: int | None, *, few: bool) -> tuple[int, ...]:
    """Rounds at a time, no more than there are; more of them first where threads are few."""
    order = (16, 8, 4) if few else (8, 16, 2)
    return order if most is None else tuple(n for n in order if n <= most) or (2,)


def _busy(kernel: Kernel) -> float:
    """The threads that there are for each multiprocessor."""
    count, chip = threads(kernel), CHIPS.get(kernel.chip)
    return math.inf if count is None or chip is None else count / chip.sms
