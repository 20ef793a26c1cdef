"""Long windows of neighbouring items: their loops in strips of rounds, whose loads registers hold.

Of a filter of many taps, a correlation, or a moving sum as long as a size says.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass

from optiml_magic.chips import CHIPS
from optiml_magic.kernels.primitives.base import Kernel, Refused, where_legal
from optiml_magic.kernels.primitives.chunks import chunk, front
from optiml_magic.kernels.primitives.counted import as_counted
from optiml_magic.kernels.primitives.effects import Effects, is_simple, loops_in
from optiml_magic.kernels.primitives.sizes import rounds, threads
from optiml_magic.kernels.primitives.slides import may_slide
from optiml_magic.kernels.primitives.strips import strip_mined
from optiml_magic.kernels.tree import Loop

_LONG = 64  # rounds from which on a loop is in strips: ours
_PARTS, _EACH = (1, 2, 4, 8, 16, 32, 64), 128  # of them that share rounds, with so many each: ours
_STRIPS, ITEMS, _VECTOR = (32, 16, 8), (8, 4, 16), 4  # rounds, items, a vector's floats
_OF_STRIP = 56  # registers of the 64 of a thread: ours
ENOUGH = 512  # threads of a multiprocessor that hide what loads take


@dataclass(frozen=True)
class InStrips:
    """A kernel whose long loops are in strips, the first of them with this ``number``.

    ``bounds`` are the names of sizes that say how long they are; where its outputs are few, blocks
    have ``shared_out`` its rounds as well.
    """

    kernel: Kernel
    number: int
    title: str
    bounds: frozenset[str]
    shared_out: bool = False


def in_strips(kernel: Kernel) -> Iterator[InStrips | Refused]:
    """The kernel in strips, if it has long windows; and why loops of them are not."""
    axes, symbols = kernel.axes(), kernel.reading.symbols
    found = _windows(kernel)
    if not found:
        return
    number, length = min(found.items())
    count = _strip(kernel, found)
    own = [axis for loop, axis in axes.items() if loop in {*_loops(kernel, found)}]
    ends = [form for axis in own for form in (axis.start, axis.stop) if form is not None]
    bounds = frozenset(name for form in ends for name in symbols.made_of(form))
    title, made, shares = f"{count} rounds at a time", kernel, False
    if len(found) == 1:
        made = where_legal(as_counted, kernel, number, is_simple)
        parts = _parts(made, length)
        shared_out = chunk(made, number, parts, _PARTS, count) if parts > 1 else None
        if isinstance(shared_out, Kernel):
            made, title = front(shared_out), f"{title}, and share the rounds among blocks"
            shares = True
    steps = [_mined(made, at, count) for at in found]
    refused = [step for step in steps if isinstance(step, Refused)]
    yield from refused
    if len(refused) == len(steps):
        return
    for at in reversed(found):  # what stands before a loop keeps its number
        made = where_legal(_mined, made, at, count)
    yield InStrips(made, number, title, bounds, shares)


def _windows(kernel: Kernel) -> dict[int, int | None]:
    """The numbers of loops in a row that go along long windows, and their rounds where known."""
    axes, found, inside = kernel.axes(), dict[int, int | None](), set[Loop]()
    for number, loop in enumerate(loops_in(kernel.function.body)):
        length = rounds(kernel, axes[loop]) if loop in axes else 0
        if (length is None or length >= _LONG) and loop not in inside and may_slide(kernel, loop):
            found[number] = length
            inside |= {*loops_in(loop)}
    return found


def _loops(kernel: Kernel, numbers: Collection[int]) -> Iterator[Loop]:
    return (loop for at, loop in enumerate(loops_in(kernel.function.body)) if at in numbers)


def _mined(kernel: Kernel, at: int, count: int) -> Kernel | Refused:
    ready = as_counted(kernel, at, is_simple)
    return ready if isinstance(ready, Refused) else strip_mined(ready, at, count)


def _parts(kernel: Kernel, length: int | None) -> int:
    """Blocks that share the rounds, where threads with several items each do not fill the chip."""
    count, chip = threads(kernel), CHIPS.get(kernel.chip)
    if count is None or chip is None or length is None:
        return 1
    wanted = ENOUGH * chip.sms * ITEMS[0] / count
    return max(n for n in _PARTS if n == 1 or (n < 2 * wanted and n * _EACH <= length))


def _strip(kernel: Kernel, found: Mapping[int, int | None]) -> int:
    """The rounds of a strip with the fewest loads, where what is left over loads one by one.

    Windows, and what each item sums up, are to be in the registers of four blocks at once.
    """
    items, length = ITEMS[0], min(found.items())[1]
    words = [_words_of_strip(kernel, loop, items) for loop in _loops(kernel, found)]
    fit = [n for n in _STRIPS if all(fixed + n * each <= _OF_STRIP for fixed, each in words)]
    chosen = fit or _STRIPS[-1:]
    if length is None:
        return chosen[0]
    return min(
        chosen, key=lambda n: length // n * (2 * n + items) / _VECTOR + length % n * (1 + items)
    )


def _words_of_strip(kernel: Kernel, loop: Loop, items: int) -> tuple[int, int]:
    """Registers of so many items in a strip, those of any length and those of each round."""
    axis, symbols, moving = kernel.axes()[loop], kernel.reading.symbols, dict[str, bool]()
    for access in kernel.reading.accesses:
        if access.space == "global" and axis.name in access.loops and access.offset is not None:
            inside = symbols.inside(access.offset)
            if access.mode == "load" and axis.name in inside:
                moving[access.array] = moving.get(access.array, False) or "threadIdx.x" in inside
    sums = len(Effects(kernel).changed(loop.body))
    return items * (sum(moving.values()) + sums), len(moving)
