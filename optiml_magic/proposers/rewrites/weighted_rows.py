"""Rows that weigh other rows by a recurrence: attention, tiles of rows and keys in one launch."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace
from functools import partial
from itertools import islice

from optiml_magic.chips import CHIPS
from optiml_magic.errors import SourceError
from optiml_magic.kernels.primitives.base import Kernel, Refused, where_legal
from optiml_magic.kernels.primitives.begun_below import begun_below
from optiml_magic.kernels.primitives.clipped import clipped
from optiml_magic.kernels.primitives.copied import copied, copied_within
from optiml_magic.kernels.primitives.counted import as_counted
from optiml_magic.kernels.primitives.cutting import cut
from optiml_magic.kernels.primitives.direct import direct, in_full
from optiml_magic.kernels.primitives.effects import Effects, is_simple, loops_in
from optiml_magic.kernels.primitives.exponentials import EXPONENTIALS
from optiml_magic.kernels.primitives.lanes import Lanes
from optiml_magic.kernels.primitives.online import online
from optiml_magic.kernels.primitives.opened import opened
from optiml_magic.kernels.primitives.plain import PLAIN
from optiml_magic.kernels.primitives.raised import raised, rows_left
from optiml_magic.kernels.primitives.row_held import row_held
from optiml_magic.kernels.primitives.serial import by_rows
from optiml_magic.kernels.primitives.shaped import linear
from optiml_magic.kernels.primitives.shared_rounds import shared_rounds
from optiml_magic.kernels.primitives.sized import sized
from optiml_magic.kernels.primitives.sizes import most_rounds, with_grid, working
from optiml_magic.kernels.primitives.unasked import unasked
from optiml_magic.kernels.primitives.unpeeled import unpeeled
from optiml_magic.kernels.primitives.unravelled import unravelled
from optiml_magic.kernels.primitives.unravelled_planes import unravelled_planes
from optiml_magic.kernels.primitives.untiled import untiled
from optiml_magic.kernels.primitives.weighted import nests
from optiml_magic.kernels.primitives.weighted_parts import (
    COUNTS,
    MANY,
    keys_in_parts,
    rows_in_parts,
)
from optiml_magic.kernels.primitives.weighted_tiles import by_tiles
from optiml_magic.kernels.tree import Loop
from optiml_magic.model.hypothesis import TIME, Hypothesis
from optiml_magic.model.space import Point
from optiml_magic.proposers.rewrites.kernel_rule import KernelRule, Site
from optiml_magic.proposers.rewrites.row_to_lanes import BLOCKS
from optiml_magic.proposers.rewrites.row_to_lanes import COUNTS as COUNTS_OF_LANES

#: Warps of a multiprocessor, each of which waits for a key at a time: ours. On an H200 four kernels
#: of decoding took 0.87 to 1.1 times as long with four keys unrolled, and more with eight.
_ENOUGH = 64
_LANES = 32
_MOST = 4  # points
_ARITHMETIC = ("the order of additions", "the rounding of products")
_WIDTH = 128  # rows of a block, before these are tiles
_NESTS = 2  # of loops, where there may be passes: scores, and what is weighed by them
_LONGEST = 256  # elements of a row that is held whole: ours
#: Warps of a multiprocessor, from which more of them gain little, and how the rate grows below:
#: measured on an H200 with 8,192 and 32,768 rows of 64 elements (benchmarks/gpu/attention.py).
_FULL, _GROWS = 32, 0.7
_HALF = 0.5  # of these warps, from which tiles without parts come first: of 97 % they took 0.93
#: ``BM``, ``BN``, ``TM`` and ``LANES``, and what each reaches of the best where there are many
#: rows: measured there.
_SHAPES = (
    ((64, 32, 4, 16), 1.0),
    ((64, 32, 2, 8), 0.95),
    ((32, 64, 2, 16), 0.85),
    ((32, 64, 4, 32), 0.84),
    ((32, 32, 2, 16), 0.83),
    ((32, 32, 4, 32), 0.82),
    ((64, 32, 4, 8), 0.8),
    ((32, 64, 2, 32), 0.66),
    ((16, 64, 2, 32), 0.62),
    ((16, 32, 2, 16), 0.58),
)


class WeightedRows(KernelRule):
    """Attention by a thread or a block for each query; sums weighted by kernels of distances."""

    name = "weighted_rows"
    before = (*PLAIN, linear, in_full, direct, opened, unravelled, unravelled_planes)
    teaches = (
        "Each thread went through all keys by itself, and read a row of each for one number and "
        "another for one step of its array. A block takes tiles of rows and keys: what these are "
        "combined to is a product of tiles in shared memory and registers, a thread a row follows "
        "the scalars that go from key to key, and since the array takes a factor and a weighted "
        "row for each key, what a tile adds to it is another such product. Loops for the greatest "
        "score, for the sum and for the result are one pass before: what was summed up is scaled "
        "as a greater score comes. Where rows share no keys, as in decoding, warps take a part of "
        "a row's keys each, and their lanes hold the row together."
    )

    def sites(self, kernel: Kernel) -> Iterator[Site | Refused]:
        kernel = _at_once(kernel)
        if not any(_takes_more(kernel, loop) for loop in nests(kernel)):
            return
        Effects(kernel).straightforward()
        kernel = _counted(kernel)
        known = _numbers(kernel)
        kernel = where_legal(sized, kernel, known) if known else kernel
        kernel = where_legal(clipped, kernel)
        if kernel.block[1] != 1:
            kernel = where_legal(cut, kernel, {"y": 1})
        made = by_tiles(kernel)
        if isinstance(made, Refused):
            yield _apart(kernel) or made
            return
        yield Site(
            "rows", "tiles of rows and of the keys that they weigh",
            lambda: by_tiles(kernel), 0.975,
            Hypothesis(TIME, "lower", "tiles are loaded once for many rows", (2.0, 64.0)),
            tuple(islice(_points(kernel, made), _MOST)), _arithmetic(kernel),
        )  # fmt: skip
        yield from _in_parts(kernel)


def _apart(kernel: Kernel) -> Site | None:
    """Warps that have a part of the keys of a row each, where rows share no keys."""
    rows, chip = working(kernel), CHIPS.get(kernel.chip)
    wanted = MANY[-1]
    if rows is not None and chip is not None:
        wanted = _ENOUGH * chip.sms // max(rows, 1)
    if wanted < MANY[0]:
        return None
    parts = max(n for n in MANY if n <= wanted)
    lanes = Lanes("warp", _LANES, 256, COUNTS_OF_LANES, BLOCKS)
    made = rows_in_parts(kernel, parts, lanes)
    if isinstance(made, Refused):
        return None
    counts = [n for n in MANY if parts <= 4 * n <= 16 * parts]
    points = [{"PARTS": n} for n in sorted(counts, key=lambda n: abs(n - parts))]
    return Site(
        "apart", "warps share the keys of a row, lanes hold it together",
        partial(rows_in_parts, kernel, parts, lanes), 0.97 if rows is not None else 0.9,
        Hypothesis(TIME, "lower", "many keys are loaded at once, by lanes side by side",
                   (2.0, 128.0)),
        tuple(points[:_MOST]), _arithmetic(kernel),
    )  # fmt: skip


def _arithmetic(kernel: Kernel) -> tuple[str, ...]:
    """What changes in arithmetic, also by what makes passes one."""
    return tuple(dict.fromkeys((*_ARITHMETIC, *kernel.arithmetic)))


def _at_once(kernel: Kernel) -> Kernel:
    """The kernel whose passes over the same keys are one, of a thread, a block or each element."""
    if not EXPONENTIALS & kernel.reading.calls or not loops_in(kernel.function.body):
        return kernel
    if kernel.reading.barriers:
        return _of_a_block(kernel)
    kernel = untiled(where_legal(unasked, kernel, numbers=True))
    row = by_rows(kernel, _WIDTH) if nests(kernel) else Refused("")
    if isinstance(row, Kernel):
        row = shared_rounds(_short(with_grid(replace(row, facts=kernel.facts))), 0)
    if isinstance(row, Kernel):
        return where_legal(online, row)
    made = online(where_legal(row_held, _short(kernel))) if len(nests(kernel)) >= _NESTS else row
    return made if isinstance(made, Kernel) else kernel


def _of_a_block(kernel: Kernel) -> Kernel:
    """The same of a kernel whose blocks have a row each, and keep its scores in shared memory."""
    alone = raised(kernel, rows=True)
    if isinstance(alone, Refused):
        return kernel
    row = where_legal(copied_within, alone.shaped(WeightedRows.before))
    row = where_legal(copied, row)
    for at in range(len(loops_in(row.function.body))):
        row = where_legal(unpeeled, row, at)
    row = _short(where_legal(begun_below, row))
    for ready in (row, _for_all_elements(row)):
        made = online(ready)
        if isinstance(made, Kernel) and not rows_left(kernel, alone, made):
            return made
    return kernel


def _for_all_elements(kernel: Kernel) -> Kernel:
    """The kernel that makes the rounds once which each element of a row goes through by itself."""
    found = (shared_rounds(kernel, at) for at in range(len(loops_in(kernel.function.body))))
    return next((made for made in found if isinstance(made, Kernel)), kernel)


def _short(kernel: Kernel) -> Kernel:
    """The kernel whose loops of few rounds have constant ones."""
    short = {n for axis in kernel.axes().values()
             if axis.stop is not None and kernel.reading.uniform(axis.stop)
             and (most_rounds(kernel, axis) or _LONGEST + 1) <= _LONGEST
             for n in kernel.reading.symbols.made_of(axis.stop)}  # fmt: skip
    given = kernel.facts.scalars if kernel.facts is not None else {}
    known = {n: int(given[n]) for n in sorted(short - kernel.program.values.keys()) if n in given}
    return where_legal(sized, kernel, known) if known else kernel


def _in_parts(kernel: Kernel) -> Iterator[Site]:
    """Blocks that share the keys of rows of which there are too few to fill the chip."""
    rows, chip = working(kernel), CHIPS.get(kernel.chip)
    (most, _, own, lanes), _ = _SHAPES[0]
    likely = 0.9
    if rows is not None and chip is not None:
        share = _warps(rows, most, own, lanes) / (_FULL * chip.sms)
        if share >= 1:
            return
        likely = 0.98 if share < _HALF else 0.96
    made = keys_in_parts(kernel, COUNTS[0])
    if isinstance(made, Kernel):
        yield Site(
            "parts", "blocks share the keys of rows, by tiles of rows and keys",
            partial(keys_in_parts, kernel, COUNTS[0]), likely,
            Hypothesis(TIME, "lower", "many tiles are loaded at once, each for many rows",
                       (2.0, 128.0)),
            tuple(islice(_points(kernel, made, COUNTS), _MOST)), _arithmetic(kernel),
        )  # fmt: skip


def _counted(kernel: Kernel) -> Kernel:
    """The kernel whose loops within others count up from 0, ``while (n--)`` too."""
    inner = {o for loop in nests(kernel) for o in loops_in(loop.body)}
    for at, loop in enumerate(loops_in(kernel.function.body)):
        if loop in inner:
            kernel = where_legal(as_counted, kernel, at, is_simple)
    return kernel


def _takes_more(kernel: Kernel, loop: Loop) -> bool:
    """Whether a loop combines rows in an inner one, and changes an array of its thread's."""
    inner = [axis for o in loops_in(loop.body) if (axis := kernel.axes().get(o)) is not None]
    names = {axis.name for axis in inner}
    sums = any(r.axes[:1] and r.axes[0] in names for r in kernel.reading.reductions)
    return sums and bool(Effects(kernel).kept(loop.body))


