"""What a thread changes all along: counters and stacks in shared memory, rows in registers."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from functools import partial

from optiml_magic.kernels.primitives.base import Kernel, Refused, in_turn
from optiml_magic.kernels.primitives.cutting import cut
from optiml_magic.kernels.primitives.own_columns import columns, own_columns
from optiml_magic.kernels.primitives.room import SHARED
from optiml_magic.kernels.primitives.row_held import row_held
from optiml_magic.model.hypothesis import Hypothesis
from optiml_magic.proposers.rewrites.kernel_rule import Site

_THREADS = (256, 128, 64)  # of a block, where those at hand do not fit: ours
_WARP = 32
_FEW = 32  # bytes of all elements, below which registers may hold them: ours
_OFTEN, _SELDOM = 0.84, 0.5
_SHORT, _UPDATED = 64, 0.92  # elements of a row that is updated, and its chance: ours


def in_columns(kernel: Kernel) -> Iterator[Site | Refused]:
    """Arrays of a thread at places that data choose, each thread's in a bank of its own."""
    found = columns(kernel)
    if not found or None in kernel.block:
        return
    each, threads = sum(c.bytes for c in found), math.prod(e or 1 for e in kernel.block)
    block = {} if each * threads <= SHARED else _fitting(kernel, each)
    names = ", ".join(column.variable.name for column in found)
    steps = [partial(cut, extents=block)] if block else []
    made = in_turn(kernel, (*steps, own_columns))
    if isinstance(made, Refused):
        yield made
        return
    yield Site(
        "columns", f"hold each thread's {names} in a column of shared memory",
        lambda: made, _OFTEN if each > _FEW else _SELDOM,
        Hypothesis(
            "launch__local_bytes_per_thread", "lower",
            "lanes that stand at different places ask for a bank each", (1.5, 1e6),
        ),
    )  # fmt: skip


def updated_in_registers(
    kernel: Kernel, written: Callable[[Kernel], Kernel | Refused]
) -> Iterator[Site]:
    """A short row of memory that a thread updates in each round of a loop, in registers meanwhile.

    ``written`` unrolls the loops over it.
    """
    rows = {a.array for a in kernel.reading.accesses if a.mode != "load" and len(a.loops) > 1}
    inner = {a.loops[-1] for a in kernel.reading.accesses if a.array in rows and len(a.loops) > 1}
    trips = [axis.trips or 0 for axis in kernel.axes().values() if axis.name in inner]
    if not trips or max(trips) > _SHORT:
        return
    made = in_turn(kernel, (row_held, written))
    if isinstance(made, Kernel):
        yield Site(
            "updated", "hold the row that a thread updates in memory in registers",
            lambda: made, _UPDATED,
            Hypothesis(
                "l1tex__t_requests_pipe_lsu_mem_global_op_st.sum", "lower",
                "each element is stored once, at the end", (1.5, 1e3),
            ),
        )  # fmt: skip


def _fitting(kernel: Kernel, each: int) -> dict[str, int]:
    """The extents of the largest block whose threads have room for so many bytes each."""
    count = next((n for n in _THREADS if each * n <= SHARED), _WARP)
    if kernel.block[1:] == (1, 1):
        return {"x": count}
    extents = {"x": _WARP, "y": count // _WARP}
    return extents if kernel.block[2] == 1 else {**extents, "z": 1}
