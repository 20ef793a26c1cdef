"""Loads of what is read once, so that caches let go of it first."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from optiml_magic.chips import CHIPS
from optiml_magic.kernels.primitives.base import Kernel, Refused
from optiml_magic.kernels.primitives.streamed import read_once, streamed
from optiml_magic.model.hypothesis import Hypothesis
from optiml_magic.proposers.rewrites.kernel_rule import KernelRule, Site

_SHARE = 0.5  # of the L2 from which an array is not there any more when it is asked for again: ours


class StreamOnce(KernelRule):
    """``a[i]`` becomes ``__ldcs(&a[i])``."""

    name = "stream_once"
    teaches = (
        "Each line that is loaded takes the place of another one in the caches. Of an array that "
        "is larger than the L2 and read once, none is asked for again, so its lines push out what "
        "others need, and what was written has to go to memory to make room. Loads that say so "
        "are the first to be let go of."
    )

    def sites(self, kernel: Kernel) -> Iterator[Site | Refused]:
        chip = CHIPS.get(kernel.chip)
        found = read_once(kernel, int(_SHARE * chip.l2_bytes)) if chip is not None else ()
        if not found:
            return
        names = ", ".join(found)
        yield Site(
            "stream", f"let the caches go of {names} first, read once",
            partial(streamed, kernel, found), 0.32,
            Hypothesis(
                "dram__bytes.sum", "lower", "nothing is pushed out that is still needed", (1.0, 1.3)
            ),
        )  # fmt: skip
