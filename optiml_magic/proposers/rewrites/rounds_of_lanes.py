"""Whether the lanes of a group may share the rounds of loops, however these are counted."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from math import prod
from typing import ParamSpec

from optiml_magic.chips import CHIPS
from optiml_magic.kernels.primitives.abreast import abreast
from optiml_magic.kernels.primitives.base import Kernel, NotLegal, Refused, where_legal
from optiml_magic.kernels.primitives.batched import batched
from optiml_magic.kernels.primitives.broken import broken
from optiml_magic.kernels.primitives.coalescing import side_by_side
from optiml_magic.kernels.primitives.counted import all_counted
from optiml_magic.kernels.primitives.effects import Effects, loops_in
from optiml_magic.kernels.primitives.grids import needed
from optiml_magic.kernels.primitives.lanes import Lanes
from optiml_magic.kernels.primitives.operation_counts import operations_outside
from optiml_magic.kernels.primitives.rounds import shareable
from optiml_magic.kernels.primitives.rows import along
from optiml_magic.kernels.primitives.scans import Scans, scanned
from optiml_magic.kernels.primitives.sizes import (
    around,
    rounds,
    usual_rounds,
    words_taken,
    working,
)
from optiml_magic.kernels.primitives.unpeeled import unpeeled
from optiml_magic.kernels.reading import Axis
from optiml_magic.kernels.symbols import MEMORY
from optiml_magic.kernels.tree import Loop
from optiml_magic.proposers.rewrites.kernel_rule import Site

LONG = 8192  # elements of a row that a warp takes at most: ours
_SECTOR_BYTES, _WARP = 32, 32
_THREAD = "threadIdx.x"
_OTHERS = 0.2  # the chance of lanes in another number than a row asks for: ours
_AT_ONCE = 4  # rounds, which are what a lane has of most rows (``row_threads.A_LANE``): ours
_BUSY = 0.125  # of the warps that a chip holds, from which on these hide what loads take: ours

_P = ParamSpec("_P")


def unshared(kernel: Kernel, at: tuple[int, ...]) -> Refused | None:
    """Why lanes cannot share the rounds of these loops."""
    refused = _as_it_is(kernel, at)
    if refused is not None:
        plain = all_counted(kernel, at)
        if isinstance(plain, Refused):
            return plain
        for number in at:
            plain = where_legal(unpeeled, plain, number)
        return _as_it_is(plain, at)
    return None


def _as_it_is(kernel: Kernel, at: tuple[int, ...]) -> Refused | None:
    loops, effects = loops_in(kernel.function.body), Effects(kernel)
    try:
        for number in at:
            _scans(kernel, loops[number], effects)
            shareable(kernel, loops[number], effects, scanning=True, broken=True)
    except NotLegal as reason:
        return Refused(reason.reason, reason.line)
    return None


def _scans(kernel: Kernel, loop: Loop, effects: Effects) -> Scans | None:
    """What goes from round to round of a loop; nothing in one that is left early."""
    if broken(kernel, loop, effects, "warp") is not None:
        return None
    return scanned(kernel, loop, effects)


def cut_evenly(kernel: Kernel, site: Site, lanes: Lanes) -> Site | Refused:
    """A site with the points whose groups of lanes fill blocks, where these have to stay whole.

    It is unlikely where the best of them by arithmetic is not among these.
    """
    width = (kernel.block[0] or 0) * (kernel.block[1] or 0)
    if not width or (kernel.block[1] == 1 and needed(kernel, "x") is not None):
        return site
    fit = {n for n in lanes.counts if any(width % (b // n) == 0 for b in lanes.blocks)}
    points = tuple(p for p in site.points if p.get("LANES", lanes.count) in fit)
    if not points or width * lanes.count % lanes.block:
        return Refused("its blocks cannot be cut into groups of lanes")
    prior = site.prior if points[0] == site.points[0] else min(site.prior, _OTHERS)
    return replace(site, points=points, prior=prior)


def evenly(trips: Sequence[int | None], strips: Sequence[int]) -> tuple[int, ...]:
    """Those of the strips that take all rounds of loops where these are numbers; all if none does.

    A short loop is one strip.
    """
    if None in trips:
        return tuple(strips)
    known = [count for count in trips if count]
    whole = [n for n in (*strips, *known) if n <= max(strips) and not any(t % n for t in known)]
    return tuple(dict.fromkeys(whole)) or tuple(strips)


def in_batches(
    step: Callable[_P, Kernel | Refused], *args: _P.args, **kwargs: _P.kwargs
) -> Kernel | Refused:
    """What a step makes of loops that lanes share, each with several of its rounds under way."""
    made = step(*args, **kwargs)
    return made if isinstance(made, Refused) else where_legal(batched, made, _AT_ONCE)


def several_by(apply: Callable[[], Kernel | Refused], at: tuple[int, ...]) -> Kernel | Refused:
    """What lanes share, with several rounds of each under way."""
    made = apply()
    return made if isinstance(made, Refused) else abreast(made, at[0], 1)


def handed_exactly(kernel: Kernel, at: tuple[int, ...]) -> bool:
    """Whether what goes from round to round is the same in any order; no where that is unknown."""
    plain = all_counted(kernel, at)
    if isinstance(plain, Refused):
        return False
    loops, effects = loops_in(plain.function.body), Effects(plain)
    try:
        found = [_scans(plain, loops[number], effects) for number in at]
    except NotLegal:
        return False
    return all(scans is None or scans.exact for scans in found)


def repeats(kernel: Kernel, found: Sequence[Axis], lanes: int) -> bool:
    """Whether what all lanes of a row would do alike takes longer than sectors of its own.

    Beside the loops that they share each lane does all that its thread did, while the least that a
    thread by itself costs is a sector for each word of its row.
    """
    chip = CHIPS.get(kernel.chip)
    if chip is None:
        return False
    outside = operations_outside(kernel, [axis.node for axis in found])
    words = sum(
        words_taken(kernel, axis)
        * (1 if rounds(kernel, axis) else usual_rounds(kernel, axis) or 1)
        * (1 if seldom(kernel, axis) else prod(_times(kernel, axis)))
        for axis in found
    )
    rate = chip.fp32_per_sm * chip.sms * chip.clock
    return lanes * outside / rate > words * _SECTOR_BYTES / chip.dram_bandwidth


def seldom(kernel: Kernel, axis: Axis) -> bool:
    """Whether memory says in which of the rounds around a loop it is made at all.

    Such as what begins a list, once for each: how often is not known, and is counted as once.
    """
    own = [a for a in kernel.reading.accesses if a.space == "global" and axis.name in a.loops]
    told = [{c for c in a.guard if MEMORY in c.depends and axis.name not in c.depends} for a in own]
    return bool(told and around(kernel, axis)) and bool(set.intersection(*told))


def meet(kernel: Kernel, found: Sequence[Axis], apart: int) -> bool:
    """Whether neighbours load what lies side by side as it is, as in windows of few elements.

    Or as many elements ``apart`` at most: rows that are short then meet, as of a pooled plane.
    """
    effects = Effects(kernel)
    walked = [a for axis in found for a in effects.accesses(axis.node) if along(kernel, axis, a)]
    warp = min(prod(n or 1 for n in kernel.block), working(kernel) or _WARP) >= _WARP
    return warp and bool(walked) and all(side_by_side(kernel, access, apart) for access in walked)


def windows(kernel: Kernel, found: Sequence[Axis]) -> bool:
    """Whether memory says where some rows begin, such as those of a resized image.

    These may be neighbours already, which lanes are to make of them.
    """
    effects, symbols = Effects(kernel), kernel.reading.symbols
    return any(
        symbols[name].kind == "load" and _THREAD in symbols[name].depends
        and axis.name not in symbols[name].depends
        for axis in found for access in effects.accesses(axis.node)
        if access.mode == "load" and access.space == "global" and access.offset is not None
        for name in symbols.inside(access.offset) & symbols.table.keys()
    )  # fmt: skip


def _times(kernel: Kernel, axis: Axis) -> Iterator[int]:
    """The rounds of the loops around a loop."""
    return (usual_rounds(kernel, outer) or 1 for outer in around(kernel, axis))


def of_a_block(kernel: Kernel, length: int) -> bool:
    """Whether rows are long, and longer than a warp takes, or so few that warps leave much idle."""
    count, chip = working(kernel), CHIPS.get(kernel.chip)
    few = count is None or chip is None or count < _BUSY * chip.sms * chip.warps_per_sm
    return length > LONG or (length > LONG // 4 and few)