def _numbers(kernel: Kernel) -> dict[str, int]:
    """Sizes that say how many rounds inner loops make, with their values."""
    given = kernel.facts.scalars if kernel.facts is not None else {}
    found = set[str]()
    for loop in nests(kernel):
        for inner in loops_in(loop.body):
            axis = kernel.axes().get(inner)
            if axis is not None and axis.stop is not None and axis.trips is None:
                found |= kernel.reading.symbols.made_of(axis.stop)
    found -= kernel.program.values.keys()
    few = all(0 < int(given[n]) <= _LONGEST for n in found if n in given)
    return (
        {name: int(given[name]) for name in sorted(found)} if few and found <= given.keys() else {}
    )


def _warps(rows: int, most: int, own: int, lanes: int) -> int:
    """The warps of a launch whose blocks have ``most`` rows."""
    return -(-rows // most) * most // own * lanes // 32


def _points(kernel: Kernel, made: Kernel, counts: tuple[int, ...] = ()) -> Iterator[Point]:
    """The shapes that a block has room for, those that keep most of the chip busy first.

    Where there are ``counts`` of parts to choose from, each shape has the best of them.
    """
    rows, chip = working(kernel), CHIPS.get(kernel.chip)
    keys = max((n for loop in nests(kernel) if (axis := kernel.axes().get(loop))
                and (n := most_rounds(kernel, axis))), default=None)  # fmt: skip

    def rate(shape: tuple[int, int, int, int], share: float, parts: int) -> float:
        if rows is None or chip is None:
            return share
        warps = parts * _warps(rows, shape[0], *shape[2:])
        tiles = max(1.0, (keys or rows) / shape[1] / parts)  # beginning and ending is one more
        busy = min(1.0, warps / (_FULL * chip.sms))
        return float(share * busy**_GROWS * tiles / (tiles + 1))

    found = [max((rate(shape, share, n), shape, n) for n in counts or (1,))
             for shape, share in _SHAPES]  # fmt: skip
    for _, shape, parts in sorted(found, key=lambda one: -one[0]):
        point = dict(zip(("BM", "BN", "TM", "LANES"), shape, strict=True))
        if counts:
            point["PARTS"] = parts
        with suppress(SourceError):
            made.program.with_values(point)
            yield point
