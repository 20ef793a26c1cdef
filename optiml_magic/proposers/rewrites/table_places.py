"""Local arrays whose places tables of numbers say: how likely it pays that these are constants."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from optiml_magic.kernels.primitives.base import Kernel
from optiml_magic.kernels.primitives.coalescing import sectors_apart
from optiml_magic.kernels.primitives.constant_arrays import constant_arrays, in_constant_memory
from optiml_magic.kernels.primitives.known_tables import known_tables, tables_known
from optiml_magic.kernels.primitives.operation_counts import times
from optiml_magic.model.hypothesis import Hypothesis
from optiml_magic.proposers.rewrites.kernel_rule import Site

LOCAL = Hypothesis(
    "launch__local_bytes_per_thread", "lower",
    "constant indices let the array lie in registers", (1.5, 1e6),
)  # fmt: skip
_FIRST, _BEHIND = 0.91, 0.8  # the chance, and behind rows that a warp brings together: ours


def tables(kernel: Kernel) -> Iterator[Site]:
    """Local arrays whose places tables of numbers say.

    A warp that asks for an element of one takes as many sectors of local memory as that has bytes,
    which are neighbours. Where rows of its threads take more of global memory these come first.
    """
    if given := constant_arrays(kernel):
        kept = ", ".join(array.variable.name for array in given)
        title = f"keep {kept} in constant memory, which no thread fills"
        yield Site("constants", title, partial(in_constant_memory, kernel, given), _FIRST, LOCAL)
    placing = known_tables(kernel)
    if not placing:
        return
    local = sum(
        times(kernel, a) * (a.element.size or 0)
        for a in kernel.reading.accesses if a.array in placing
    )  # fmt: skip
    rows = sum(times(kernel, a) * taken for a, taken in sectors_apart(kernel).items())
    names = sorted({table for own in placing.values() for table in own})
    yield Site(
        "tables", f"find places in {', '.join(sorted(placing))} by the numbers of "
        f"{', '.join(names)}", partial(tables_known, kernel),
        _BEHIND if rows > local else _FIRST, LOCAL,
    )  # fmt: skip
