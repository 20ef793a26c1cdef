"""Rows and columns that a thread reads several times, kept in registers after the first."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial

from optiml_magic.kernels.primitives.accumulating import in_register
from optiml_magic.kernels.primitives.again import Again, again
from optiml_magic.kernels.primitives.base import Kernel, NotLegal, Refused, in_turn, where_legal
from optiml_magic.kernels.primitives.branched import branched
from optiml_magic.kernels.primitives.counted import all_counted
from optiml_magic.kernels.primitives.cutting import cut
from optiml_magic.kernels.primitives.deciding import line_decided
from optiml_magic.kernels.primitives.direct import direct, in_full
from optiml_magic.kernels.primitives.effects import Effects, loops_in
from optiml_magic.kernels.primitives.items import WIDEST
from optiml_magic.kernels.primitives.kept import keep
from optiml_magic.kernels.primitives.lanes import Lanes
from optiml_magic.kernels.primitives.once_a_row import once_a_row
from optiml_magic.kernels.primitives.opened import opened
from optiml_magic.kernels.primitives.raised import raised
from optiml_magic.kernels.primitives.reciprocals import by_reciprocals, divisions
from optiml_magic.kernels.primitives.rows import along, rows, stored_in_parts
from optiml_magic.kernels.primitives.shaped import linear, planar
from optiml_magic.kernels.primitives.sizes import FIRST, mean_rounds, rounds
from optiml_magic.kernels.primitives.unnested import unnested
from optiml_magic.kernels.primitives.unpeeled import unpeeled
from optiml_magic.kernels.primitives.unstrided import unstrided
from optiml_magic.kernels.reading import Axis
from optiml_magic.kernels.tree import Block, Loop, walk
from optiml_magic.model.hypothesis import Hypothesis
from optiml_magic.proposers.rewrites.keeping import BLOCK, EASY, counts, near, points
from optiml_magic.proposers.rewrites.kernel_rule import KernelRule, Site
from optiml_magic.proposers.rewrites.rounds_of_lanes import unshared
from optiml_magic.proposers.rewrites.row_to_lanes import (
    BLOCKS,
    COUNTS,
    SHORT,
    THREADS,
    order,
    shared_by,
)

#: The chance of lanes that keep a row: they bring it as ``row_to_lanes`` does, which findings ask
#: for by name, and only once. Ours.
_KEPT = 0.94
_BYTES = Hypothesis("dram__bytes_read.sum", "lower", "each element is read once", (1.2, 3.0))
#: What lanes that share columns are, how likely they pay, and of how many columns a warp has such
#: a lane: a softmax of 64 channels took 124 us on an H200 with a thread a column, 75 by hand with
#: two lanes in warps apart, 101 within a warp.
_GROUPS: tuple[tuple[Lanes, str, float, int], ...] = (
    (Lanes("stacked", 4, BLOCK, (2, 4, 8, 16, 32), THREADS), "lanes of several warps", 0.88, 32),
    (Lanes("apart", 4, BLOCK, (2, 4, 8), BLOCKS), "lanes of a warp", 0.84, 1),
)


class ReadOnce(KernelRule):
    """Softmax, norms, losses: loops of a thread, or of lanes, over the same elements."""

    name = "read_once"
    before = (
        raised, unstrided, once_a_row, linear, planar, in_full, direct, branched, in_register,
        opened, unnested,
    )  # fmt: skip
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
        length, best = max(known, key=lambda pair: pair[0] * pair[1].bytes, default=(0, None))
        if best is not None and length:
            yield from _as_it_is(kernel, best, length)


def _as_it_is(kernel: Kernel, found: Again, length: int) -> Iterator[Site]:
    """Each thread keeps what it has, and lanes that are no neighbours share what is much."""
    fit = counts(found.bytes, math.prod(n or 1 for n in kernel.block))
    arrays = ", ".join(dict.fromkeys(one.array for one in found.kept))
    what, name = f"what {len(found.numbers)} loops touch of {arrays}", kernel.fresh("KEEP")
    plain = partial(all_counted, at=found.numbers)
    much = length * found.bytes > EASY
    site = Site(
        f"keep {found.numbers}", f"keep {what}",
        partial(in_turn, kernel, (plain, partial(keep, at=found.numbers, counts=fit))),
        0.8 if much else 0.86, _BYTES, tuple({name: n} for n in near(length, fit)),
    )  # fmt: skip
    yield from _dividing(kernel, found, site)
    if much and not kernel.reading.barriers and unshared(kernel, found.numbers) is None:
        fit, wide = counts(found.bytes, BLOCK), _along_x(kernel)
        many, block = kernel.fresh("LANES"), kernel.fresh("BLOCK")
        for lanes, words, prior, beside in _GROUPS:
            starts = points(many, name, length, lanes.counts, 1, found.bytes, beside)
            if beside > 1:
                starts = tuple({**p, block: max(BLOCK, beside * p[many])} for p in starts)
            if not starts:
                continue
            site = Site(
                f"{lanes.group} {found.numbers}", f"{words} keep {what}",
                partial(in_turn, wide, _sharing(found.numbers, lanes, fit, vectors=False)),
                prior, _BYTES, starts, order(kernel, found.axes),
            )  # fmt: skip
            yield from _dividing(kernel, found, site)


def _along_x(kernel: Kernel) -> Kernel:
    """With all threads of a block along x, so that those of other lanes have the columns beside."""
    others = {axis: 1 for axis, n in zip("yz", kernel.block[1:], strict=True) if n != 1}
    return where_legal(cut, kernel, {"x": BLOCK, **others}) if others else kernel


def _dividing(kernel: Kernel, found: Again, site: Site) -> Iterator[Site]:
    """A site, and before it one without divisions by one value: then memory is what bounds it."""
    effects = Effects(kernel)
    by = [e for axis in found.axes for e in divisions(kernel, axis.node, effects)]
    if by and not line_decided(kernel, by):
        yield replace(
            site, key=f"{site.key} reciprocal", title=f"{site.title}, dividing by reciprocals",
            apply=partial(_multiplied, site), prior=site.prior + 0.02,
            arithmetic=(*site.arithmetic, "divisions by approximate reciprocals"),
        )  # fmt: skip
    yield site


def _multiplied(site: Site) -> Kernel | Refused:
    made = site.apply()
    return by_reciprocals(made) if isinstance(made, Kernel) else made


def _in_rows(kernel: Kernel, walked: Sequence[Axis]) -> Iterator[Site | Refused]:
    """Rows of which several loops take the same elements, which lanes then keep."""
    effects = Effects(kernel)
    taken = {axis.node: {a.array: a.element.size or WIDEST for a in effects.accesses(axis.node)
                         if along(kernel, axis, a)} for axis in walked}  # fmt: skip
    sizes = {name: size for own in taken.values() for name, size in own.items()}
    twice = sorted(name for name in sizes if _again_in_a_block(kernel, name, taken, effects))
    if not twice:
        return
    loops = loops_in(kernel.function.body)
    at = tuple(loops.index(axis.node) for axis in walked)
    kept = unshared(kernel, at)
    if kept is not None:
        yield kept
        return
    lengths = [mean_rounds(kernel, axis) for axis in walked]
    length = max((n for n in lengths if n is not None), default=0)
    width = WIDEST // max(sizes.values())
    width = 1 if length % width or stored_in_parts(kernel, walked) else width
    each = width * sum(sizes[name] for name in twice)
    what = f"what {len(at)} loops touch of {', '.join(twice)}"
    for lanes, words, name in (
        (Lanes("warp", 32, BLOCK, COUNTS, BLOCKS), "lanes of a warp keep", "LANES"),
        (Lanes("block", BLOCK, BLOCK, THREADS, THREADS), "a block keeps", "THREADS"),
    ):
        starts = points(kernel.fresh(name), kernel.fresh("KEEP"), length, lanes.counts, width, each)
        if not starts or (lanes.group == "block" and 0 < length < SHORT):
            continue
        steps = _sharing(at, lanes, counts(each, THREADS[0]), _own(kernel), vectors=width > 1)
        easily = starts[0][kernel.fresh("KEEP")] * each <= EASY
        yield Site(
            f"{lanes.group} {at} {width}", f"{words} {what}", partial(in_turn, kernel, steps),
            _KEPT if easily else 0.8, _BYTES, starts, order(kernel, walked),
        )  # fmt: skip


def _again_in_a_block(
    kernel: Kernel, array: str, taken: Mapping[Loop, Collection[str]], effects: Effects
) -> bool:
    """Whether loops side by side take elements of an array that nothing else may change for them.

    Of one that is written they touch all that is touched: what else reads it asks for memory.
    """
    same = [a for a in kernel.reading.accesses if effects.same(a.array, array)]
    only_read = all(a.mode == "load" for a in same)
    for block in (s for s in walk(kernel.function.body) if isinstance(s, Block)):
        side = [s for s in block.body if isinstance(s, Loop) and array in taken.get(s, ())]
        inside = {e for loop in side for e in effects.inside(loop)}
        if len(side) > 1 and (only_read or all(a.own in inside for a in same)):
            return True
    return False


def _own(kernel: Kernel) -> frozenset[str]:
    """The arrays that are written, each element by the rounds that touch it in a row's loops."""
    try:
        known = again(kernel)
    except NotLegal:
        return frozenset()
    return frozenset(k.array for one in known for k in one.kept) & kernel.reading.written


def _sharing(
    at: tuple[int, ...], lanes: Lanes, fit: tuple[int, ...], own: frozenset[str] = frozenset(),
    *, vectors: bool,
) -> tuple[Callable[[Kernel], Kernel | Refused], ...]:  # fmt: skip
    """Lanes share the loops with these numbers, and keep what they touch."""
    share = partial(shared_by, at=at, lanes=lanes, vectors=vectors)
    return share, partial(keep, at=(), counts=fit, own=own)


def _rounds(kernel: Kernel, one: Again) -> int:
    """The rounds of a thread at the measured sizes, 8 where these are not known."""
    length = rounds(kernel, one.axes[0], FIRST)
    return 8 if length is None else length
