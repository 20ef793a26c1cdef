"""How the threads of a grid may take their elements, and which numbers for that are worth a try."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

from optiml_magic.chips import CHIPS
from optiml_magic.kernels.primitives.base import Kernel, NotLegal, Refused, where_legal
from optiml_magic.kernels.primitives.counted import all_counted
from optiml_magic.kernels.primitives.dealt import NAME, dealt
from optiml_magic.kernels.primitives.effects import loops_in
from optiml_magic.kernels.primitives.endings import enclosed
from optiml_magic.kernels.primitives.persistent import Stride, elements, persistent, rank_of
from optiml_magic.kernels.primitives.sizes import FIRST, rounds, threads
from optiml_magic.kernels.primitives.vectors import vectorise
from optiml_magic.model.space import Point

WIDTHS = (128, 256, 512, 1024)
_SMS = 132  # where the chip is not known
_RESIDENT = 2048  # threads of a multiprocessor
_TIMES = (1, 2, 4, 8, 16)  # blocks for each multiprocessor
_WIDEST = 16  # bytes of one access
_FIELDS = 8  # elements of an item, as many as are taken together: ours
_PARTS = (1, 2, 4, 8, 16, 32, 64)  # blocks that share the rounds of a loop
_MORE = (128, 256, 512, 1024)  # of kernels of so few that these fill no chip
_EACH = 4  # rounds that each of them has, at least: ours
_FEW = 16  # updates of elements for each that is left at the end: ours


@dataclass(frozen=True)
class Way:
    """``step`` makes it so, ``points`` are values of the names that come with it."""

    key: str
    words: str
    step: Callable[[Kernel], Kernel | Refused]
    points: tuple[Point, ...]


def ways(kernel: Kernel, rest: int, block: int = 256) -> tuple[list[Way], Refused | None]:
    """How a thread may take several elements, the best first, or why it may not.

    ``rest`` is how many elements a block updates at its end, ``block`` the threads that it should
    have.
    """
    try:
        elements(kernel)
    except NotLegal as reason:
        return [], Refused(reason.reason, reason.line)
    chip = CHIPS.get(kernel.chip)
    rows = kernel.block[1:] != (1, 1)
    others = math.prod(kernel.facts.grid[rank_of(kernel) :]) if kernel.facts is not None else 1
    sms = max(1, (chip.sms if chip is not None else _SMS) // max(others, 1))
    most = tuple(sms * times for times in _TIMES)
    own = kernel.block[0] or 1
    widths = WIDTHS if own in WIDTHS else tuple(sorted({*WIDTHS, own - own % 32} - {0}))
    count = threads(kernel)
    blocks = {
        width: _blocks(most, sms * _RESIDENT // width, None if count is None else count // rest)
        for width in widths
    }
    other = 512 if block != 512 else 1024
    width_name, number, items = (kernel.fresh(n) for n in ("BLOCK", "BLOCKS", "ITEMS"))
    points = tuple({width_name: w, number: blocks[w]} for w in (block, other))
    found = []
    each, plain = (1, True) if rows else _each(kernel)
    stride = Stride(blocks[block], block, most, widths, each, (each, 2 * each, 4 * each))
    if each > 1 and (plain or not isinstance(_in_vectors(stride, kernel), Refused)):
        words = f", {each} of its elements at once"
        several: tuple[Point, ...] = tuple({**p, items: each} for p in points)
        found.append(Way("vectors", words, partial(_in_vectors, stride), several))
    stride = Stride(blocks[block], block, most, widths)
    found.append(Way("apart", "", partial(_apart, stride), points))
    return found, None


def dealing(kernel: Kernel) -> Way | None:
    """How blocks may share a long loop of threads that are too few to fill the chip."""
    chip, count, axes = CHIPS.get(kernel.chip), threads(kernel), kernel.axes()
    apart = (chip.sms if chip is not None else _SMS) * _RESIDENT // max(count or 1, 1)
    for number, loop in enumerate(loops_in(kernel.function.body)):
        axis = axes.get(loop)
        length = rounds(kernel, axis, FIRST) if axis is not None else None
        most = min(apart, _PARTS[-1] if length is None else length // _EACH)
        if axis is None or most < 2 or isinstance(_dealt(number, 1, _PARTS, kernel), Refused):
            continue
        fit = max(n for n in (*_PARTS, *_MORE) if n <= most)
        counts = (*_PARTS, *(n for n in _MORE if n <= 2 * fit))
        near = dict.fromkeys((fit, min(2 * fit, counts[-1]), fit // 2))
        counter = axis.variable.name if axis.variable is not None else "its rounds"
        words = f", blocks share the loop over {counter}"
        points = tuple({kernel.fresh(NAME): n} for n in near)
        return Way("dealt", words, partial(_dealt, number, fit, counts), points)
    return None


def _dealt(number: int, parts: int, counts: Sequence[int], kernel: Kernel) -> Kernel | Refused:
    """So many blocks share the loop with this number, and no thread leaves before its end."""
    plain = all_counted(kernel, (number,))
    if isinstance(plain, Refused):
        return plain
    return dealt(where_legal(enclosed, plain), number, parts, counts)


def _blocks(most: tuple[int, ...], resident: int, useful: int | None) -> int:
    """As many as are resident at once, if each has enough to do."""
    useful = resident if useful is None else max(useful // _FEW, 1)
    return max((m for m in most if m <= min(resident, useful)), default=most[0])


def _each(kernel: Kernel) -> tuple[int, bool]:
    """How many items the widest access takes, 1 where lanes read no neighbours.

    Also whether these are neighbouring elements, and not the fields of neighbouring items.
    """
    sizes = dict[int, int]()
    for access in kernel.reading.accesses:
        if access.mode == "load" and access.space == "global" and access.index is not None:
            by = access.index.coefficient("threadIdx.x")
            number = by is not None and access.element.kind in ("int", "float", "bool")
            if by is not None and number and by.value and not access.loops:
                sizes[by.value] = max(sizes.get(by.value, 0), access.element.size or 0)
    plain = sizes.get(1, 0)
    widest = plain or max((size for by, size in sizes.items() if 1 < by <= _FIELDS), default=0)
    return (_WIDEST // widest if widest else 1), bool(plain)


def _apart(stride: Stride, kernel: Kernel) -> Kernel | Refused:
    return persistent(kernel, stride)


def _in_vectors(stride: Stride, kernel: Kernel) -> Kernel | Refused:
    """The rounds of a thread that lie together, by accesses of several elements."""
    made = persistent(kernel, stride)
    return made if isinstance(made, Refused) else vectorise(made, 1)
