"""Moving sums, means and extremes: neighbours whose windows have nearly all places in common."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from math import prod

from optiml_magic.kernels.expressions import Lambda
from optiml_magic.kernels.primitives.accumulating import in_register
from optiml_magic.kernels.primitives.base import Kernel, NotLegal, Refused, where_legal
from optiml_magic.kernels.primitives.branched import branched
from optiml_magic.kernels.primitives.counted import as_counted
from optiml_magic.kernels.primitives.cutting import cut
from optiml_magic.kernels.primitives.direct import direct, in_full
from optiml_magic.kernels.primitives.effects import is_simple, loops_in
from optiml_magic.kernels.primitives.hopped import hopped
from optiml_magic.kernels.primitives.in_ints import in_ints
from optiml_magic.kernels.primitives.plain import PLAIN
from optiml_magic.kernels.primitives.room import SHARED
from optiml_magic.kernels.primitives.shaped import linear, planar
from optiml_magic.kernels.primitives.sized import multipliers, sized
from optiml_magic.kernels.primitives.sizes import rounds, value
from optiml_magic.kernels.primitives.slid import ITEMS, ROWS, down, extent_name, slid
from optiml_magic.kernels.primitives.slid_planes import column, slid_planes, tall_name
from optiml_magic.kernels.primitives.slides import Window, may_slide, window
from optiml_magic.kernels.primitives.unclamped import unclamped
from optiml_magic.kernels.primitives.unravelled import unravelled
from optiml_magic.kernels.primitives.unravelled_planes import unravelled_planes
from optiml_magic.kernels.tree import expressions
from optiml_magic.model.hypothesis import TIME, Hypothesis
from optiml_magic.model.space import Point
from optiml_magic.proposers.rewrites.kernel_rule import KernelRule, Site, written_out
from optiml_magic.proposers.rewrites.multiplying import with_multipliers
from optiml_magic.proposers.rewrites.sums_behind import with_sums

_LEAST = 8  # rounds of a window below which its neighbours have little in common: ours
_LEAST_BOTH = 7  # the same where they have something in common in both directions: ours
_LONGEST = 1 << 12  # rounds of a window that a block can keep, with its own items: ours
_HOP = 256  # elements that the window of the next item is ahead: ours
_MOVED = 4  # rounds that bringing and storing an item takes: ours
_PLANES = (9, 4), (9, 8), (7, 4), (5, 2)  # items of a thread and rows of a warp, the best first
_ROOM = 12 << 10  # bytes of a warp, which leave room for 18 of them: ours
_BLOCK, _WARP = 256, 32


class SlideWindow(KernelRule):
    """A thread an output adds up, or looks through, all of the window around it."""

    name = "slide_window"
    before = (
        in_ints, *PLAIN, linear, planar, in_full, direct, branched, unravelled, unravelled_planes,
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
        if written_out(kernel):
            yield Refused("its loops are written out already")
            return
        found = [*with_multipliers(kernel, self.all_sites)]
        made = kernel if any(isinstance(one, Site) for one in found) else _by_pieces(kernel)
        more = [*self.all_sites(made)] if made is not kernel else []
        slides = any(isinstance(one, Site) for one in more)
        yield from with_sums(made, more) if slides else with_sums(kernel, found)

    def all_sites(self, kernel: Kernel) -> Iterator[Site | Refused]:
        """The sites of a kernel as it is."""
        if any(isinstance(e, Lambda) for e in expressions(kernel.function.body)):
            return  # what stands around its loops could not be written anew
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
            both = length is None or length >= _LEAST_BOTH
            plane = _plane(made, number, found) if both else []
            yield from plane
            if length is None or length >= _LEAST:
                yield _site(made, number, found, length or ITEMS[-1], alone=not plane)
                return
            if plane:
                return
            little = f"windows of {length} places have little in common"
            refused.append(Refused(little, loop.line))
        yield from refused


def _by_pieces(kernel: Kernel) -> Kernel:
    """With its first window that goes on by several elements an item in pieces of so many."""
    known = multipliers(kernel, _HOP)
    made = where_legal(sized, kernel, known) if known else kernel
    for number, loop in enumerate(loops_in(made.function.body)):
        axis = made.axes().get(loop)
        if axis is not None and not may_slide(made, loop):
            pieces = hopped(made, number)
            if isinstance(pieces, Kernel):
                return pieces
    return kernel


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


def _site(kernel: Kernel, number: int, found: Window, length: int, *, alone: bool) -> Site:
    """The window along its rows; beside one in both directions it comes later."""
    own = _BLOCK * 9 if down(kernel) is None else _WARP * 9
    all_rounds = max(_rounds(kernel, found), length)
    work = all_rounds / length * (own + length) / own + length / 9 + _MOVED
    gain = max(1.0, all_rounds / work)
    return Site(
        f"window {number}", f"combine what windows have in common once, {_loop(found)}",
        partial(slid, kernel, number), round(0.95 * (1 - 1 / gain) * (1 if alone else 0.6), 2),
        Hypothesis(TIME, "lower", "neighbours share what their windows combine", (1.0, 2 * gain)),
        _points(kernel, length), _rounded(found),
    )  # fmt: skip


def _plane(kernel: Kernel, number: int, found: Window) -> list[Site]:
    """The window in both directions, where another loop of it slides along the rows."""
    if down(kernel) is None:
        return []
    for other, loop in enumerate(loops_in(kernel.function.body)):
        if other == number or loop not in loops_in(found.nest):
            continue
        made = as_counted(kernel, other, is_simple)
        try:
            one = window(made, number) if isinstance(made, Kernel) else None
            tall = column(made, one, other) if isinstance(made, Kernel) and one else None
        except NotLegal:
            continue
        if one is None or tall is None or isinstance(made, Refused):
            continue
        wide, high = value(made, one.rounds) or ITEMS[-1], value(made, tall.rounds) or ITEMS[-1]
        all_rounds = max(_rounds(made, one), wide * high)
        gain = max(1.0, all_rounds / ((1 + high / 4) * (1 + wide / 288) + wide / 9 + _MOVED))
        promise = Hypothesis(
            TIME, "lower", "neighbours in rows and columns share what their windows combine",
            (1.0, 2 * gain),
        )  # fmt: skip
        return [Site(
            f"plane {number} {other}",
            f"combine what windows have in common once, in both directions, {_loop(one)}",
            partial(slid_planes, made, number, other), round(0.95 * (1 - 1 / gain), 2), promise,
            _planes(made, one, wide), _rounded(one),
        )]  # fmt: skip
    return []


def _planes(kernel: Kernel, found: Window, wide: int) -> tuple[Point, ...]:
    """As many rows of a block as there is room for, up to eight warps.

    First come those that leave room for other warps of a multiprocessor.
    """
    bytes_ = sum(r.type.size or 4 for r in found.reductions)

    def line_of(point: tuple[int, int]) -> int:
        items, tall = point
        return (_WARP * items + wide - 1) * bytes_ * tall

    points = []
    ordered = sorted(_PLANES, key=lambda point: line_of(point) > _ROOM)
    for items, tall in ordered:
        line = line_of((items, tall))
        fit = [n for n in ROWS if n * line <= SHARED]
        if fit:
            own = {kernel.fresh("ITEMS"): items, extent_name(kernel): fit[-1]}
            points.append({**own, tall_name(kernel): tall})
    return tuple(points[:3]) or ({},)


def _rounds(kernel: Kernel, found: Window) -> int:
    axes = kernel.axes()
    around = [axes[loop] for loop in loops_in(found.nest) if loop in axes]
    return prod(rounds(kernel, axis) or 1 for axis in around)


def _loop(found: Window) -> str:
    variable = found.axis.variable
    return f"in the loop over {variable.name if variable is not None else 'its rounds'}"


def _rounded(found: Window) -> tuple[str, ...]:
    return ("the order of additions",) if any(not r.exact for r in found.reductions) else ()


def _points(kernel: Kernel, length: int) -> tuple[Point, ...]:
    """Items by how wide the window is: each saves the places that it shares."""
    extent, count = extent_name(kernel), kernel.fresh("ITEMS")
    wanted = 15 if length >= 64 else 9
    sizes = (8, 4) if down(kernel) is not None else (_BLOCK, _BLOCK // 2)
    more = 7 if wanted == 9 else 9
    points = ((wanted, sizes[0]), (more, sizes[0]), (wanted, sizes[1]))
    return tuple({count: items, extent: size} for items, size in points)
