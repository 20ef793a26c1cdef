"""Launches one behind the other whose threads have the same items, as one kernel."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from optiml_magic.chips import CHIPS
from optiml_magic.kernels.primitives.alongside import all_simple, alongside
from optiml_magic.kernels.primitives.base import Kernel, NotLegal, Refused, where_legal
from optiml_magic.kernels.primitives.effects import loops_in
from optiml_magic.kernels.primitives.fused import fused
from optiml_magic.kernels.primitives.localised import localised
from optiml_magic.kernels.primitives.operands import combining
from optiml_magic.kernels.primitives.paired import rounds
from optiml_magic.kernels.primitives.scoped import scoped
from optiml_magic.kernels.primitives.sizes import threads
from optiml_magic.model.hypothesis import TIME, Hypothesis
from optiml_magic.model.space import Point
from optiml_magic.proposers.rewrites.block_sum import BlockSum
from optiml_magic.proposers.rewrites.blocked_product import BlockedProduct
from optiml_magic.proposers.rewrites.kernel_rule import KernelRule, Site
from optiml_magic.proposers.rewrites.scalarise_array import own_in_registers

_PRODUCT, _SUM = BlockedProduct(), BlockSum()
_SCRATCH = 0.5  # the chance where more would stay in registers
_BEFORE = 0.01  # of a chance, by which what does more comes before what it is made of
_RESIDENT = 2048  # threads of a multiprocessor that is full


class FuseElementwise(KernelRule):
    """A bias, then an activation, then a scale: what each writes the next one reads."""

    name = "fuse_elementwise"
    teaches = (
        "Each launch wrote an array that the next one read again, element by element, by the same "
        "thread. One kernel that does both keeps the element in a register: it is neither written "
        "nor read, where nobody else asks for it, and there is one launch less."
    )

    def sites(self, kernel: Kernel) -> Iterator[Site | Refused]:
        made, joined = kernel, [kernel.launch.kernel or kernel.function.name]
        arithmetic = False
        while made.behind is not None:
            last = made.behind
            again = fused(made)
            if isinstance(again, Kernel) and _products_apart(made, last, again):
                again = Refused("each of them is a product of its own")
            if isinstance(again, Refused):
                if len(joined) == 1:
                    yield again
                break
            arithmetic = arithmetic or rounds(made)
            made = again
            joined.append(last.launch.kernel or last.function.name)
        if len(joined) == 1:
            return
        made = _passing(made)
        fuse = Site(
            "fuse", f"fuse {', '.join(joined[:-1])} and {joined[-1]} into one kernel",
            lambda: made, round(1 - 0.3 / len(joined), 2) if _fills(made) else 0.3,
            Hypothesis(TIME, "lower", "what passes between them stays in registers",
                       (1.2, float(len(joined)) + 1)),
            arithmetic=("the rounding of products",) if arithmetic else (),
            joined=tuple(joined[1:]),
        )  # fmt: skip
        own = [*_own(fuse, made)]
        # What lasts from one loop to the next in memory goes there as often as before.
        yield replace(fuse, prior=min(fuse.prior, _SCRATCH)) if own else fuse
        yield from own
        yield from _with(_SUM, *(own or [fuse])[:1])
        yield from _with(_PRODUCT, fuse)


def _products_apart(one: Kernel, other: Kernel, both: Kernel) -> bool:
    """Whether each of two launches is a product, and these have no row in common.

    Tiles are made of one product, which the other would be in the way of.
    """
    return bool(_products(one) and _products(other)) and _products(_PRODUCT.shaped(both)) > 1


def _products(kernel: Kernel) -> int:
    return sum(combining(kernel, loop) for loop in loops_in(kernel.function.body))


def _passing(made: Kernel) -> Kernel:
    """The kernel where what one of its loops leaves for the same round of the next is a local."""
    plain = where_legal(localised, made, single=True)
    both = alongside(all_simple(plain))
    while isinstance(both, Kernel):
        found = localised(both, single=True)
        if isinstance(found, Kernel):
            return _passing(where_legal(scoped, found))
        both = alongside(both)
    return where_legal(scoped, plain) if plain is not made else made


def _own(fuse: Site, made: Kernel) -> Iterator[Site]:
    """What passes from the loop of one to that of the next, element by element, in registers."""
    for site in own_in_registers(made):
        if isinstance(site, Site):
            yield replace(
                site, key=f"fuse {site.key}", title=f"{fuse.title}; {site.title}",
                arithmetic=fuse.arithmetic, joined=fuse.joined,
            )  # fmt: skip


def _with(rule: KernelRule, fuse: Site) -> Iterator[Site]:
    """What a rule makes of the fused kernel.

    The tiles of a product whose outputs are finished as they are stored, a sum of what all its
    threads add to one place.
    """
    made = fuse.apply()
    try:
        found = [*rule.sites(rule.shaped(made))] if isinstance(made, Kernel) else []
    except NotLegal:  # which the rule says itself, once this is one kernel
        return
    for site in found:
        if isinstance(site, Site):
            more = tuple(dict.fromkeys((*fuse.arithmetic, *site.arithmetic)))
            yield replace(
                site, key=f"{fuse.key} {site.key}", title=f"{fuse.title}; {site.title}",
                prior=min(1.0, round(max(fuse.prior, site.prior) + _BEFORE, 2)),
                arithmetic=more, joined=fuse.joined, points=_both(fuse.points, site.points),
            )  # fmt: skip


def _both(some: tuple[Point, ...], more: tuple[Point, ...]) -> tuple[Point, ...]:
    """Points of two steps as those of both; what either does not say stays as it begins."""
    return tuple({**a, **b} for b in more[:1] for a in some) + tuple(
        {**a, **b} for b in more[1:] for a in some[:1]
    )


def _fills(kernel: Kernel) -> bool:
    """Whether its threads are many, or none of them has a loop that others could share."""
    count, chip = threads(kernel), CHIPS.get(kernel.chip)
    few = count is not None and chip is not None and count < _RESIDENT * chip.sms // 2
    return not few or not loops_in(kernel.function.body)
