"""Moving sums, means and extremes: neighbours whose windows have nearly all places in common."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from math import prod

from optiml_magic.kernels.primitives.accumulating import in_register
from optiml_magic.kernels.primitives.base import Kernel, NotLegal, Refused
from optiml_magic.kernels.primitives.branched import branched
from optiml_magic.kernels.primitives.counted import as_counted
from optiml_magic.kernels.primitives.cutting import cut
from optiml_magic.kernels.primitives.direct import direct, in_full
from optiml_magic.kernels.primitives.effects import is_simple, loops_in
from optiml_magic.kernels.primitives.plain import PLAIN
from optiml_magic.kernels.primitives.shaped import linear, planar
from optiml_magic.kernels.primitives.single import single
from optiml_magic.kernels.primitives.sizes import rounds, value
from optiml_magic.kernels.primitives.slid import ITEMS, down, extent_name, slid
from optiml_magic.kernels.primitives.slides import Window, may_slide, window
from optiml_magic.kernels.primitives.unclamped import unclamped
from optiml_magic.kernels.primitives.unravelled import unravelled
from optiml_magic.kernels.primitives.unstrided import unstrided
from optiml_magic.model.hypothesis import TIME, Hypothesis
from optiml_magic.model.space import Point
from optiml_magic.proposers.rewrites.kernel_rule import KernelRule, Site

_LEAST = 8  # rounds of a window below which its neighbours have little in common: ours
_LONGEST = 1 << 12  # rounds of a window that a block can keep, with its own items: ours
_MOVED = 4  # rounds that bringing and storing an item takes: ours
_BLOCK, _WARP = 256, 32


class SlideWindow(KernelRule):
    """A thread an output adds up, or looks through, all of the window around it."""

    name = "slide_window"
    before = (
        *PLAIN, unstrided, linear, planar, in_full, direct, branched, single, unravelled,
        partial(unclamped, most=_LONGEST), in_register,
    )  # fmt: skip
    teaches = (
        "Each thread went through its whole window, and its neighbour through all of the same "
        "places but one. A block that computes what windows are made of once, into shared memory "
        "that is as large as its outputs and one window, lets a thread combine what several "
        "neighbours have in common once for all of them; what only some have is a few running "
        "sums. Of windows in two directions the sums along one become what slides along the "
        "other. Nothing is taken away from a running sum, so no digits are lost."
    )

    def sites(self, kernel: Kernel) -> Iterator[Site | Refused]:
        kernel, refused = kernel.settled(), list[Refused]()
        for number, loop in enumerate(loops_in(kernel.function.body)):
            if not may_slide(kernel, loop):
                continue
            try:
                made = _ready(kernel, number)
                found = window(made, number)
            except NotLegal as reason:
                refused.append(Refused(reason.reason, reason.line))
                continue
            length = value(made, found.rounds)
            if length is None or length >= _LEAST:
                yield _site(made, number, found, length or ITEMS[-1])
                return
            little = f"windows of {length} places have little in common"
            refused.append(Refused(little, loop.line))
        yield from refused


def _ready(kernel: Kernel, number: int) -> Kernel:
    """The kernel in blocks of one row or of any number, with this loop counted from 0."""
    made = as_counted(kernel, number, is_simple)
    if isinstance(made, Refused):
        raise NotLegal(made.reason, made.line)
    tall = {"z"} if down(made) is not None else {"y", "z"}
    flat = {a: 1 for a, n in zip("xyz", made.block, strict=True) if a in tall and n != 1}
    if not flat:
        return made
    one = cut(made, flat)
    if isinstance(one, Refused):
        raise NotLegal(one.reason, one.line)
    return one


def _site(kernel: Kernel, number: int, found: Window, length: int) -> Site:
    axes = kernel.axes()
    around = [axes[loop] for loop in loops_in(found.nest) if loop in axes]
    all_rounds = prod(rounds(kernel, axis) or 1 for axis in around)
    own = _BLOCK * 9 if down(kernel) is None else _WARP * 9
    work = all_rounds / length * (own + length) / own + length / 9 + _MOVED
    gain = max(1.0, max(all_rounds, length) / work)
    counter = found.axis.variable.name if found.axis.variable is not None else "its rounds"
    rounded = any(not one.exact for one in found.reductions)
    return Site(
        f"window {number}", f"combine what windows have in common once, in the loop over {counter}",
        partial(slid, kernel, number), round(0.95 * (1 - 1 / gain), 2),
        Hypothesis(TIME, "lower", "neighbours share what their windows combine", (1.0, 2 * gain)),
        _points(kernel, length), ("the order of additions",) if rounded else (),
    )  # fmt: skip


def _points(kernel: Kernel, length: int) -> tuple[Point, ...]:
    """Items by how wide the window is: each saves the places that it shares."""
    extent, count = extent_name(kernel), kernel.fresh("ITEMS")
    wanted = 15 if length >= 64 else 9
    sizes = (8, 4) if down(kernel) is not None else (_BLOCK, _BLOCK // 2)
    more = 7 if wanted == 9 else 9
    points = ((wanted, sizes[0]), (more, sizes[0]), (wanted, sizes[1]))
    return tuple({count: items, extent: size} for items, size in points)
