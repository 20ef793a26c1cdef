"""Maps before reductions and stencils, or behind: computed where they are asked for."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from optiml_magic.kernels.primitives.base import Kernel, Refused
from optiml_magic.kernels.primitives.fused import fused, fused_rows
from optiml_magic.kernels.primitives.inlined import inlined
from optiml_magic.kernels.primitives.inlined_planes import inlined_planes
from optiml_magic.kernels.primitives.paired import asked, rounds
from optiml_magic.model.hypothesis import TIME, Hypothesis
from optiml_magic.proposers.rewrites.kernel_rule import KernelRule, Site
from optiml_magic.proposers.rewrites.read_once import ReadOnce
from optiml_magic.proposers.rewrites.row_to_lanes import RowToLanes
from optiml_magic.proposers.rewrites.share_loads import ShareLoads

_EXPECTED = Hypothesis(TIME, "lower", "an array is neither written nor read", (1.2, 4.0))
_OFTEN = 16  # times that each element is asked for, up to which to compute it anew is cheap: ours
_AGAIN = 0.3  # the chance where it is more often, as of channels that filters combine: ours
_LANES, _KEPT, _SHARED = RowToLanes(), ReadOnce(), ShareLoads()


class FuseMapReduce(KernelRule):
    """Squares, then their sums; a blurred image, then its edges; norms, then what is scaled."""

    name = "fuse_map_reduce"
    teaches = (
        "One launch computed an array, stored it, and the next one read it back. What is computed "
        "from a few elements costs less than a round trip through memory: the next launch computes "
        "it where it asks for it. Of an image whose neighbours it asks for, as one blur does after "
        "another, a thread takes several pixels and computes once what these have in common. "
        "Where one of both reduces rows, the lanes that share a row do for it what the other "
        "launch did, and what passes between them stays on the chip."
    )

    def sites(self, kernel: Kernel) -> Iterator[Site | Refused]:
        made, joined = kernel, [kernel.launch.kernel or kernel.function.name]
        arithmetic: tuple[str, ...] = ()
        ways, often = set[str](), 1.0
        while made.behind is not None:
            last, rounding, often = made.behind, rounds(made), max(often, asked(made))
            again, way = _joined(made)
            if isinstance(again, Refused):
                if len(joined) == 1:
                    yield again
                break
            made = again
            ways.add(way)
            arithmetic = ("the rounding of products",) if rounding else arithmetic
            joined.append(last.launch.kernel or last.function.name)
        before, behind = ", ".join(joined[:-1]), tuple(joined[1:])
        if "rows" in ways:
            title = f"fuse {before} and {joined[-1]} by rows"
            for found in _by_rules((_KEPT, _LANES), made, title, arithmetic):
                yield found if isinstance(found, Refused) else replace(found, joined=behind)
        elif "planes" in ways:
            title = f"compute what {before} stored within {joined[-1]}"
            for found in _by_rules((_SHARED,), made, title, arithmetic):
                yield found if isinstance(found, Refused) else replace(found, joined=behind)
        elif "inline" in ways:
            title = f"compute what {before} stored within {joined[-1]}"
            yield Site(
                "inline", title, lambda: made, 0.8 if often <= _OFTEN else _AGAIN, _EXPECTED,
                arithmetic=arithmetic, joined=behind,
            )  # fmt: skip


def _joined(kernel: Kernel) -> tuple[Kernel | Refused, str]:
    """A kernel and the one behind it as one, and in which way."""
    made = fused(kernel)
    if isinstance(made, Kernel):
        return made, "items"
    planes = inlined_planes(kernel)
    if isinstance(planes, Kernel):
        return planes, "planes"
    made = inlined(kernel)
    if isinstance(made, Kernel):
        return made, "inline"
    by_rows = fused_rows(kernel)
    return (by_rows, "rows") if isinstance(by_rows, Kernel) else (made, "")


def _by_rules(
    rules: tuple[KernelRule, ...], made: Kernel, title: str, arithmetic: tuple[str, ...]
) -> Iterator[Site | Refused]:
    """What is made, with lanes that share its rows, and keep them where they read them twice.

    Without lanes each thread would walk a row of its own. What neighbours would both compute, a
    thread that takes both computes once.
    """
    for rule in rules:
        for site in rule.sites(rule.shaped(made)):
            if isinstance(site, Refused):
                yield site
                continue
            more = tuple(dict.fromkeys((*arithmetic, *site.arithmetic)))
            yield replace(
                site, title=f"{title}; {site.title}", hypothesis=_EXPECTED, arithmetic=more
            )
