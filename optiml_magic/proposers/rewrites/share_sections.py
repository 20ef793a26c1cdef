"""Blocks that wait for one of their threads, or whose threads walk along rows between barriers."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import partial

from optiml_magic.kernels.primitives.base import Kernel, Refused, in_turn
from optiml_magic.kernels.primitives.counted import all_counted
from optiml_magic.kernels.primitives.direct import direct, in_full
from optiml_magic.kernels.primitives.effects import Effects, loops_in
from optiml_magic.kernels.primitives.operation_counts import operations
from optiml_magic.kernels.primitives.plain import PLAIN
from optiml_magic.kernels.primitives.rows import along
from optiml_magic.kernels.primitives.sections import Kind, sectioned, shared_sections
from optiml_magic.kernels.primitives.vectors import vectorised
from optiml_magic.model.hypothesis import TIME, Hypothesis
from optiml_magic.proposers.rewrites.kernel_rule import KernelRule, Site

#: In the order in which one kernel gets several: what a loop leaves alike is told by its text.
_KINDS: tuple[tuple[Kind, str, float], ...] = (
    ("rows", "lanes share the rows of a waiting block's threads", 0.8),
    ("columns", "threads that would have none share the columns of others", 0.8),
    ("alone", "a block shares what one of its threads did", 0.86),
    ("alike", "a block shares what each of its threads did alike", 0.84),
)
_MORE = 0.02  # by which all of them are likelier than the likeliest: ours
_FEWER = 1.3  # times fewer operations of a thread, from which a section counts in full: ours


class ShareSections(KernelRule):
    """``if (threadIdx.x == 0) for ...`` beside a barrier, and a dot product for each thread."""

    name = "share_sections"
    before = (*PLAIN, in_full, direct)
    teaches = (
        "Between two barriers one thread of the block had a loop, and all others waited for it: a "
        "load, its latency and an addition after the other. The whole block shares the rounds, and "
        "puts together through shared memory what each thread has. Where each thread walked along "
        "a row of its own, the lanes of a warp read elements that lie a row apart; a warp that "
        "shares a row reads neighbouring ones, and the block's warps share the rows. Where there "
        "are fewer columns than threads, those that had none take a part of each. Where every "
        "thread went through the same row with the same result, each takes a part of it instead."
    )

    def sites(self, kernel: Kernel) -> Iterator[Site | Refused]:
        if not kernel.reading.barriers:
            return
        refused, sites = list[Refused](), list[Site]()
        for kind, does, prior in _KINDS:
            found = shared_sections(kernel, kind)
            if not found.counters:
                refused += [Refused(r.reason, r.line) for r in found.refused]
                continue
            names = ", ".join(dict.fromkeys(found.counters))
            sites.append(Site(
                kind, f"{does} over {names}", partial(_shared, kernel, kind),
                round(prior * _counts(kernel, found.kernel, kind), 2),
                Hypothesis(TIME, "lower", "no thread waits for one that works alone", (1.1, 32.0)),
                ({"LANES": 8}, {}) if kind == "rows" else ({},),
                () if found.exact else ("the order of additions",),
            ))  # fmt: skip
        if len(sites) > 1:
            yield _joined(kernel, sites)
        yield from sites
        yield from refused[:1]


def _counts(kernel: Kernel, made: Kernel, kind: Kind) -> float:
    """How much sharing counts, by the operations that the busiest thread has no more.

    Lanes that share rows do as much as before, but read neighbouring elements.
    """
    if kind not in ("alone", "alike"):
        return 1.0
    fewer = operations(kernel) / operations(made)
    return min(1.0, max(0.0, (fewer - 1) / (_FEWER - 1)))


def _shared(kernel: Kernel, kind: Kind) -> Kernel | Refused:
    """All sections of a kind, with rows brought by vectors where these are followed as far."""
    wide = _by_vectors(kernel) if kind == "rows" else kernel
    made = sectioned(wide, kind)
    return sectioned(kernel, kind) if isinstance(made, Refused) and wide is not kernel else made


def _by_vectors(kernel: Kernel) -> Kernel:
    loops, axes, effects = loops_in(kernel.function.body), kernel.axes(), Effects(kernel)
    at = tuple(
        number for number, loop in enumerate(loops)
        if loop in axes and any(along(kernel, axes[loop], a) for a in effects.accesses(loop))
        and not {*loops_in(loop.body)} & {*axes}
    )  # fmt: skip
    plain = all_counted(kernel, at)
    return kernel if isinstance(plain, Refused) else vectorised(plain, at)[0]


def _joined(kernel: Kernel, sites: Sequence[Site]) -> Site:
    """All of them, one after the other."""
    steps = [partial(_shared, kind=kind) for kind, *_ in _KINDS if kind in {s.key for s in sites}]
    arithmetic = dict.fromkeys(change for site in sites for change in site.arithmetic)
    return replace(
        sites[0],
        key="all",
        title="; ".join(site.title for site in sites),
        apply=partial(in_turn, kernel, steps),
        prior=round(max(site.prior for site in sites) + _MORE, 2),
        arithmetic=tuple(arithmetic),
    )
