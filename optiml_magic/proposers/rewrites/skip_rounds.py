"""Loops of which a remainder or a comparison turns rounds away."""

from __future__ import annotations

import math
from collections.abc import Iterator
from functools import partial

from optiml_magic.kernels.expressions import Lambda
from optiml_magic.kernels.primitives.base import Kernel, Refused, in_turn
from optiml_magic.kernels.primitives.clipped import clipped, clips
from optiml_magic.kernels.primitives.counted import as_counted
from optiml_magic.kernels.primitives.direct import direct, in_full
from optiml_magic.kernels.primitives.effects import is_simple
from optiml_magic.kernels.primitives.plain import PLAIN
from optiml_magic.kernels.primitives.residues import sieving
from optiml_magic.kernels.primitives.sieved import sieved, sieves, uncounted
from optiml_magic.kernels.primitives.sized import sized
from optiml_magic.kernels.tree import expressions
from optiml_magic.model.hypothesis import Hypothesis
from optiml_magic.proposers.rewrites.kernel_rule import KernelRule, Site


class SkipRounds(KernelRule):
    """``if ((y - k) % 2) continue;``: transposed convolutions, wheels, every n-th element.

    And ``if (x + k >= 0 && x + k < width)``: borders, bands, triangles, products of polynomials.
    """

    name = "skip_rounds"
    before = (*PLAIN, in_full, direct)
    teaches = (
        "Each thread came to all rounds of a loop, and a remainder turned most of them away: the "
        "lanes of a warp went on in different ones, so that the warp waited in all of them. Each "
        "thread counts the rounds that are left from the first of its own, in step with the "
        "others. Comparisons of the counter turn away the first rounds and the last: they become "
        "the bounds of the loop, and no round asks."
    )

    def sites(self, kernel: Kernel) -> Iterator[Site | Refused]:
        yield from _by_remainder(kernel)
        if not kernel.reading.barriers:  # the rounds of tiles are few, and done by all lanes alike
            yield from _by_comparison(kernel)


def _by_comparison(kernel: Kernel) -> Iterator[Site]:
    found = clips(kernel)
    if not found.names:
        return
    fewer = 1 / found.left if found.left is not None else 1.5
    names = ", ".join(found.names)
    yield Site(
        "clip", f"make those rounds alone over {names} that comparisons let go on",
        partial(clipped, kernel), min(0.9, 0.3 * fewer) if fewer > 1 else 0.15,
        Hypothesis(
            "smsp__inst_executed.sum", "lower",
            "rounds that do nothing are not made, and no round asks", (1.0, max(2.0, 2.0 * fewer)),
        ),
    )  # fmt: skip


def _by_remainder(kernel: Kernel) -> Iterator[Site | Refused]:
    counts = [partial(as_counted, at=n, ready=is_simple) for n in uncounted(kernel)]
    if counts:
        counting = in_turn(kernel, counts)
        if isinstance(counting, Refused):
            yield counting
            return
        kernel = counting
    found = sieves(kernel)
    given: dict[str, int] = {}
    plain = not any(isinstance(e, Lambda) for e in expressions(kernel.function.body))
    if not found and plain and (given := sieving(kernel)):
        known = sized(kernel, given)
        found = sieves(known) if isinstance(known, Kernel) else []
    if not found:
        return
    steps = [partial(sized, values=given)] if given else []
    made = in_turn(kernel, [*steps, sieved])
    if isinstance(made, Refused):
        yield made
        return
    names = dict.fromkeys(one.axis.variable.name for one in found if one.axis.variable)
    fewer = float(math.prod(one.by for one in found))
    title = f"make those rounds alone over {', '.join(names)} that a remainder lets go on"
    title += "".join(f", where {name} is {size}" for name, size in given.items())
    yield Site(
        "sieve", title, partial(in_turn, kernel, [*steps, sieved]), 0.85,
        Hypothesis(
            "smsp__inst_executed.sum", "lower",
            "rounds that do nothing are not made", (1.2, 2.0 * fewer),
        ),
    )  # fmt: skip
