"""Loops of which a remainder turns most rounds away."""

from __future__ import annotations

import math
from collections.abc import Iterator
from functools import partial

from optiml_magic.kernels.primitives.base import Kernel, Refused
from optiml_magic.kernels.primitives.direct import direct, in_full
from optiml_magic.kernels.primitives.plain import PLAIN
from optiml_magic.kernels.primitives.sieved import sieved, sieves
from optiml_magic.model.hypothesis import Hypothesis
from optiml_magic.proposers.rewrites.kernel_rule import KernelRule, Site


class SkipRounds(KernelRule):
    """``if ((y - k) % 2) continue;``: transposed convolutions, wheels, every n-th element."""

    name = "skip_rounds"
    before = (*PLAIN, in_full, direct)
    teaches = (
        "Each thread came to all rounds of a loop, and a remainder turned most of them away: the "
        "lanes of a warp went on in different ones, so that the warp waited in all of them. Each "
        "thread counts the rounds that are left from the first of its own, in step with the others."
    )

    def sites(self, kernel: Kernel) -> Iterator[Site | Refused]:
        found = sieves(kernel)
        if not found:
            return
        made = sieved(kernel)
        if isinstance(made, Refused):
            yield made
            return
        names = dict.fromkeys(one.axis.variable.name for one in found if one.axis.variable)
        fewer = float(math.prod(one.by for one in found))
        yield Site(
            "sieve", f"make those rounds alone over {', '.join(names)} that a remainder lets go on",
            partial(sieved, kernel), 0.85,
            Hypothesis(
                "smsp__inst_executed.sum", "lower",
                "rounds that do nothing are not made", (1.2, 2.0 * fewer),
            ),
        )  # fmt: skip
