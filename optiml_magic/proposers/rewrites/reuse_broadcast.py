"""All pairs: loops in which each thread loads what all others load, for one item of its own."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterator
from functools import partial

from optiml_magic.chips import CHIPS, Chip
from optiml_magic.kernels.primitives.accumulating import in_register
from optiml_magic.kernels.primitives.alike import Rounds
from optiml_magic.kernels.primitives.base import Kernel, NotLegal, Refused, where_legal
from optiml_magic.kernels.primitives.branched import branched
from optiml_magic.kernels.primitives.bunched import Bunch, bunched, item_names
from optiml_magic.kernels.primitives.chunks import chunk, front
from optiml_magic.kernels.primitives.counted import as_counted
from optiml_magic.kernels.primitives.direct import direct, in_full
from optiml_magic.kernels.primitives.effects import is_simple, loops_in
from optiml_magic.kernels.primitives.fast import fast, kinds_in, repeated
from optiml_magic.kernels.primitives.fast_kinds import Kind
from optiml_magic.kernels.primitives.foreseen import foreseen
from optiml_magic.kernels.primitives.held import holding
from optiml_magic.kernels.primitives.loaded_before import own_loaded_before
from optiml_magic.kernels.primitives.once_a_row import once_a_row
from optiml_magic.kernels.primitives.plain import PLAIN
from optiml_magic.kernels.primitives.precision import in_float
from optiml_magic.kernels.primitives.rectangular import all_rectangular
from optiml_magic.kernels.primitives.shaped import linear
from optiml_magic.kernels.primitives.sizes import rounds, threads, working
from optiml_magic.kernels.primitives.staged import stage
from optiml_magic.kernels.primitives.tallied import tallied
from optiml_magic.kernels.primitives.unbroken import unbroken
from optiml_magic.kernels.reading import Axis
from optiml_magic.model.hypothesis import Hypothesis
from optiml_magic.model.space import Point
from optiml_magic.proposers.rewrites.fast_functions import SAID, inexact
from optiml_magic.proposers.rewrites.kernel_rule import KernelRule, Site

_REQUESTS = "l1tex__t_requests_pipe_lsu_mem_global_op_ld.sum"
_BUSY = 1024  # threads of a multiprocessor, of several items each, that hide what rounds take: ours
_FEW = 128  # rounds below which none is split
_SHORT = 16  # rounds that are over before items gain by what they share: ours
_EACH = 32  # rounds of a part, at least: ours
_PARTS = (1, 2, 4, 8, 16, 32, 64)
_HALF = 0.5  # of the loads of a round, which must be the same for all items: ours
_MORE = 0.1  # of the arithmetic, for which items lie along another axis than x: ours
_MOST = 0.7  # of them, from which little else is left to wait for: ours
_ITEMS, _COUNTS = (4, 8, 2), (1, 2, 4, 8)
_ROWS = 128  # words that the rows of a thread's items may take: half of its registers
_LEAST = 192  # threads of a multiprocessor, of several items each, that still hide latencies: ours
_UNKNOWN = 8  # rounds, where nothing is known of how many there are
_TILE, _WARP = 128, 32  # rounds that a block brings at a time, and threads of a warp


class ReuseBroadcast(KernelRule):
    """Bodies, charges, centres, samples: a round loads one of them, and each item meets it."""

    name = "reuse_broadcast"
    before = (
        *PLAIN, unbroken, linear, in_full, direct, branched, in_register, foreseen,
        all_rectangular, tallied, own_loaded_before,
    )  # fmt: skip
    teaches = (
        "All threads of a warp loaded the same element in each round, and used it for one item. A "
        "load takes as long as several additions, so the rounds waited for what all of them read. "
        "A thread that takes several items a block apart uses each load several times, its items "
        "are independent, so that the latency of one is hidden behind the others, and its "
        "accumulators stay in registers. Where too few threads are left, blocks share the rounds."
    )

    def sites(self, kernel: Kernel) -> Iterator[Site | Refused]:
        if (working(kernel) or _WARP) < _WARP:  # whose rounds lanes share instead
            return
        held = holding(kernel)
        kernel = held.kernel
        if _share(kernel, {axis.name for axis in kernel.reading.axes}) <= _HALF:
            return
        counted, number, length = _counted(kernel)
        found = _items_along(counted)
        axis = found.items.axis
        loops = {counted.axes()[loop].name for loop in found.loops()}
        share = _share(counted, loops, axis)
        if share <= _HALF:
            return
        sure = share >= _MOST and _share(counted, loops, axis, still=True) >= _HALF
        if max(length, _deepest(counted)) < _SHORT:
            return
        if isinstance(once_a_row(kernel), Kernel):
            yield Refused("the items of a row do the same: a thread a row does it once")
            return
        prior, promise = 0.95 if sure else 0.6, _hypothesis(share)
        busy, chip = threads(kernel), CHIPS.get(kernel.chip)
        full = _BUSY * chip.sms if chip is not None else 0
        few = busy is not None and full and busy < full * _ITEMS[0]
        short = tuple(
            kind for kind in kinds_in(counted)
            if repeated(counted, kind) and inexact(counted, kind) is None
        )  # fmt: skip
        said = tuple(SAID[kind] for kind in short)
        shares = number is not None and isinstance(chunk(counted, number, 1, _PARTS), Kernel)
        own = "".join(f", where {name} is {size}" for name, size in held.sizes.items())
        along = f" along {axis}" if axis != "x" else ""
        own = f", each with its row in registers{own}" if held.words else ""
        for split in (True, False) if shares and (few or busy is None) else (False,):
            title = f"take several items{along} at once, which meet what a round loads together"
            made, rounded = partial(_several, held.words, axis, counted), tuple[str, ...]()
            lift = prior
            apart = 2 * full / max(busy or full, 1)
            items = _items(held.words, busy, chip)
            points = _points(counted, items, apart if split else 0.0, length)
            if split:
                title = f"take several items{along} at once, and share the rounds among blocks"
                made = partial(_split, held.words, axis, counted, number or 0)
                sums = any(not r.exact for r in counted.reading.reductions)
                rounded = ("the order of additions",) if sums else ()
            title += own
            if shares and split != bool(few):
                lift = 0.4
            key = "split" if split else "items"
            if short:
                also = f"{title}, with {', '.join(said)}"
                yield Site(f"{key} short", also, partial(_shortened, made, short), lift, promise,
                           points, (*rounded, *said))  # fmt: skip
            yield Site(key, title, made, 0.6 * lift if short else lift, promise, points, rounded)


def _hypothesis(share: float) -> Hypothesis:
    because = "a load that all items share is made once for several of them"
    return Hypothesis(_REQUESTS, "lower", because, (1.2, round(8 / (8 - 7 * share), 1)))


def _counted(kernel: Kernel) -> tuple[Kernel, int | None, int]:
    """The kernel with its outermost loops counted, the one that may be split, and its rounds.

    The loop by its number, if it alone is long: what stands before it each part does anew.
    """
    long, most = list[int](), 0
    inside = set[object]()
    for at in range(len(loops_in(kernel.function.body))):
        loop = loops_in(kernel.function.body)[at]
        if loop in inside:
            continue
        made = as_counted(kernel, at, is_simple)
        length = None
        if isinstance(made, Kernel):
            kernel, loop = made, loops_in(made.function.body)[at]
            length = rounds(kernel, kernel.axes()[loop])
        if length is None or length >= _FEW:
            long.append(at)
        most = max(most, length if length is not None else _FEW)
        inside = {i for outer in loops_in(kernel.function.body)[: at + 1]
                  for i in loops_in(outer.body)}  # fmt: skip
    return kernel, long[0] if len(long) == 1 else None, most


def _items_along(kernel: Kernel) -> Rounds:
    """The items along the axis that have most in common, along x where no other has more."""
    found, reasons = list[Rounds](), list[NotLegal]()
    for axis in "xyz"[: len(kernel.launch.block)]:
        try:
            found.append(Rounds(kernel, axis))
        except NotLegal as reason:
            reasons.append(reason)
    if not found:
        raise reasons[0]
    best = max(found, key=lambda rounds: rounds.common())
    return best if best.common() >= found[0].common() + _MORE else found[0]


def _share(
    kernel: Kernel, loops: Collection[str], axis: str = "x", *, still: bool = False
) -> float:
    """The share of what some loops load anew in a round that does not depend on the item.

    What an item loads from one place in all rounds a compiler may have loaded before them, but
    none that takes several items, and waits in between, is certain to: with ``still`` it counts.
    So does a local array whose index is not a constant: it lies in memory, once for each item.
    """
    symbols, lengths = kernel.reading.symbols, _lengths(kernel)
    own = {f"threadIdx.{axis}", f"blockIdx.{axis}"}
    written = {axis.name for axis in kernel.reading.axes if _numbered(axis)}
    alike = others = 0
    for access in kernel.reading.accesses:
        if access.space not in ("global", "local") or access.mode != "load":
            continue
        if not {*loops} & {*access.loops}:
            continue
        form, often = access.offset, math.prod(lengths[name] for name in access.loops)
        if access.space == "local":
            others += often * (form is None or bool(symbols.inside(form) - written))
        elif form is None or own & symbols.depends(form):
            moves = form is None or bool({*access.loops} & symbols.inside(form))
            others += often * (still or moves)
        else:
            alike += often * bool({*access.loops} & symbols.inside(form))
    return alike / (alike + others) if alike else 0.0


def _numbered(axis: Axis) -> bool:
    """Whether the text alone says which rounds a loop makes, so that they can be written out."""
    ends = (axis.start, axis.step, axis.stop)
    return axis.exact and all(end is not None and end.value is not None for end in ends)


def _lengths(kernel: Kernel) -> dict[str, int]:
    return {axis.name: rounds(kernel, axis) or _UNKNOWN for axis in kernel.reading.axes}


def _deepest(kernel: Kernel) -> int:
    """In how many rounds, of loops in each other, a thread makes the load that it makes most."""
    lengths = _lengths(kernel)
    loads = (a.loops for a in kernel.reading.accesses if a.space == "global" and a.mode == "load")
    return max((math.prod(lengths[name] for name in loops) for loops in loads), default=0)


def _split(words: int, axis: str, kernel: Kernel, number: int) -> Kernel | Refused:
    made = chunk(kernel, number, _PARTS[0], _PARTS)
    return _several(words, axis, front(made)) if isinstance(made, Kernel) else made


def _shortened(step: Callable[[], Kernel | Refused], kinds: Collection[Kind]) -> Kernel | Refused:
    """What a step makes, with the short forms of what its rounds compute."""
    made = step()
    if isinstance(made, Refused):
        return made
    return fast(where_legal(in_float, made), kinds)


def _several(words: int, axis: str, kernel: Kernel) -> Kernel | Refused:
    """Several items a thread, and what they load alike in shared memory, where that is legal."""
    counts = _fitting(words)
    made = bunched(kernel, Bunch(min(4, counts[-1]), counts=counts, axis=axis))
    if isinstance(made, Refused):
        return made
    for number in range(len(loops_in(made.function.body))):
        tiles = stage(made, number, _TILE)
        if isinstance(tiles, Kernel):
            return tiles
    return made


def _fitting(words: int) -> tuple[int, ...]:
    """How many items a thread may take that each hold so many words in registers."""
    return tuple(n for n in _COUNTS if n * words <= _ROWS) or _COUNTS[:1]


def _items(words: int, busy: int | None, chip: Chip | None) -> tuple[int, ...]:
    """The best numbers of items first: rows in registers leave room for fewer."""
    fit = _fitting(words)
    if not words:
        return _ITEMS
    least = _LEAST * chip.sms if chip is not None else 0
    good = [n for n in fit if 2 * n * words <= _ROWS and (busy is None or busy >= n * least)]
    best = max(good, default=fit[0])
    return tuple(sorted(fit, key=lambda n: (abs(n.bit_length() - best.bit_length()), n)))[:3]


def _points(
    kernel: Kernel, counts: tuple[int, ...], apart: float, length: int
) -> tuple[Point, ...]:
    """So many items a thread, in as many parts as keep the chip busy."""
    items, block = item_names(kernel)
    found = []
    for count in counts:
        own = {items: count, **({block: 128} if block else {})}
        if apart:
            wanted = min(int(apart * count), length // _EACH)
            own[kernel.fresh("PARTS")] = max(n for n in _PARTS if n <= max(1, wanted))
        found.append(own)
    return tuple(found)
