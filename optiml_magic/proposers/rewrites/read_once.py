"""Rows and columns that a thread reads several times, kept in registers after the first."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from functools import partial

from optiml_magic.kernels.primitives.base import Kernel, Refused, where_legal
from optiml_magic.kernels.primitives.branched import branched
from optiml_magic.kernels.primitives.counted import all_counted
from optiml_magic.kernels.primitives.direct import direct, in_full
from optiml_magic.kernels.primitives.effects import Effects, loops_in
from optiml_magic.kernels.primitives.items import WIDEST
from optiml_magic.kernels.primitives.kept import Again, again, keep
from optiml_magic.kernels.primitives.lanes import Lanes
from optiml_magic.kernels.primitives.rows import along, rows
from optiml_magic.kernels.primitives.shaped import linear, planar
from optiml_magic.kernels.primitives.sizes import rounds
from optiml_magic.kernels.primitives.unpeeled import unpeeled
from optiml_magic.kernels.reading import Access, Axis
from optiml_magic.model.hypothesis import Hypothesis
from optiml_magic.model.space import Point
from optiml_magic.proposers.rewrites.kernel_rule import KernelRule, Site
from optiml_magic.proposers.rewrites.row_to_lanes import (
    BLOCKS,
    COUNTS,
    LONG,
    SHORT,
    THREADS,
    shared_by,
)

_BYTES = Hypothesis("dram__bytes_read.sum", "lower", "each element is read once", (1.2, 3.0))
_KEEP = (1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96, 128)
_ROOM = 512  # bytes that a thread keeps, in half of its registers
_EASY = 128  # bytes of these that leave room for as many threads as hide latencies: ours
_BESIDE = (2, 4, 8)  # lanes of a warp for a column; the others take its neighbours
_FIRST = {"threadIdx.x": 0, "threadIdx.y": 0, "threadIdx.z": 0}


class ReadOnce(KernelRule):
    """Softmax, norms, losses: loops of a thread, or of lanes, over the same elements."""

    name = "read_once"
    before = (linear, planar, in_full, direct, branched)
    teaches = (
        "The same elements were brought from memory by several loops, one after the other. The "
        "first rounds of all of them take their elements from registers, which are loaded once, "
        "all before the first of the loops, so that many loads are under way; lanes share a row "
        "first, so that it fits their registers. Rounds beyond those kept do as they did."
    )

    def sites(self, kernel: Kernel) -> Iterator[Site | Refused]:
        walked = rows(kernel)
        if walked:
            yield from _in_rows(kernel, walked)
            return
        for number, loop in enumerate(loops_in(kernel.function.body)):
            axis = kernel.axes().get(loop)
            if axis is not None and axis.start is not None and axis.start.value == 1:
                kernel = where_legal(unpeeled, kernel, number)
        known = [(_rounds(kernel, one), one) for one in again(kernel)]
        count, best = max(known, key=lambda pair: pair[0] * pair[1].bytes, default=(0, None))
        if best is None or not count:
            return
        counts = _counts(best.bytes)
        arrays = ", ".join(dict.fromkeys(one.array for one in best.kept))
        what, keeps = f"what {len(best.numbers)} loops touch of {arrays}", kernel.fresh("KEEP")
        yield Site(
            f"keep {best.numbers}", f"keep {what}",
            partial(_kept, kernel, best.numbers, counts), 0.86, _BYTES,
            tuple({keeps: n} for n in _near(count, counts)),
        )  # fmt: skip
        if count * best.bytes > _EASY and not kernel.reading.barriers:
            lanes = Lanes("apart", 4, 256, _BESIDE, BLOCKS)
            names = {axis.name for axis in best.axes}
            yield Site(
                f"apart {best.numbers}", f"lanes of a warp keep {what}",
                partial(_kept_by, kernel, best.numbers, lanes, False, counts), 0.8, _BYTES,
                _points(kernel.fresh("LANES"), keeps, count, _BESIDE, 1, best.bytes, counts),
                _order(kernel, names),
            )  # fmt: skip


def _order(kernel: Kernel, names: Collection[str]) -> tuple[str, ...]:
    """What changes where lanes share these loops."""
    reduced = [r for r in kernel.reading.reductions if {*names} & {*r.axes}]
    return () if all(r.exact for r in reduced) else ("the order of additions",)


def _kept(kernel: Kernel, at: tuple[int, ...], counts: tuple[int, ...]) -> Kernel | Refused:
    plain = all_counted(kernel, at)
    return plain if isinstance(plain, Refused) else keep(plain, at, counts[0], counts)


def _in_rows(kernel: Kernel, walked: Sequence[Axis]) -> Iterator[Site]:
    """Rows of which several loops take the same elements, which lanes then keep."""
    effects = Effects(kernel)
    taken = [{a.array: a for a in effects.accesses(axis.node) if along(kernel, axis, a)}
             for axis in walked]  # fmt: skip
    twice = {name for at, own in enumerate(taken) for name in own for later in taken[at + 1 :]
             if name in later}  # fmt: skip
    if not twice:
        return
    loops = loops_in(kernel.function.body)
    at = tuple(loops.index(axis.node) for axis in walked)
    length = max((n for axis in walked if (n := rounds(kernel, axis)) is not None), default=0)
    accesses = [access for own in taken for access in own.values()]
    width = WIDEST // max(access.element.size or WIDEST for access in accesses)
    width = width if width > 1 and not length % width else 1
    each = sum(_size(next(own[n] for own in taken if n in own)) for n in twice) * width
    names, counts = ", ".join(sorted(twice)), _counts(each)
    arithmetic = _order(kernel, {axis.name for axis in walked})
    for lanes, words, most in (
        (Lanes("warp", 32, 256, COUNTS, BLOCKS), "lanes of a warp keep", LONG // 4),
        (Lanes("block", 256, 256, THREADS, THREADS), "a block keeps", None),
    ):
        block = lanes.group == "block"
        if length and (length < SHORT if block else most is not None and length > most):
            continue
        name = kernel.fresh("THREADS" if block else "LANES")
        yield Site(
            f"{lanes.group} {at} {width}", f"{words} what {len(at)} loops touch of {names}",
            partial(_kept_by, kernel, at, lanes, width > 1, counts), 0.9, _BYTES,
            _points(name, kernel.fresh("KEEP"), length, lanes.counts, width, each, counts),
            arithmetic,
        )  # fmt: skip


def _kept_by(
    kernel: Kernel, at: tuple[int, ...], lanes: Lanes, vectors: bool, counts: tuple[int, ...]
) -> Kernel | Refused:
    made = shared_by(kernel, at, lanes, vectors=vectors)
    if isinstance(made, Refused):
        return made
    found = max(again(made), key=lambda one: one.widest, default=None)
    if found is None:
        return Refused("its lanes keep nothing")
    return keep(made, found.numbers, counts[0], counts)


def _points(
    lanes: str, keep_: str, length: int, groups: Sequence[int], width: int, each: int,
    counts: tuple[int, ...],
) -> tuple[Point, ...]:  # fmt: skip
    """The fewest lanes whose registers hold a row easily, then twice and four times as many."""
    if not length:
        return ({lanes: 32 if 32 in groups else 256, keep_: counts[min(3, len(counts) - 1)]},)

    def needed(count: int) -> int:
        return -(-length // (count * width))

    easy = [n for n in groups if needed(n) * each <= _EASY] or [groups[-1]]
    return tuple({lanes: n, keep_: _near(needed(n), counts)[0]} for n in easy[:3])


def _size(access: Access) -> int:
    return access.element.size or 0


def _counts(size: int) -> tuple[int, ...]:
    """How many rounds of so many bytes a thread has room for."""
    return tuple(n for n in _KEEP if n * size <= _ROOM) or _KEEP[:1]


def _rounds(kernel: Kernel, one: Again) -> int:
    """The rounds of a thread at the measured sizes, 8 where these are not known."""
    length = rounds(kernel, one.axes[0], _FIRST)
    return 8 if length is None else length


def _near(count: int, counts: tuple[int, ...]) -> tuple[int, ...]:
    """As many as there are rounds, if these fit, else as many as fit; and half of them."""
    fit = next((n for n in counts if n >= count), counts[-1])
    less = max((n for n in counts if 2 * n <= fit), default=counts[0])
    return tuple(dict.fromkeys((fit, less)))
