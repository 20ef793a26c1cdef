"""Atomic operations on few elements, in a block's own copies of these."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import partial

from optiml_magic.chips import CHIPS
from optiml_magic.kernels.primitives.base import Kernel, Refused, in_turn, where_legal
from optiml_magic.kernels.primitives.counters import COPIES, Counters, counters, private
from optiml_magic.kernels.primitives.cutting import cut
from optiml_magic.kernels.primitives.direct import direct, in_full
from optiml_magic.kernels.primitives.effects import Effects, loops_in
from optiml_magic.kernels.primitives.flat import flat
from optiml_magic.kernels.primitives.released import released
from optiml_magic.kernels.primitives.room import SHARED, fitting
from optiml_magic.kernels.primitives.shaped import linear
from optiml_magic.kernels.primitives.sizes import threads, with_grid
from optiml_magic.kernels.primitives.stopped import stopped
from optiml_magic.kernels.primitives.taking import WIDTHS, Way, dealing, ways
from optiml_magic.kernels.primitives.unstrided import unstrided
from optiml_magic.kernels.primitives.updates import leaves
from optiml_magic.kernels.primitives.written import written
from optiml_magic.model.hypothesis import Hypothesis
from optiml_magic.model.space import Point
from optiml_magic.proposers.rewrites.kernel_rule import KernelRule, Site

_ATOMICS = "l1tex__t_sectors_pipe_lsu_mem_global_op_red.sum"
_SEVERAL = 4  # threads for each element, below which copies are not worth their end: ours
_TAKEN = 0.25  # of an array's elements, below which most updates are of others: ours
_PRIORS = {"dealt": 0.9, "vectors": 0.88}
_LARGE = 8 * 1024  # bytes of the copies above which blocks should be few and large: ours


class PrivateCounters(KernelRule):
    """Histograms, segment sums, votes: the data say which of few elements is updated."""

    name = "private_counters"
    before = (released, flat, stopped, unstrided, linear, in_full, direct, written)
    teaches = (
        "All threads of the grid updated the same few elements in global memory, and updates of "
        "one element are done one after the other. Each block keeps its own copies in shared "
        "memory, several where lanes of a warp would meet in an element or in a bank, and at its "
        "end updates each element once; with few blocks that take many elements each, that end is "
        "rare."
    )

    def sites(self, kernel: Kernel) -> Iterator[Site | Refused]:
        if kernel.block[1] != 1 and not any(_shared(own) for own in counters(kernel)):
            kernel = with_grid(where_legal(cut, kernel, {"y": 1}))
        found, refused = fitting(kernel, _often(kernel, counters(kernel)), _SEVERAL)
        total = sum(own.bytes for own in found)
        yield from refused
        if not found:
            return
        shared = dealing(kernel)
        most = _copies(kernel, found)
        several, reason = ways(
            kernel, sum(own.count for own in found), _width(kernel, found, total * most)
        )
        if reason is not None:
            Effects(kernel).straightforward()
            line = leaves(kernel.function.body) if shared is None else 0
            if line or not loops_in(kernel.function.body):
                yield reason
                return
        arrays = ", ".join(own.array for own in found)
        exact = all(own.whole.exact for own in found)
        chosen = tuple((own.array, own.held) for own in found)
        rows = frozenset(own.array for own in found if own.apart)
        keep = partial(private, arrays=chosen, rows=rows)
        if not several and shared is None:
            several = [Way("block", "", lambda same: same, ({},))]
        for way in (*(() if shared is None else (shared,)), *several):
            yield Site(
                way.key, f"count in a block's own copy of {arrays}{way.words}",
                partial(in_turn, kernel, (way.step, keep)),
                _PRIORS.get(way.key, 0.85),
                Hypothesis(_ATOMICS, "lower", "a block updates each element once", (2.0, 1024.0)),
                _points(way, most), () if exact else ("the order of additions",),
            )  # fmt: skip


def _often(kernel: Kernel, every: Iterable[Counters | Refused]) -> Iterator[Counters | Refused]:
    """Those whose copies take what is updated, by how many of all elements blocks have one of."""
    arrays = kernel.facts.arrays if kernel.facts is not None else {}
    for own in every:
        if isinstance(own, Counters) and not own.all and own.array in arrays:
            count = arrays[own.array].nbytes // (own.whole.type.size or 1)
            if own.count < _TAKEN * count:
                reason = f"copies would be of {own.count} of the {count} elements of `{own.array}`"
                yield Refused(reason, own.line)
                continue
        yield own


def _shared(found: Counters | Refused) -> bool:
    """Whether all blocks update the same elements."""
    return isinstance(found, Counters) and not found.apart


def _width(kernel: Kernel, found: Sequence[Counters], size: int) -> int:
    """Threads of a block: few where there are no more threads than multiprocessors can share."""
    wide = 1024 if size > _LARGE else 256
    count, chip = threads(kernel), CHIPS.get(kernel.chip)
    if count is None or chip is None:
        return wide
    each = min(count // chip.sms, _threads(kernel, found) or count)
    return max((n for n in WIDTHS if n <= wide and each >= n), default=WIDTHS[0])


def _threads(kernel: Kernel, found: Sequence[Counters]) -> int | None:
    """The threads that update one block's elements, where blocks have elements of their own."""
    count, rows = threads(kernel), max(own.count // own.held for own in found)
    return count // rows if count is not None and rows > 1 else None


def _copies(kernel: Kernel, found: Sequence[Counters]) -> int:
    """The most copies that fit, and that are updated often enough: one a lane is enough."""
    size, held = sum(own.bytes for own in found), sum(own.held for own in found)
    busy = _threads(kernel, found)
    fit = [c for c in COPIES if c * size <= SHARED]
    return max((c for c in fit if busy is None or c * held * _SEVERAL <= busy), default=1)


def _points(way: Way, most: int) -> tuple[Point, ...]:
    """As many copies as fit, half of these, fewer threads a block, and a single copy."""
    first, *others = way.points
    near = [{**first, "COPIES": copies} for copies in (most, most // 2, 1) if copies]
    near[2:2] = [{**point, "COPIES": most} for point in others]
    return tuple(point for at, point in enumerate(near) if point not in near[:at])
