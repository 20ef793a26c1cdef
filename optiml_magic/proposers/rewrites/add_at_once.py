"""Atomic operations on floats beside each other, by one request for two or four of them."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from optiml_magic.kernels.primitives.added_together import added_together, together
from optiml_magic.kernels.primitives.base import Kernel, Refused
from optiml_magic.kernels.primitives.operation_counts import requests
from optiml_magic.model.hypothesis import Hypothesis
from optiml_magic.proposers.rewrites.kernel_rule import KernelRule, Site

_REQUESTS = "l1tex__t_requests_pipe_lsu_mem_global_op_red.sum"
_LIKELY = 0.87  # the chance where atomic operations are what a thread waits for: ours


class AddAtOnce(KernelRule):
    """Complex numbers, colours, forces that are scattered: the parts of one element."""

    name = "add_at_once"
    teaches = (
        "A thread added to the parts of one element by an atomic operation each, so that one "
        "sector of the L2 was asked several times, and that is what such a kernel waits for. From "
        "compute capability 9.0 on one operation adds to two or four neighbouring floats; on "
        "earlier ones the same text adds them one by one."
    )

    def sites(self, kernel: Kernel) -> Iterator[Site | Refused]:
        # What is the same for a block its threads seldom add to: by one of them, after the others.
        uniform = kernel.reading.uniform
        runs = [
            run for run in together(kernel)
            if run[0][2].offset is not None and not uniform(run[0][2].offset)
        ]  # fmt: skip
        if not runs:
            return
        arrays = ", ".join(dict.fromkeys(access.array for run in runs for _, _, access in run))
        count = max(map(len, runs))
        yield Site(
            "together", f"add to {count} neighbours in {arrays} at once",
            partial(added_together, kernel), _LIKELY if _mostly(kernel) else 0.72,
            Hypothesis(_REQUESTS, "lower", "one request adds several floats", (1.2, 4.0)),
        )  # fmt: skip


def _mostly(kernel: Kernel) -> bool:
    """Whether atomic operations are most of what a thread asks memory for."""
    asked = requests(kernel)
    updated = {a.array for a in kernel.reading.accesses if a.mode == "atomic"}
    return sum(asked.get(array, 0.0) for array in updated) > sum(asked.values()) / 2
