"""States that threads carry through time, such as those of scans: lanes hold them together."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial

from optiml_magic.chips import CHIPS
from optiml_magic.errors import SourceError
from optiml_magic.kernels.polynomial import Polynomial
from optiml_magic.kernels.primitives.base import Kernel, NotLegal, Refused
from optiml_magic.kernels.primitives.chosen import chosen
from optiml_magic.kernels.primitives.direct import direct, in_full
from optiml_magic.kernels.primitives.divided import Divided, divide, divisible
from optiml_magic.kernels.primitives.effects import loops_in
from optiml_magic.kernels.primitives.lanes import Lanes
from optiml_magic.kernels.primitives.opened import opened
from optiml_magic.kernels.primitives.plain import PLAIN
from optiml_magic.kernels.primitives.shaped import linear, planar
from optiml_magic.kernels.primitives.sizes import most_rounds, threads
from optiml_magic.model.hypothesis import TIME, Hypothesis
from optiml_magic.model.space import Point
from optiml_magic.proposers.rewrites.kernel_rule import KernelRule, Site
from optiml_magic.proposers.rewrites.row_to_lanes import BLOCKS, COUNTS

_LONG = 32  # rounds around a state, below which nobody waits long for it: ours
_RESIDENT = 2048  # threads of a multiprocessor that is full

_ONE = Polynomial.constant(1)


class ShareState(KernelRule):
    """Linear attention, selective scans, filters with several states: a thread a channel."""

    name = "share_state"
    before = (*PLAIN, linear, planar, in_full, direct, opened, chosen)
    teaches = (
        "Each thread carried an array through a long loop, whose rounds wait for each other, and "
        "there were far fewer threads than the chip holds. No element of the array asks for "
        "another one, so the lanes of a group hold a few each, in registers, and read what belongs "
        "to these side by side; shuffles add up what a round asks of all elements."
    )

    def sites(self, kernel: Kernel) -> Iterator[Site | Refused]:
        try:
            found = divisible(kernel)
        except NotLegal:
            return
        count, chip = threads(kernel), CHIPS.get(kernel.chip)
        apart = COUNTS[-1]
        if count is not None and chip is not None:
            apart = _RESIDENT * chip.sms // max(count, 1)
        in_rows = _in_rows(kernel, found)
        counts = [n for n in COUNTS if found.rounds % n == 0 and (in_rows or n <= 2 * apart)]
        carried = apart >= COUNTS[0] and _is_carried(kernel, found)
        if not counts or not (carried or in_rows):
            return
        lanes = Lanes("warp", counts[-1], 256, COUNTS, BLOCKS)
        made = divide(kernel, lanes)
        if isinstance(made, Refused):
            yield made
            return
        names = ", ".join(array.name for array in found.arrays)
        loops, axes = loops_in(kernel.function.body), kernel.axes()
        own = {axes[loops[at]].name for at in found.at}
        sums = any(own & {*r.axes} and not r.exact for r in kernel.reading.reductions)
        yield Site(
            "state", f"lanes of a warp hold {names} together", partial(divide, kernel, lanes),
            0.92 if apart >= COUNTS[1] else 0.87 if in_rows else 0.5,
            Hypothesis(TIME, "lower", "more threads, each with less to wait for", (1.5, 32.0)),
            _points(made, counts), ("the order of additions",) if sums else (),
        )  # fmt: skip


def _is_carried(kernel: Kernel, found: Divided) -> bool:
    """Whether one of the loops over elements is in a long one."""
    loops, axes = loops_in(kernel.function.body), kernel.axes()
    own = [loops[at] for at in found.at]
    for outer in loops:
        if outer in axes and any(loop in set(loops_in(outer.body)) for loop in own):
            length = most_rounds(kernel, axes[outer])
            if kernel.facts is None or (length is not None and length >= _LONG):
                return True
    return False


def _in_rows(kernel: Kernel, found: Divided) -> bool:
    """Whether one of these loops walks along a row of its thread's own, a sector for each lane."""
    loops, axes = loops_in(kernel.function.body), kernel.axes()
    own = {axes[loops[at]].name for at in (*found.at, *found.beside)}
    for access in kernel.reading.accesses:
        if access.space == "global" and access.mode == "load" and access.index is not None:
            along = any(access.index.coefficient(name) == _ONE for name in own)
            by = access.index.coefficient("threadIdx.x")
            if along and by is not None and by.terms and by != _ONE:
                return True
    return False


def _points(made: Kernel, counts: Sequence[int]) -> tuple[Point, ...]:
    """As many lanes as there may be, and fewer, which combine in fewer steps."""
    return tuple(point for n in counts[::-1] if _is_legal(made, point := {"LANES": n}))[:3]


def _is_legal(made: Kernel, point: Point) -> bool:
    try:
        made.program.with_values(point)
    except SourceError:
        return False
    return True
