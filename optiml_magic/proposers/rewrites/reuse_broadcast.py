"""All pairs: loops in which each thread loads what all others load, for one item of its own."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from functools import partial

from optiml_magic.chips import CHIPS
from optiml_magic.kernels.primitives.accumulating import in_register
from optiml_magic.kernels.primitives.alike import Rounds
from optiml_magic.kernels.primitives.base import Kernel, Refused, where_legal
from optiml_magic.kernels.primitives.branched import branched
from optiml_magic.kernels.primitives.bunched import Bunch, bunched, item_names
from optiml_magic.kernels.primitives.chunks import chunk, front
from optiml_magic.kernels.primitives.counted import as_counted
from optiml_magic.kernels.primitives.direct import direct, in_full
from optiml_magic.kernels.primitives.effects import is_simple, loops_in
from optiml_magic.kernels.primitives.fast import Kind, fast, kinds_in, repeated
from optiml_magic.kernels.primitives.foreseen import foreseen
from optiml_magic.kernels.primitives.precision import in_float
from optiml_magic.kernels.primitives.shaped import linear
from optiml_magic.kernels.primitives.sizes import rounds, threads
from optiml_magic.kernels.primitives.staged import stage
from optiml_magic.kernels.primitives.unstrided import unstrided
from optiml_magic.model.hypothesis import Hypothesis
from optiml_magic.model.space import Point
from optiml_magic.proposers.rewrites.fast_functions import SAID
from optiml_magic.proposers.rewrites.kernel_rule import KernelRule, Site

_REQUESTS = "l1tex__t_requests_pipe_lsu_mem_global_op_ld.sum"
_BUSY = 1024  # threads of a multiprocessor, of several items each, that hide what rounds take: ours
_FEW = 128  # rounds below which none is split
_SHORT = 16  # rounds that are over before items gain by what they share: ours
_EACH = 32  # rounds of a part, at least: ours
_PARTS = (1, 2, 4, 8, 16, 32, 64)
_HALF = 0.5  # of the loads of a round, which must be the same for all items: ours
_MOST = 0.7  # of them, from which little else is left to wait for: ours
_ITEMS = (4, 8, 2)
_TILE = 128  # rounds that a block brings at a time


class ReuseBroadcast(KernelRule):
    """Bodies, charges, centres, samples: a round loads one of them, and each item meets it."""

    name = "reuse_broadcast"
    before = (unstrided, linear, in_full, direct, branched, in_register, foreseen)
    teaches = (
        "All threads of a warp loaded the same element in each round, and used it for one item. A "
        "load takes as long as several additions, so the rounds waited for what all of them read. "
        "A thread that takes several items a block apart uses each load several times, its items "
        "are independent, so that the latency of one is hidden behind the others, and its "
        "accumulators stay in registers. Where too few threads are left, blocks share the rounds."
    )

    def sites(self, kernel: Kernel) -> Iterator[Site | Refused]:
        if _share(kernel, {axis.name for axis in kernel.reading.axes}) <= _HALF:
            return
        counted, number, length = _counted(kernel)
        found = Rounds(counted)
        share = _share(counted, {counted.axes()[loop].name for loop in found.loops()})
        if share <= _HALF:
            return
        if length < _SHORT:
            return
        prior, promise = 0.95 if share >= _MOST else 0.6, _hypothesis(share)
        busy, chip = threads(kernel), CHIPS.get(kernel.chip)
        full = _BUSY * chip.sms if chip is not None else 0
        few = busy is not None and full and busy < full * _ITEMS[0]
        short = tuple(kind for kind in kinds_in(counted) if repeated(counted, kind))
        said = tuple(SAID[kind] for kind in short)
        shares = number is not None
        for split in (True, False) if shares and (few or busy is None) else (False,):
            title = "take several items at once, which meet what a round loads together"
            made, rounded, lift = partial(_several, counted), tuple[str, ...](), prior
            apart = 2 * full / max(busy or full, 1)
            points = _points(counted, apart if split else 0.0, length)
            if split:
                title = "take several items at once, and share the rounds among blocks"
                made = partial(_split, counted, number or 0)
                sums = any(not r.exact for r in counted.reading.reductions)
                rounded = ("the order of additions",) if sums else ()
            if split != bool(few):
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


def _share(kernel: Kernel, loops: Collection[str]) -> float:
    """The share of what some loops load anew in a round that does not depend on the item."""
    symbols = kernel.reading.symbols
    alike = others = 0
    for access in kernel.reading.accesses:
        if access.space != "global" or access.mode != "load" or not {*loops} & {*access.loops}:
            continue
        form = access.offset
        if form is None or {"threadIdx.x", "blockIdx.x"} & symbols.depends(form):
            others += form is None or bool({*access.loops} & symbols.inside(form))
        else:
            alike += bool({*access.loops} & symbols.inside(form))
    return alike / (alike + others) if alike else 0.0


def _split(kernel: Kernel, number: int) -> Kernel | Refused:
    made = chunk(kernel, number, _PARTS[0], _PARTS)
    return _several(front(made)) if isinstance(made, Kernel) else made


def _shortened(step: Callable[[], Kernel | Refused], kinds: Collection[Kind]) -> Kernel | Refused:
    """What a step makes, with the short forms of what its rounds compute."""
    made = step()
    if isinstance(made, Refused):
        return made
    return where_legal(fast, where_legal(in_float, made), kinds)


def _several(kernel: Kernel) -> Kernel | Refused:
    """Several items a thread, and what they load alike in shared memory, where that is legal."""
    made = bunched(kernel, Bunch())
    if isinstance(made, Refused):
        return made
    for number in range(len(loops_in(made.function.body))):
        tiles = stage(made, number, _TILE)
        if isinstance(tiles, Kernel):
            return tiles
    return made


def _points(kernel: Kernel, apart: float, length: int) -> tuple[Point, ...]:
    """Four items a thread, then eight and two, in as many parts as keep the chip busy."""
    items, block = item_names(kernel)
    found = []
    for count in _ITEMS:
        own = {items: count, **({block: 128} if block else {})}
        if apart:
            wanted = min(int(apart * count), length // _EACH)
            own[kernel.fresh("PARTS")] = max(n for n in _PARTS if n <= max(1, wanted))
        found.append(own)
    return tuple(found)
