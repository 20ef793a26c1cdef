"""Short rows one behind the other, of which a block shares those and not each of them.

A norm of channels-last images has a few channels for each of many pixels, and fewer groups than a
chip has threads: lanes that shared the channels would leave most of the chip idle.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial

from optiml_magic.kernels.primitives.base import Kernel, NotLegal, Refused, where_legal
from optiml_magic.kernels.primitives.counted import all_counted
from optiml_magic.kernels.primitives.effects import loops_in
from optiml_magic.kernels.primitives.lanes import Lanes, share
from optiml_magic.kernels.primitives.sized import sized
from optiml_magic.kernels.primitives.sizes import around, usual_rounds
from optiml_magic.kernels.primitives.vectors import vectorise
from optiml_magic.kernels.reading import Axis
from optiml_magic.model.hypothesis import Hypothesis
from optiml_magic.proposers.rewrites.kernel_rule import Site
from optiml_magic.proposers.rewrites.rounds_of_lanes import unshared
from optiml_magic.proposers.rewrites.row_threads import few_threads, of_rows

_SHORT = 64  # elements of a row that lanes of a warp share with next to nothing for each: ours
_LONG = 128  # rows behind each other, from which on a block shares these: ours
_APART = 0.4  # the chance where rows come one element at a time, each lane far from the next: ours
_OCCUPANCY = "sm__warps_active.avg.pct_of_peak_sustained_active"

Order = Callable[[Kernel, Sequence[Axis]], tuple[str, ...]]


def outer_rounds(
    kernel: Kernel, found: Sequence[Axis], length: int, counts: Sequence[int], order: Order
) -> Iterator[Site]:
    """A block for what a thread did, whose threads share the loops around short rows.

    ``order`` says what changes where rounds are shared.
    """
    if not 0 < length <= _SHORT or not few_threads(kernel):
        return
    nested = [[a for a in around(kernel, axis) if a.node is not axis.node] for axis in found]
    if not all(nested):
        return
    outer = tuple(dict.fromkeys(axes[0] for axes in nested))
    rows = [usual_rounds(kernel, axis) or 0 for axis in outer]
    loops = loops_in(kernel.function.body)
    at = tuple(loops.index(axis.node) for axis in outer)
    if min(rows) < _LONG or not all(a.exact for a in outer):
        return
    where = ""
    if unshared(kernel, at) is not None:  # a row may be longer than these are apart
        sizes = _lengths(kernel, found)
        known = sized(kernel, sizes) if sizes else kernel
        if isinstance(known, Refused) or known is kernel or unshared(known, at) is not None:
            return
        kernel, where = known, "".join(f", where {name} is {n}" for name, n in sizes.items())
        loops, axes = loops_in(kernel.function.body), kernel.axes()
        outer = tuple(axes[loops[number]] for number in at)
    try:
        arithmetic = order(kernel, outer)
    except NotLegal:
        return
    counters = ", ".join(dict.fromkeys(a.variable.name for a in outer if a.variable))
    yield Site(
        f"block {at} rows",
        f"a block shares the loop over {counters}, a row of it each thread{where}",
        partial(_shared, kernel, at, counts), 0.88 if _by_vectors(kernel) is not kernel else _APART,
        Hypothesis(_OCCUPANCY, "higher", "a block does what a thread did", (1.5, 32.0)),
        of_rows(kernel, outer, max(rows) * length, counts), arithmetic,
    )  # fmt: skip


def _lengths(kernel: Kernel, found: Sequence[Axis]) -> dict[str, int]:
    """The sizes that say how long rows are, as they are measured."""
    given = kernel.facts.scalars if kernel.facts is not None else {}
    inside = kernel.reading.symbols.inside
    names = {n for a in found for e in (a.start, a.stop) if e is not None for n in inside(e)}
    return {n: int(given[n]) for n in sorted(names & given.keys() - kernel.program.values.keys())}


def _shared(kernel: Kernel, at: tuple[int, ...], counts: Sequence[int]) -> Kernel | Refused:
    """The loops shared, where those within then take vectors if they may."""
    plain = all_counted(kernel, at)
    if isinstance(plain, Refused):
        return plain
    lanes = Lanes("block", counts[-1] // 2, 256, (*counts,), (*counts,))
    made = share(plain, at, lanes)
    return made if isinstance(made, Refused) else _by_vectors(made)


def _by_vectors(kernel: Kernel) -> Kernel:
    """With vectors in the loops that stand in others, where they take any."""
    loops = loops_in(kernel.function.body)
    inner = {i for loop in loops for i in loops_in(loop.body)}
    for number in [n for n, loop in enumerate(loops) if loop in inner][::-1]:
        kernel = where_legal(vectorise, kernel, number)
    return kernel
