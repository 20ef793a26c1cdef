"""The block's extents as tuned parameters."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from optiml_magic.chips import CHIPS
from optiml_magic.kernels.primitives.base import Kernel, NotLegal, Refused
from optiml_magic.kernels.primitives.cutting import freedom, tuned
from optiml_magic.kernels.primitives.direct import in_full
from optiml_magic.kernels.primitives.points import shapes
from optiml_magic.kernels.primitives.retiled import retiled, tile
from optiml_magic.kernels.primitives.round_a_block import round_a_block
from optiml_magic.kernels.primitives.rowed import rowed
from optiml_magic.kernels.primitives.shaped import linear, planar
from optiml_magic.kernels.primitives.sizes import threads
from optiml_magic.kernels.primitives.unstrided import unstrided
from optiml_magic.model.hypothesis import TIME, Hypothesis
from optiml_magic.proposers.rewrites.kernel_rule import KernelRule, Site

_LINE = (64, 128, 256, 512, 1024)
_PLANE = ((8, 16, 32, 64, 128), (1, 2, 4, 8, 16, 32), (1, 2, 4, 8))
_MOST_SHAPES = 3
_RESIDENT = 2048  # threads of a multiprocessor that is full
_EMPTY = 4  # times the threads below which a chip is: ours
_FILLED = Hypothesis(TIME, "lower", "all multiprocessors have work", (1.5, 132.0))
_AS_MANY = 2  # times the threads, from which on a kernel is another one: ours
_TILES = 0.4  # the chance of another tile; ours
_LESS_RIM = Hypothesis(TIME, "lower", "less of a larger tile is its rim", (1.0, 3.0))
_EXPECTED = Hypothesis(
    TIME, "lower", "another block size lets more warps be resident, or reuses more", (1.0, 1.3)
)


class BlockSize(KernelRule):
    """``block(256)`` becomes ``block(BLOCK)`` with ``BLOCK`` tuned."""

    name = "block_size"
    before = (planar, linear, in_full)
    teaches = (
        "The block's shape decides how many warps fit a multiprocessor and how much each block "
        "reuses; which is best depends on the chip, so it is measured. Of a larger tile less is "
        "the rim that neighbouring blocks load and compute as well."
    )

    def shaped(self, kernel: Kernel) -> Kernel:
        """Where threads that walk along rows are many, with no thread for each element of these."""
        made = super().shaped(kernel)
        own = threads(kernel)
        if own is None or _are_few(kernel, own) or (threads(made) or 0) < _AS_MANY * own:
            return made
        return kernel.shaped(tuple(step for step in self._steps if step is not rowed))

    def sites(self, kernel: Kernel) -> Iterator[Site | Refused]:
        yield from _more_blocks(kernel)
        yield from _tiles(kernel)
        if kernel.function.launch_bounds:
            raise NotLegal("its launch bounds say how many threads a block has")
        values, refused, rounds = {}, [], False
        sets = (_LINE,) if len(kernel.launch.block) == 1 else _PLANE
        for axis, wanted, own in zip("xyz", sets, kernel.block, strict=False):
            if own is None or not wanted or (own == 1 and len(sets) > 1):
                continue
            try:
                free = freedom(kernel, axis)
            except NotLegal as reason:
                refused.append(Refused(reason.reason, reason.line))
                continue
            extents = {e for e in wanted if free.allows(e, own)} | {own}
            general = {e for e in extents if e >= own or axis == "x"}  # as many blocks, or fewer
            extents = general if len(general) > 1 else extents
            if len(extents) > 1:
                values[axis] = tuple(sorted(extents))
                rounds |= free.together is not None and free.together.rounds
        points = shapes(kernel, values, _MOST_SHAPES) if values else ()
        if points:
            yield Site("block", "tuned block", partial(tuned, kernel, values), 0.35, _EXPECTED,
                       points, ("the order of additions",) if rounds else ())  # fmt: skip
        elif not values:
            yield from refused[:1]


def _tiles(kernel: Kernel) -> Iterator[Site]:
    """A tile whose extent the text calls by a name, as that of its block."""
    try:
        found = tile(kernel)
    except NotLegal:
        return
    points = tuple({found.tuned: value} for value in found.values if value != found.extent)
    make = partial(retiled, kernel)
    yield Site("tile", "tuned tile", make, _TILES, _LESS_RIM, points[:_MOST_SHAPES])


def _more_blocks(kernel: Kernel) -> Iterator[Site]:
    """So few threads, each with many items, that most of the chip has nothing to do."""
    own = threads(kernel)
    if own is None or not _are_few(kernel, own):
        return
    for step, key, title in (
        (unstrided, "items", "a thread for each item"),
        (round_a_block, "rounds", "a block for each round of its blocks"),
    ):
        if (threads(kernel.shaped((step,))) or 0) >= _EMPTY * own:
            yield Site(key, title, partial(step, kernel), 0.86, _FILLED)


def _are_few(kernel: Kernel, count: int) -> bool:
    """Whether so many threads leave most of the chip idle."""
    chip = CHIPS.get(kernel.chip)
    return chip is not None and count * _EMPTY <= chip.sms * _RESIDENT
