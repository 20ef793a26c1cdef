"""What depends on one byte alone, such as the gamma of a pixel: from a table of 256 values."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from math import prod

from optiml_magic.chips import CHIPS
from optiml_magic.kernels.primitives.base import Kernel, Refused, where_legal
from optiml_magic.kernels.primitives.byte_values import VALUES, Lookup
from optiml_magic.kernels.primitives.costs import instructions, rough_seconds
from optiml_magic.kernels.primitives.effects import Effects
from optiml_magic.kernels.primitives.looked_up import looked_up, lookups
from optiml_magic.kernels.primitives.single import each_value
from optiml_magic.kernels.primitives.sizes import threads, usual_rounds
from optiml_magic.model.hypothesis import TIME, Hypothesis
from optiml_magic.proposers.rewrites.kernel_rule import KernelRule, Site

_FEW = 4  # times as many items as values, from which on a table is worth it: ours
_DIVISION = 100  # instructions of one of 64 bits, roughly: ours
_HIDDEN = 0.6  # the chance of what takes no longer than the bytes of a launch: ours


class LookUp(KernelRule):
    """Powers of pixels, codes of letters, classes of bytes."""

    name = "look_up"
    teaches = (
        "Each thread computed a function of a byte, by a power of a hundred instructions or by a "
        "switch that sends the lanes of a warp different ways. A byte has 256 values: a launch "
        "before computes the function of each of them once, and a thread loads its own from a "
        "table that a cache holds whole, or, by another rule, shared memory."
    )

    def sites(self, kernel: Kernel) -> Iterator[Site | Refused]:
        count = threads(kernel)
        if count is not None and count <= _FEW * VALUES:  # a table would take as long to make
            return
        found = lookups(kernel)
        if not found:
            kernel = where_legal(each_value, kernel)
            found = lookups(kernel)
        if not found:
            return
        made = looked_up(kernel)
        if isinstance(made, Refused):
            yield made
            return
        names = ", ".join(dict.fromkeys(one.called for one in found))
        yield Site(
            "bytes", f"look {names} up in a table of all values of a byte",
            partial(looked_up, kernel), _chance(kernel, found),
            Hypothesis(TIME, "lower", "what 256 values need is computed once", (1.2, 16.0)),
            arithmetic=("the rounding of products",) if any(o.type.floating for o in found) else (),
        )  # fmt: skip


def _chance(kernel: Kernel, found: list[Lookup]) -> float:
    """Less where functions are long, but not as long as what memory takes meanwhile."""
    if not any(one.long for one in found):
        return 0.7
    count, chip, bytes_take = threads(kernel), CHIPS.get(kernel.chip), rough_seconds(kernel)
    if count is None or chip is None or bytes_take is None:
        return 0.86
    own = sum(_instructions(kernel, one) for one in found if one.long)
    takes = count * own / (chip.fp32_per_sm * chip.sms * chip.clock)
    return 0.86 if takes > bytes_take else _HIDDEN


def _instructions(kernel: Kernel, one: Lookup) -> int:
    """Roughly those of a thread for one function, in all rounds of the loops around it."""
    effects, axes = Effects(kernel), kernel.axes()
    inside = {loop: effects.inside(loop) for loop in axes}
    return sum(
        (instructions(kernel, expr) or _DIVISION)
        * prod(usual_rounds(kernel, axes[loop]) or 1 for loop in axes if expr in inside[loop])
        for expr in one.expressions
    )
