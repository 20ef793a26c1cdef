"""Stencils, filters and convolutions: threads whose neighbours load what they load themselves."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import partial
from itertools import combinations

from optiml_magic.chips import CHIPS
from optiml_magic.kernels.primitives.base import Kernel, Refused
from optiml_magic.kernels.primitives.direct import in_full
from optiml_magic.kernels.primitives.effects import loops_in
from optiml_magic.kernels.primitives.jammed import (
    Several,
    extent_names,
    free_axes,
    item_names,
    jam,
    least,
    shared,
)
from optiml_magic.kernels.primitives.sizes import rounds, threads
from optiml_magic.model.hypothesis import Hypothesis
from optiml_magic.model.space import Point
from optiml_magic.proposers.rewrites.kernel_rule import KernelRule, Site

_REQUESTS = "l1tex__t_requests_pipe_lsu_mem_global_op_ld.sum"
_ITEMS = (4, 8, 16)
_SAVED = 0.1  # of a thread's loads, below which no items are worth their registers: ours
_UNROLLED = 256  # rounds of one item that are worth a number in the text: ours
_BLOCKS: Mapping[str, tuple[int, ...]] = {
    "x": (16, 32, 64, 128, 256), "y": (1, 2, 4, 8, 16, 32), "z": (1, 2, 4, 8),
}  # fmt: skip
_ENOUGH = 512  # threads of a multiprocessor that hide what loads take


class ShareLoads(KernelRule):
    """A thread computes several neighbours of a stencil, or several filters of one image."""

    name = "share_loads"
    before = (in_full,)
    teaches = (
        "Neighbouring threads loaded mostly the same elements, each for one output, and each asked "
        "for every neighbour whether it lies inside. A thread that computes several outputs along "
        "an axis keeps what they share in registers, so an output needs a fraction of the loads, "
        "and far from the borders one comparison stands for all tests of them."
    )

    def sites(self, kernel: Kernel) -> Iterator[Site | Refused]:
        kernel = kernel.settled()
        fixed = _short(kernel)
        free = [axis for axis in free_axes(kernel) if axis != "x"]
        if not free:
            return
        found = shared(kernel, Several(dict.fromkeys(free, _ITEMS), fixed))
        axes = [axis for axis in found if found[axis] >= _SAVED]
        for count in range(1, len(axes) + 1):
            for several in combinations(axes, count):
                yield _site(kernel, fixed, {axis: found[axis] for axis in several})


def _site(kernel: Kernel, fixed: Mapping[str, int], saved: Mapping[str, float]) -> Site:
    left = 1.0
    for share in saved.values():
        left *= 1 - share
    items = _ITEMS if len(saved) == 1 else (4, 2, 8)
    several = Several(dict.fromkeys(saved, items), fixed, _BLOCKS)
    along = " and ".join(saved)
    title = f"take several items along {along} together"
    title += "".join(f", where {name} is {value}" for name, value in fixed.items())
    enough = _enough(kernel, 4 ** len(saved))
    return Site(
        f"along {along}", title, partial(jam, kernel, several),
        round((0.8 if enough else 0.3) * (1 - left), 2),
        Hypothesis(
            _REQUESTS, "lower", "items of a thread share what they load",
            (1.0, round(2 / left, 1)),
        ),
        _points(kernel, several),
    )  # fmt: skip


def _short(kernel: Kernel) -> dict[str, int]:
    """Scalars that say how long short loops are, with their values at the measured sizes."""
    found: dict[str, int] = {}
    given = kernel.facts.scalars if kernel.facts is not None else {}
    axes = kernel.axes()
    for loop, axis in axes.items():
        bounds = [form for form in (axis.start, axis.stop) if form is not None]
        names = {name for form in bounds for name in form.symbols}
        total = 1
        for inner in loops_in(loop):
            total *= (rounds(kernel, axes[inner]) or 0) if inner in axes else 0
        if names <= given.keys() and 0 < total <= _UNROLLED:
            found |= {n: int(given[n]) for n in names if n not in kernel.program.values}
    return found


def _enough(kernel: Kernel, items: int) -> bool:
    """Whether there are threads for every multiprocessor when each takes so many items."""
    count, chip = threads(kernel), CHIPS.get(kernel.chip)
    return count is None or chip is None or count // items >= _ENOUGH * chip.sms


def _points(kernel: Kernel, several: Several) -> tuple[Point, ...]:
    """Wide blocks of about 256 threads, with more and with fewer items each."""
    names, extents = item_names(kernel, several.counts), extent_names(kernel)
    tall = {axis: least(kernel, several, axis) for axis in "yz"}
    found: list[Point] = []
    for items, rows in ((4, 4), (8, 4), (4, 8)) if len(names) == 1 else ((4, 4), (2, 4), (4, 8)):
        own = tall | {"y": max(rows, tall["y"])}
        own["x"] = max(32, 256 // (own["y"] * own["z"]))
        blocks = {name: own[axis] for axis, name in extents.items()}
        found.append(dict.fromkeys(names.values(), items) | blocks)
    return tuple(dict(point) for point in dict.fromkeys(tuple(p.items()) for p in found))
