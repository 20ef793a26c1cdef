"""Transforms of small blocks, a thread a coefficient: sums along rows and cosines once a block."""

from __future__ import annotations

import math
from collections.abc import Iterator
from functools import partial

from optiml_magic.kernels.primitives.alike_in_block import alike
from optiml_magic.kernels.primitives.base import Kernel, NotLegal, Refused, where_legal
from optiml_magic.kernels.primitives.copied_parameters import copied_parameters
from optiml_magic.kernels.primitives.counted import as_counted
from optiml_magic.kernels.primitives.digit_loops import digit_loops
from optiml_magic.kernels.primitives.direct import direct
from optiml_magic.kernels.primitives.effects import is_simple, loops_in
from optiml_magic.kernels.primitives.factored import factored
from optiml_magic.kernels.primitives.once_a_block import once_a_block
from optiml_magic.kernels.primitives.scoped import scoped
from optiml_magic.kernels.primitives.shaped import planar
from optiml_magic.kernels.primitives.single import single
from optiml_magic.kernels.primitives.sized import block_sized
from optiml_magic.kernels.primitives.stepwise import stepwise
from optiml_magic.kernels.primitives.unchained import unchained
from optiml_magic.kernels.primitives.unshadowed import unshadowed
from optiml_magic.kernels.primitives.unstaged import unstaged
from optiml_magic.model.hypothesis import TIME, Hypothesis
from optiml_magic.proposers.rewrites.kernel_rule import KernelRule, Site, written_out

_SHAPES = (block_sized, unshadowed, unchained, copied_parameters, stepwise, scoped, single)
_FEW = 4  # threads that compute alike, from which on a barrier is less: ours
_ARITHMETIC = ("the order of additions", "the rounding of products")


class ComputeInBlock(KernelRule):
    """A cosine transform by its definition: sums along rows, and the cosines of both loops."""

    name = "compute_in_block"
    before = (unstaged, planar, direct, digit_loops)
    teaches = (
        "Threads of a block that differ in one index alone computed the same in the rounds of a "
        "loop: sums along a row of the block for each row of coefficients, or cosines of a round "
        "and of one index. The block computes each of them once, every thread a part, and keeps "
        "them in shared memory, where the loop then loads them. A double sum whose factors are "
        "those of a row and those of a column becomes two single ones so."
    )

    def shaped(self, kernel: Kernel) -> Kernel:
        """Without the steps that part a block, whose threads are to share what they compute."""
        return kernel.shaped((*_SHAPES, *self.before))

    def sites(self, kernel: Kernel) -> Iterator[Site | Refused]:
        if written_out(kernel):
            yield Refused("its loops are written out already")
            return
        ready = _ready(kernel)
        try:
            found, _ = alike(ready)
        except NotLegal as reason:
            if any(loops_in(loop.body) for loop in loops_in(kernel.function.body)):
                yield Refused(reason.reason, reason.line)
            return
        many = [
            math.prod(ready.block["xyz".index(axis)] or 1 for axis in one.missing) for one in found
        ]
        if max(many, default=0) < _FEW:
            return
        sums = any(one.node is None for one in found)
        yield Site(
            "block", "compute what threads have alike once a block, in shared memory",
            partial(once_a_block, ready), 0.95 if sums else 0.9,
            Hypothesis(TIME, "lower", "what a block has alike is computed once", (1.2, 16.0)),
            arithmetic=_ARITHMETIC if sums else (),
        )  # fmt: skip


def _ready(kernel: Kernel) -> Kernel:
    """With sums of rows by themselves, in loops that count from 0."""
    for at in range(len(loops_in(kernel.function.body))):
        kernel = where_legal(as_counted, kernel, at, is_simple)
    return where_legal(factored, kernel, plain=True)
