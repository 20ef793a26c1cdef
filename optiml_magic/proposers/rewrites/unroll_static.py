"""Loops over elements in memory, several rounds at a time."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from optiml_magic.kernels.primitives.base import Kernel, Refused
from optiml_magic.kernels.primitives.unrolling import open_loops, unroll_by
from optiml_magic.model.hypothesis import Hypothesis
from optiml_magic.proposers.rewrites.kernel_rule import KernelRule, Site


class UnrollStatic(KernelRule):
    """``#pragma unroll N`` before loops of which a compiler cannot know the rounds."""

    name = "unroll_static"
    teaches = (
        "A loop asks after each few rounds whether there is another, and its loads wait behind "
        "that question. With more rounds written out, their loads are under way together, and "
        "counters and tests are shared among them; too many need registers that other warps lack."
    )

    def sites(self, kernel: Kernel) -> Iterator[Site | Refused]:
        found = open_loops(kernel)
        if not found:
            return
        name = kernel.fresh("UNROLL")
        where = ", ".join(str(loop.line) for loop in found)
        yield Site(
            "unroll", f"several rounds at a time of the loop on line {where}",
            partial(unroll_by, kernel, 8), 0.3,
            Hypothesis(
                "smsp__inst_executed.sum", "lower", "rounds share counters and tests", (1.02, 1.6)
            ),
            tuple({name: count} for count in (8, 16, 2)),
        )  # fmt: skip
