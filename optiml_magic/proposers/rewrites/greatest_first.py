"""Sums that are scaled anew as a greater value comes: first that value, then the sums."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from optiml_magic.kernels.primitives.accumulating import in_register
from optiml_magic.kernels.primitives.base import Kernel, Refused, where_legal
from optiml_magic.kernels.primitives.counted import as_counted
from optiml_magic.kernels.primitives.direct import direct, in_full
from optiml_magic.kernels.primitives.effects import loops_in
from optiml_magic.kernels.primitives.opened import opened
from optiml_magic.kernels.primitives.raised import raised
from optiml_magic.kernels.primitives.shaped import linear, planar
from optiml_magic.kernels.primitives.unnested import unnested
from optiml_magic.kernels.primitives.unscaled import unscaled
from optiml_magic.kernels.primitives.unstrided import unstrided
from optiml_magic.model.hypothesis import TIME, Hypothesis
from optiml_magic.proposers.rewrites.kernel_rule import KernelRule, Site
from optiml_magic.proposers.rewrites.one_pass import sites_of
from optiml_magic.proposers.rewrites.read_once import ReadOnce
from optiml_magic.proposers.rewrites.row_to_lanes import RowToLanes

_EXPECTED = Hypothesis(TIME, "lower", "lanes share rounds that waited for each other", (1.5, 32.0))
_SHARING = (ReadOnce(), RowToLanes())
_MORE = 0.03  # of a chance, by which two loops that are shared come before one that is not


class GreatestFirst(KernelRule):
    """Online softmax: the greatest value so far, and sums of exponentials around it."""

    name = "greatest_first"
    before = (raised, unstrided, linear, planar, in_full, direct, in_register, opened, unnested)
    teaches = (
        "Each round scaled the sum anew by how far the greatest value had grown, so that a row was "
        "read once; but then every round waits for the one before, with two exponentials in "
        "between, and no lanes can share them. A first loop that finds the greatest value, and a "
        "second that sums around it, are shared by lanes, which keep the row in registers: it is "
        "read once as well."
    )

    def sites(self, kernel: Kernel) -> Iterator[Site | Refused]:
        split = unscaled(kernel)
        if isinstance(split, Refused) and split.line:
            plain = kernel
            for number in range(len(loops_in(kernel.function.body))):
                plain = where_legal(as_counted, plain, number)
            split = unscaled(plain)
        if isinstance(split, Refused):
            if split.line:
                yield split
            return
        while isinstance(more := unscaled(split), Kernel):
            split = more
        shared = [site for rule in _SHARING for site in sites_of(rule, split)]
        own = ("how sums of exponentials are scaled", *split.arithmetic)
        title = "the greatest value before the sums around it"
        for site in shared:
            arithmetic = tuple(dict.fromkeys((*own, *site.arithmetic)))
            yield replace(
                site, key=f"first {site.key}", title=f"{title}; {site.title}",
                hypothesis=_EXPECTED, prior=site.prior + _MORE, arithmetic=arithmetic,
            )  # fmt: skip
