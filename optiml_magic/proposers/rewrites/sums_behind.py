"""Items that a thread takes together, where all threads add to one place: their block does once."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from functools import partial

from optiml_magic.kernels.primitives.base import Kernel, Refused, in_turn, where_legal
from optiml_magic.kernels.primitives.collected import collected
from optiml_magic.kernels.primitives.endings import enclosed
from optiml_magic.kernels.primitives.gathered import gathered, in_whole_warps, sums
from optiml_magic.kernels.primitives.updates import leaves
from optiml_magic.proposers.rewrites.kernel_rule import Site

_SURER = 0.1  # by which it is likelier than items without such sums: ours


def with_sums(kernel: Kernel, sites: Iterable[Site | Refused]) -> Iterator[Site | Refused]:
    """The sites, whose threads add up what all of them update in one place.

    Updates of one place are done one after the other, and hide what items gain.
    """
    found, _ = sums(kernel)
    arrays = ", ".join(dict.fromkeys(one.whole.array for one in found))
    rounds = () if all(one.whole.exact for one in found) else ("the order of additions",)
    for site in sites:
        if isinstance(site, Refused) or not found:
            yield site
            continue
        yield replace(
            site,
            key=f"{site.key}, sums",
            title=f"{site.title}, and add up in a block what they update in {arrays}",
            apply=partial(_added_up, site.apply),
            prior=round(min(0.9, site.prior + _SURER), 2),
            arithmetic=tuple(dict.fromkeys((*site.arithmetic, *rounds))),
        )


def _added_up(apply: Callable[[], Kernel | Refused]) -> Kernel | Refused:
    made = apply()
    if isinstance(made, Refused):
        return made
    made = where_legal(collected, made)
    made = where_legal(enclosed, made) if leaves(made.function.body) else made
    whole = gathered(made)
    return whole if isinstance(whole, Kernel) else in_turn(made, (in_whole_warps, gathered))
