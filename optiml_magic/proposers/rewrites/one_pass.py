"""A mean and then what lies around it, of one launch or of two: from sums of the first loop."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from optiml_magic.kernels.primitives.accumulating import in_register
from optiml_magic.kernels.primitives.base import Kernel, NotLegal, Refused, where_legal
from optiml_magic.kernels.primitives.branched import branched
from optiml_magic.kernels.primitives.direct import direct, in_full
from optiml_magic.kernels.primitives.effects import loops_in
from optiml_magic.kernels.primitives.fused import fused
from optiml_magic.kernels.primitives.moments import one_pass
from optiml_magic.kernels.primitives.opened import opened
from optiml_magic.kernels.primitives.paired import rounds
from optiml_magic.kernels.primitives.raised import raised
from optiml_magic.kernels.primitives.shaped import linear, planar
from optiml_magic.kernels.primitives.unnested import unnested
from optiml_magic.kernels.primitives.welford import welford
from optiml_magic.model.hypothesis import TIME, Hypothesis
from optiml_magic.proposers.rewrites.kernel_rule import KernelRule, Site
from optiml_magic.proposers.rewrites.row_to_lanes import RowToLanes
from optiml_magic.proposers.rewrites.split_reduction import SplitReduction

_EXPECTED = Hypothesis(TIME, "lower", "what two loops read is read once", (1.2, 32.0))
_SHARING = (RowToLanes(), SplitReduction())
_MORE = 0.03  # of a chance, by which one loop that is shared comes before two


class OnePass(KernelRule):
    """Variances in two loops, or in two kernels."""

    name = "one_pass"
    teaches = (
        "A loop found the mean, and another read everything again to add up the squares around it. "
        "The first loop can add up squares around any value it knows already, such as the first "
        "element, and the sum around the mean follows from that by arithmetic: all is read once. "
        "Several threads then share the one loop that is left."
    )

    def sites(self, kernel: Kernel) -> Iterator[Site | Refused]:
        if not loops_in(kernel.function.body):
            return
        made = _shaped(kernel)
        alone = one_pass(made)
        if isinstance(alone, Kernel):
            yield from _sites(alone, "one pass for sums and the squares around them", (), ())
        elif alone.line:
            yield alone
        last = kernel.behind
        looping = last is not None and loops_in(last.function.body)
        both = fused(kernel) if looping else None
        if last is None or not isinstance(both, Kernel) or isinstance(alone, Kernel):
            return
        joined = one_pass(_shaped(both))
        if isinstance(joined, Kernel):
            name = last.launch.kernel or last.function.name
            title = f"one pass for {kernel.launch.kernel or kernel.function.name} and {name}"
            rounding = ("the rounding of products",) if rounds(kernel) else ()
            yield from _sites(joined, title, (name,), rounding)
        elif joined.line:  # a line of what both became
            yield Refused(joined.reason, last.function.line)


def _shaped(kernel: Kernel) -> Kernel:
    for step in (
        raised, linear, planar, in_full, direct, branched, in_register, opened, unnested, welford,
    ):  # fmt: skip
        kernel = where_legal(step, kernel)
    return kernel


def _sites(
    made: Kernel, title: str, joined: tuple[str, ...], arithmetic: tuple[str, ...]
) -> Iterator[Site]:
    """What is made, shared as a rule shares it that applies; else as it is."""
    while isinstance(again := one_pass(made), Kernel):
        made = again
    changes = ("how sums of squares are made", *arithmetic)
    shared = [site for rule in _SHARING for site in sites_of(rule, made)]
    for site in shared:
        more = tuple(dict.fromkeys((*changes, *site.arithmetic)))
        yield replace(
            site, key=f"one {site.key}", title=f"{title}; {site.title}", hypothesis=_EXPECTED,
            prior=site.prior + _MORE, arithmetic=more, joined=joined,
        )  # fmt: skip
    if not shared:
        yield Site("one", title, lambda: made, 0.6, _EXPECTED, arithmetic=changes, joined=joined)


def sites_of(rule: KernelRule, made: Kernel) -> list[Site]:
    """Where another rule applies to what a step made; nowhere if it refuses all of it."""
    try:
        return [site for site in rule.sites(rule.shaped(made)) if isinstance(site, Site)]
    except NotLegal:
        return []
