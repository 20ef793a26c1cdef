"""Launches one behind the other whose threads have the same items, as one kernel."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from optiml_magic.chips import CHIPS
from optiml_magic.kernels.primitives.base import Kernel, Refused
from optiml_magic.kernels.primitives.effects import loops_in
from optiml_magic.kernels.primitives.fused import fused
from optiml_magic.kernels.primitives.paired import rounds
from optiml_magic.kernels.primitives.sizes import threads
from optiml_magic.model.hypothesis import TIME, Hypothesis
from optiml_magic.proposers.rewrites.blocked_product import BlockedProduct
from optiml_magic.proposers.rewrites.kernel_rule import KernelRule, Site

_PRODUCT = BlockedProduct()
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
            if isinstance(again, Refused):
                if len(joined) == 1:
                    yield again
                break
            arithmetic = arithmetic or rounds(made)
            made = again
            joined.append(last.launch.kernel or last.function.name)
        if len(joined) == 1:
            return
        fuse = Site(
            "fuse", f"fuse {', '.join(joined[:-1])} and {joined[-1]} into one kernel",
            lambda: made, round(1 - 0.3 / len(joined), 2) if _fills(made) else 0.3,
            Hypothesis(TIME, "lower", "what passes between them stays in registers",
                       (1.2, float(len(joined)) + 1)),
            arithmetic=("the rounding of products",) if arithmetic else (),
            joined=tuple(joined[1:]),
        )  # fmt: skip
        yield fuse
        yield from _tiled(fuse, made)


def _tiled(fuse: Site, made: Kernel) -> Iterator[Site]:
    """The tiles of a product whose outputs are finished as they are stored."""
    for site in _PRODUCT.sites(_PRODUCT.shaped(made)):
        if isinstance(site, Site):
            more = tuple(dict.fromkeys((*fuse.arithmetic, *site.arithmetic)))
            yield replace(
                site, key=f"fuse {site.key}", title=f"{fuse.title}; {site.title}",
                prior=max(fuse.prior, site.prior), arithmetic=more, joined=fuse.joined,
            )  # fmt: skip


def _fills(kernel: Kernel) -> bool:
    """Whether its threads are many, or none of them has a loop that others could share."""
    count, chip = threads(kernel), CHIPS.get(kernel.chip)
    few = count is not None and chip is not None and count < _RESIDENT * chip.sms // 2
    return not few or not loops_in(kernel.function.body)
