"""Strides and dilations as numbers, for rules of windows that find less otherwise."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from optiml_magic.kernels.primitives.base import Kernel, Refused
from optiml_magic.kernels.primitives.sized import multipliers, sized
from optiml_magic.proposers.rewrites.kernel_rule import Site

_MOST = 8  # of a stride or a dilation: ours


def with_multipliers(
    kernel: Kernel, sites: Callable[[Kernel], Iterator[Site | Refused]]
) -> Iterator[Site | Refused]:
    """The sites of a kernel, and those that it has with its small multipliers known alone."""
    found = [*sites(kernel)]
    keys = {one.key for one in found if isinstance(one, Site)}
    known = multipliers(kernel, _MOST)
    made = sized(kernel, known) if known else None
    more = [s for s in sites(made) if isinstance(s, Site)] if isinstance(made, Kernel) else []
    yield from found if keys or not more else ()
    yield from (site for site in more if site.key not in keys)
