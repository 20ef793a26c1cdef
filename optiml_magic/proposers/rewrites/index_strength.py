"""Indices that threads divide: axes of the launch, divisors that are known, places on a ring."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from optiml_magic.kernels.primitives.base import Kernel, Refused, where_legal
from optiml_magic.kernels.primitives.bounded import bounded
from optiml_magic.kernels.primitives.chequered import chequered
from optiml_magic.kernels.primitives.coarser import coarser
from optiml_magic.kernels.primitives.cutting import block_names, tuned
from optiml_magic.kernels.primitives.direct import in_full
from optiml_magic.kernels.primitives.grids import needed_form
from optiml_magic.kernels.primitives.partnered import partnered
from optiml_magic.kernels.primitives.shaped import linear
from optiml_magic.kernels.primitives.sized import divisors, sized
from optiml_magic.kernels.primitives.sizes import value
from optiml_magic.kernels.primitives.unravelled import unravelled
from optiml_magic.kernels.primitives.unravelled_planes import unravelled_planes
from optiml_magic.kernels.primitives.unstaged import unstaged
from optiml_magic.kernels.primitives.unstrided import unstrided
from optiml_magic.kernels.primitives.wrapped import turns, wrapped
from optiml_magic.model.hypothesis import Hypothesis
from optiml_magic.proposers.rewrites.kernel_rule import KernelRule, Site

_SMALL = 1024  # a size that is a property of the data's layout, and not of how much there is: ours
_SEVERAL, _MANY, _ONE = 3, 0.6, 0.4  # divisions an item, and the chances from there on: ours
_SHAPES = ((256, 1), (64, 4), (32, 8))  # threads along a row, and rows
_EXTENTS = {"x": (32, 64, 128, 256), "y": (1, 2, 4, 8, 16)}


class IndexStrength(KernelRule):
    """``i / n`` and ``i % n`` of a thread's index become where it stands along y and x."""

    name = "index_strength"
    before = (unstaged, bounded, unstrided, linear, in_full)
    teaches = (
        "Every thread divided its index by a size to find its row and its column. The compiler "
        "does not know the size, so a division is some twenty instructions, more than the rest of "
        "a small kernel. A launch with an axis for each has both at once. Where a loop divides by "
        "a size in each round, the size at hand as a number makes it a shift, or a product. And "
        "a neighbour on a ring, `(x + 1) % n`, lies one turn away at most, so that a comparison is "
        "enough. Of `(w * 16 + k) / 64` the rounds `k` below 16 are no part, so what is loaded "
        "from there is loaded once for all of them. Where a test lets every other item of a row "
        "work, or one of two partners `i` and `i ^ j`, half as many threads take these alone."
    )

    def sites(self, kernel: Kernel) -> Iterator[Site | Refused]:
        yield from _known(kernel)
        yield from _ring(kernel)
        yield from _coarse(kernel)
        yield from _colour(kernel)
        yield from _partners(kernel)
        made = where_legal(unravelled_planes, where_legal(unravelled, kernel))
        if made is kernel:
            return
        wide, high = block_names(made, "xy").values()
        yield Site(
            "axes", "the digits of its index as axes of the launch",
            partial(tuned, made, _EXTENTS), 0.3,
            Hypothesis("smsp__inst_executed.sum", "lower", "no thread divides its index",
                       (1.1, 3.0)),
            tuple({wide: x, high: y} for x, y in _shapes(made)),
        )  # fmt: skip


def _shapes(kernel: Kernel) -> list[tuple[int, int]]:
    """Blocks, first those of which the fewest threads stand beyond the end of a row."""
    count = needed_form(kernel, "x")
    length = value(kernel, count) if count is not None else None
    return sorted(_SHAPES, key=lambda shape: -(length or 0) % shape[0])


def _known(kernel: Kernel) -> Iterator[Site]:
    """Rounds of loops that divide by small sizes, with these as numbers."""
    found = divisors(kernel, _SMALL)
    if found and not isinstance(sized(kernel, found), Refused):
        where = ", ".join(f"{name} is {size}" for name, size in found.items())
        shifts = all(size & (size - 1) == 0 for size in found.values())
        yield Site(
            "known", f"divide by numbers, where {where}",
            partial(sized, kernel, found), 0.6 if shifts else 0.45,
            Hypothesis("smsp__inst_executed.sum", "lower", "no round divides by what is unknown",
                       (1.1, 6.0)),
        )  # fmt: skip


def _coarse(kernel: Kernel) -> Iterator[Site]:
    """Quotients of sums with counters that do not change them."""
    if not isinstance(coarser(kernel), Refused):
        yield Site(
            "coarse", "leave counters out of quotients that they do not change",
            partial(coarser, kernel), 0.5,
            Hypothesis("smsp__inst_executed.sum", "lower", "rounds load the same once", (1.1, 4.0)),
        )  # fmt: skip


def _colour(kernel: Kernel) -> Iterator[Site]:
    """Threads for the fields of one colour of a chequered plane."""
    if not isinstance(chequered(kernel), Refused):
        yield Site(
            "colour", "no threads for the fields of the other colour",
            partial(chequered, kernel), 0.5,
            Hypothesis("smsp__inst_executed.sum", "lower", "all threads of a warp have an item",
                       (1.1, 2.0)),
        )  # fmt: skip


def _partners(kernel: Kernel) -> Iterator[Site]:
    """Threads for pairs of items, of which one does what is to be done."""
    if not isinstance(partnered(kernel), Refused):
        yield Site(
            "partners", "one thread for two partners of which one does the work",
            partial(partnered, kernel), 0.7,
            Hypothesis("smsp__inst_executed.sum", "lower", "all threads of a warp have a pair",
                       (1.1, 2.0)),
        )  # fmt: skip


def _ring(kernel: Kernel) -> Iterator[Site]:
    """Places that go around once."""
    count = len(turns(kernel))
    if count:
        yield Site(
            "ring", "compare where an index goes around, in the place of a division",
            partial(wrapped, kernel), _MANY if count >= _SEVERAL else _ONE,
            Hypothesis("smsp__inst_executed.sum", "lower", "a comparison is a tenth of a division",
                       (1.05, 3.0)),
        )  # fmt: skip
