"""Long rounds within a loop whose rounds wait for each other, shared where threads are few."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from optiml_magic.kernels.primitives.base import Kernel, Refused
from optiml_magic.kernels.primitives.effects import loops_in
from optiml_magic.kernels.primitives.lanes import Lanes
from optiml_magic.kernels.primitives.operation_counts import operations, operations_outside
from optiml_magic.kernels.primitives.sizes import around, usual_rounds
from optiml_magic.kernels.tree import Loop
from optiml_magic.model.hypothesis import TIME, Hypothesis
from optiml_magic.proposers.rewrites.kernel_rule import Site
from optiml_magic.proposers.rewrites.rounds_of_lanes import unshared
from optiml_magic.proposers.rewrites.row_to_lanes import BLOCKS, order, shared_by

_EACH = 4  # rounds of a lane, at least: ours
_SHARED = 4  # what lanes share is more than this many times what each of them repeats: ours
_SPARE = 4  # so many times the lanes that fill the chip, where sectors are all that is read: ours
_WARP = 32
#: Lanes of one warp leave the others a sector of neighbours, those of several a whole line.
_APART = Lanes("apart", 8, 128, (2, 4, 8), BLOCKS)
_STACKED = Lanes("stacked", 16, 512, (8, 16, 32), (256, 512, 1024))


def rounds_within(kernel: Kernel, apart: int) -> Iterator[Site | Refused]:
    """Lanes for the loops of each round, where ``apart`` times as many threads fill the chip.

    Forward substitution: a row needs all those that were solved, which a thread adds up one after
    the other, and only the rows have to wait.
    """
    at, length = _within(kernel)
    if not at:
        return
    loops = loops_in(kernel.function.body)
    axes = [kernel.axes()[loops[number]] for number in at]
    counters = ", ".join(dict.fromkeys(a.variable.name for a in axes if a.variable is not None))
    hypothesis = Hypothesis(TIME, "lower", "more loads are on their way", (1.5, 16.0))
    for lanes, words, most, prior in (
        (_STACKED, "lanes of several warps", apart, 0.87),
        (_APART, "lanes beside neighbours", apart // _SPARE, 0.86),
    ):
        counts = [n for n in lanes.counts if n <= min(most, length // _EACH, lanes.count)]
        many, block = kernel.fresh("LANES"), kernel.fresh("BLOCK")
        points = tuple({many: n} for n in counts[:-3:-1])
        if lanes is _STACKED:
            points = tuple({**point, block: _WARP * point[many]} for point in points)
        apply = partial(shared_by, kernel, at, lanes, vectors=False)
        if not points:
            continue
        if isinstance(made := apply(), Refused):
            yield made
            continue
        yield Site(
            f"{lanes.group} {at}", f"{words} share the loop over {counters} in each round", apply,
            prior if apart >= 8 else 0.5, hypothesis, points, order(kernel, axes),
        )  # fmt: skip


def _within(kernel: Kernel) -> tuple[tuple[int, ...], int]:
    """The outermost loops that lanes may share, and the rounds of the longest within another.

    Nothing where none is in a loop that they may not share, or where little is left to share.
    """
    axes, inside, at, length = kernel.axes(), set[Loop](), list[int](), 0
    loops = loops_in(kernel.function.body)
    for number, loop in enumerate(loops):
        axis = axes.get(loop)
        long = usual_rounds(kernel, axis) if axis is not None and loop not in inside else None
        if axis is None or long is None or long < _EACH or unshared(kernel, (number,)) is not None:
            continue
        inside |= {*loops_in(loop.body)}
        at.append(number)
        length = max(length, long) if around(kernel, axis) else length
    left = operations_outside(kernel, [loops[number] for number in at])
    return (tuple(at), length) if length and _SHARED * left < operations(kernel) else ((), 0)
