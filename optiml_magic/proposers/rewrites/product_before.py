"""Several results of a product for each thread: a launch before, of which tiles may be made."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import partial

from optiml_magic.kernels.primitives.alongside import products_alongside
from optiml_magic.kernels.primitives.base import Kernel, NotLegal, Refused
from optiml_magic.kernels.primitives.beforehand import beforehand, works
from optiml_magic.kernels.primitives.chunks import front
from optiml_magic.kernels.primitives.effects import loops_in
from optiml_magic.kernels.primitives.operands import combining
from optiml_magic.kernels.primitives.raised import raised, rows_left
from optiml_magic.kernels.primitives.recomputed import found_again
from optiml_magic.kernels.tree import Loop
from optiml_magic.model.hypothesis import TIME, Hypothesis
from optiml_magic.proposers.rewrites.compute_once import (
    LARGEST,
    ComputeOnce,
    items_of,
    products,
    rounds_of,
)
from optiml_magic.proposers.rewrites.kernel_rule import KernelRule, Site, spelled

_LONG = 16  # rounds for a result, below which it costs more to keep than to find: ours
_ROUNDED = "the rounding of products"
_TILES = Hypothesis(TIME, "lower", "tiles are loaded once for many results", (1.5, 64.0))


class ProductBefore(KernelRule):
    """A gate, or the nearest of some centres: a thread an item, a loop over its scores.

    And steps of recurrent networks, which add up a product of the input and one of the state.
    """

    name = "product_before"
    before = (*ComputeOnce.before, products_alongside)
    teaches = (
        "Each thread went through a row of its own once for each of several results, such as the "
        "scores of an item, and did something with them then. A launch before finds these alone, "
        "as a product of tiles in shared memory, in which a row and a column are loaded once for "
        "many results. The kernel loads what was found."
    )

    def sites(self, kernel: Kernel) -> Iterator[Site | Refused]:
        block, alone = kernel, kernel
        if kernel.reading.barriers:
            raised_ = raised(kernel, rows=True)
            if isinstance(raised_, Refused):
                return
            alone = raised_
            kernel = found_again(alone.shaped(self.before))
        try:
            finder, found = works(kernel, apart=True)
        except NotLegal:
            return
        for at, work in enumerate(found):
            loops = [loop for s in work.statements for loop in loops_in(s)]
            if work.dropped or not loops:
                continue
            within = any(isinstance(part, Loop) for part in work.path)
            if not within and not any(combining(kernel, loop) for loop in loops):
                continue
            if kernel.facts is not None:
                sizes = [items_of(kernel, finder, one) for one in work.kept]
                kept = math.prod(size or LARGEST + 1 for size in sizes) * len(work.results)
                if kept > LARGEST or rounds_of(kernel, finder, work.statements) < _LONG:
                    continue
            made = beforehand(kernel, at, apart=True)
            if isinstance(made, Refused):
                continue
            made = found_again(made) if alone is not block else made
            if rows_left(block, alone, made):
                continue
            names = ", ".join(v.name for v in work.results)
            tiled = products(front(made))
            for site in [*_both(made, tiled), *tiled]:
                yield replace(
                    site,
                    key=f"apart {at} {site.key}",
                    title=f"compute {names} in a launch before, by {site.title}",
                    arithmetic=tuple(dict.fromkeys((_ROUNDED, *site.arithmetic))),
                    hypothesis=_TILES,
                )
            if tiled:
                return


def _both(made: Kernel, tiled: Sequence[Site]) -> Iterator[Site]:
    """Tiles for the launch before and for what is left, of kernels that add up two products."""
    for site in tiled:
        first = site.apply()
        if isinstance(first, Refused):
            continue
        left = _left(made, first)
        more = max(products(left), key=lambda s: s.prior, default=None)
        if more is None:
            return
        points = (
            {**own, **spelled(left, other)}
            for own, other in zip(site.points, more.points, strict=False)
        )
        yield replace(
            site,
            key=f"both {site.key}",
            title=f"{site.title}, then {more.title}",
            apply=partial(_each, made, site.apply, more.key),
            points=tuple(points),
            arithmetic=(*site.arithmetic, *more.arithmetic),
        )
        return


def _each(made: Kernel, first: Callable[[], Kernel | Refused], key: str) -> Kernel | Refused:
    """What is left of a kernel in tiles, behind what a site made of the launch before."""
    done = first()
    if isinstance(done, Refused):
        return done
    return next(s for s in products(_left(made, done)) if s.key == key).apply()


def _left(made: Kernel, first: Kernel) -> Kernel:
    """The kernel itself in the program where its launch before has become another."""
    launch = next(d for d in first.program.launches if str(d) == str(made.launch))
    return replace(made, program=first.program, launch=launch)
