"""Short loops that compute the same weights in every round of the loop around them."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from optiml_magic.kernels.primitives.base import Kernel, Refused
from optiml_magic.kernels.primitives.direct import direct, in_full
from optiml_magic.kernels.primitives.effects import loops_in
from optiml_magic.kernels.primitives.plain import PLAIN
from optiml_magic.kernels.primitives.sizes import rounds
from optiml_magic.kernels.primitives.tabulated import tabulated, tabulating
from optiml_magic.model.hypothesis import Hypothesis
from optiml_magic.proposers.rewrites.kernel_rule import KernelRule, Site

_USUAL = 8.0  # rounds of a loop whose number is not known


class TabulateWeights(KernelRule):
    """Weights of a filter along x, which are those of every row; angles of a transform."""

    name = "tabulate_weights"
    before = (*PLAIN, in_full, direct)
    teaches = (
        "Every round of a loop computed the same row of weights anew, with functions that take "
        "dozens of instructions. They are computed once, before the loop, into registers. A "
        "compiler does so with what it can move by itself, which a function with a branch is not."
    )

    def sites(self, kernel: Kernel) -> Iterator[Site | Refused]:
        found = tabulating(kernel)
        if found is None:
            return
        at, values = found
        loop = loops_in(kernel.function.body)[at]
        axis = kernel.axes().get(loop)
        times = rounds(kernel, axis) if axis is not None else None
        short = ", ".join(dict.fromkeys(str(v.axis.node.line) for v in values))
        rounded = any(value.rounded for value in values)
        yield Site(
            f"before {at}",
            f"compute what the loop on line {short} weighs by before the one on line {loop.line}",
            partial(tabulated, kernel, at), 0.8,
            Hypothesis(
                "smsp__inst_executed.sum", "lower",
                "functions of a few numbers are computed once for all rounds",
                (1.1, max(1.2, float(times or _USUAL))),
            ),
            arithmetic=("products are rounded before a sum takes them",) if rounded else (),
        )  # fmt: skip
