"""Strides and dilations as numbers, for rules of windows that find nothing otherwise."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from optiml_magic.kernels.primitives.base import Kernel, Refused
from optiml_magic.kernels.primitives.sized import multipliers, sized
from optiml_magic.proposers.rewrites.kernel_rule import Site

_MOST = 8  # of a stride or a dilation: ours


def with_multipliers(
    kernel: Kernel, sites: Callable[[Kernel], Iterator[Site | Refused]]
) -> Iterator[Site | Refused]:
    """The sites of a kernel, or where it has none of that with its small multipliers known."""
    found = [*sites(kernel)]
    if not any(isinstance(one, Site) for one in found):
        known = multipliers(kernel, _MOST)
        made = sized(kernel, known) if known else None
        more = [*sites(made)] if isinstance(made, Kernel) else []
        found = more if any(isinstance(one, Site) for one in more) else found
    yield from found
