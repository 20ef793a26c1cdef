"""Loops of which each thread makes as many rounds as data say, shared by the lanes of a warp."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from optiml_magic.kernels.primitives.accumulating import in_register
from optiml_magic.kernels.primitives.base import Kernel, Refused
from optiml_magic.kernels.primitives.branched import branched
from optiml_magic.kernels.primitives.counted import all_counted
from optiml_magic.kernels.primitives.effects import loops_in
from optiml_magic.kernels.primitives.lent import LONG, lent
from optiml_magic.kernels.primitives.plain import PLAIN
from optiml_magic.kernels.primitives.sizes import rounds
from optiml_magic.kernels.reading import Axis
from optiml_magic.kernels.symbols import MEMORY, UNKNOWN, Condition
from optiml_magic.model.hypothesis import Hypothesis
from optiml_magic.model.space import Point
from optiml_magic.proposers.rewrites.kernel_rule import KernelRule, Site

_ACTIVE = "smsp__thread_inst_executed_per_inst_executed.ratio"
_DATA = {MEMORY, UNKNOWN}
_FEW = 8  # rounds, the same for all threads, below which lanes do not gain by sharing them: ours


class LendLanes(KernelRule):
    """Rows of a sparse matrix, neighbours of a vertex, work that few threads have."""

    name = "lend_lanes"
    before = (*PLAIN, branched, in_register)
    teaches = (
        "The data say how many rounds a thread makes, so a warp took as long as the longest of its "
        "loops, and most of its lanes waited. All lanes come to the loop; each that has many "
        "rounds hands its values to all of them by shuffles, they share these rounds, reading "
        "neighbours side by side, and hand back what they combine. Short loops stay as they are."
    )

    def sites(self, kernel: Kernel) -> Iterator[Site | Refused]:
        inside = set[object]()
        axes = kernel.axes()
        for number, loop in enumerate(loops_in(kernel.function.body)):
            axis = axes.get(loop)
            if loop in inside or axis is None:
                continue
            length = rounds(kernel, axis)
            uneven, sparse = _uneven(kernel, axis), _decided(axis.guard)
            if not (uneven or (sparse and (length is None or length >= _FEW))):
                continue
            made = _lent(kernel, number)
            if isinstance(made, Refused):
                yield made
                continue
            inside |= set(loops_in(loop.body))
            sums = [r for r in kernel.reading.reductions if axis.name in r.axes and not r.exact]
            counter = axis.variable.name if axis.variable is not None else "its rounds"
            yield Site(
                f"lend {number}", f"lanes share the rounds over {counter} of those with many",
                partial(_lent, kernel, number), 0.75,
                Hypothesis(_ACTIVE, "higher", "lanes no longer wait for one of them", (1.1, 16.0)),
                _points(kernel, uneven=uneven), ("the order of additions",) if sums else (),
            )  # fmt: skip


def _lent(kernel: Kernel, number: int) -> Kernel | Refused:
    plain = all_counted(kernel, (number,))
    return plain if isinstance(plain, Refused) else lent(plain, number)


def _uneven(kernel: Kernel, axis: Axis) -> bool:
    """Whether memory says where a thread's rounds begin or end."""
    begins = kernel.reading.symbols.depends(axis.start) if axis.start is not None else _DATA
    return bool(_DATA & (begins | axis.test.depends))


def _decided(guard: tuple[Condition, ...]) -> bool:
    """Whether memory says which threads come to it."""
    return any(_DATA & condition.depends for condition in guard)


def _points(kernel: Kernel, *, uneven: bool) -> tuple[Point, ...]:
    name = kernel.fresh("ALONE")
    first = (32, 8, 0) if uneven else (0,)
    return tuple({name: n} for n in first if n in LONG)
