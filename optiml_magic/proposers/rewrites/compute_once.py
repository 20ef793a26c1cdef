"""What many threads compute alike, such as scores for each channel: once, in a launch before."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from functools import partial

from optiml_magic.chips import CHIPS
from optiml_magic.kernels.primitives.base import Kernel, NotLegal, Refused, where_legal
from optiml_magic.kernels.primitives.beforehand import beforehand, rounding, works
from optiml_magic.kernels.primitives.direct import direct, in_full
from optiml_magic.kernels.primitives.distributed import distributed
from optiml_magic.kernels.primitives.effects import loops_in
from optiml_magic.kernels.primitives.evenly import evenly
from optiml_magic.kernels.primitives.floored import floored
from optiml_magic.kernels.primitives.once_a_row import once_a_column, once_a_row
from optiml_magic.kernels.primitives.one_place import one_place
from optiml_magic.kernels.primitives.opened import opened
from optiml_magic.kernels.primitives.plain import PLAIN
from optiml_magic.kernels.primitives.pruned import pruned
from optiml_magic.kernels.primitives.scoped import scoped
from optiml_magic.kernels.primitives.set_apart import set_apart
from optiml_magic.kernels.primitives.shaped import planar
from optiml_magic.kernels.primitives.sines_apart import sines_apart
from optiml_magic.kernels.primitives.sizes import most_rounds, value
from optiml_magic.kernels.primitives.unravelled import unravelled
from optiml_magic.kernels.primitives.unravelled_planes import unravelled_planes
from optiml_magic.kernels.primitives.unscaled import unscaled
from optiml_magic.kernels.primitives.works import Common, Finder, One
from optiml_magic.kernels.tree import Loop, Statement
from optiml_magic.model.hypothesis import TIME, Hypothesis
from optiml_magic.proposers.rewrites.blocked_product import BlockedProduct
from optiml_magic.proposers.rewrites.kernel_rule import KernelRule, Site
from optiml_magic.proposers.rewrites.tabulate_weights import short_counted

_FEW = 8  # rounds that each thread may as well make for itself: ours
_MANY = 64  # the same, of what is alike for all threads, so that one makes them: ours
_COLUMNS = 0.975  # the chance of threads that do the work and all that asks for it: ours
_FULL = 8  # columns for each warp that a chip has room for, from which they keep it busy: ours
_ALIKE = 8  # threads, or rounds around, that compute one thing, below which each may: ours
LARGEST = 2**28  # results that are kept, a gigabyte of floats: ours
_LOOPS, _FUNCTIONS = 0.97, 0.75  # the chances where loops, or functions alone, are saved: ours
_ONCE = Hypothesis(TIME, "lower", "what threads computed alike is computed once", (1.5, 64.0))
_LAUNCHES = 4  # that are put in front of a kernel: ours


class ComputeOnce(KernelRule):
    """Attention by a thread an output: scores, greatest scores and their sums."""

    name = "compute_once"
    before = (
        sines_apart, scoped, *PLAIN, planar, in_full, direct, opened, unscaled, one_place, evenly,
        unravelled, unravelled_planes, floored, short_counted, set_apart, distributed,
    )  # fmt: skip
    teaches = (
        "A loop depended on some of the indices of its thread alone, so that threads that differ "
        "in the others made the same rounds, each for itself: every channel of an attention found "
        "all scores of its query. A launch before makes them once, with a thread for each of what "
        "they depend on, and keeps the results in memory, where the kernel loads them. What is "
        "left are plain products and reductions, which other rules make fast."
    )

    def sites(self, kernel: Kernel) -> Iterator[Site | Refused]:
        try:
            finder, found = works(kernel)
        except NotLegal:
            return
        chosen = next((w for w in found if _is_worth(kernel, finder, w)), None)
        if chosen is None:
            return
        of_a_row = chosen.kept and _of_a_row(kernel, finder, chosen)
        if of_a_row and isinstance(once_a_row(kernel), Kernel):
            return  # a row's threads share it; what several rows have alike is made before
        made = _apply(kernel)
        if isinstance(made, Refused):
            yield made
            return
        names = ", ".join(v.name for v in chosen.results)
        if "x" in chosen.kept and chosen.dropped == ("y",):
            columns = [items_of(kernel, finder, one) or 0 for one in chosen.kept]
            yield from _by_columns(kernel, names, math.prod(columns))
        title = f"compute {names} in a launch before, once for all threads that ask for it"
        rounded = any(not _loops(work) or rounding(kernel, work) for work in found)
        said = ("the rounding of products",) * rounded
        likely = _LOOPS if _loops(chosen) else _FUNCTIONS
        tiled = next(iter(products(made)), None)
        if tiled is not None:
            arithmetic = tuple(dict.fromkeys((*said, *tiled.arithmetic)))
            yield Site(
                "product", f"{title}, then {tiled.title}", tiled.apply, _LOOPS, _ONCE,
                tiled.points, arithmetic,
            )  # fmt: skip
            likely = min(likely, tiled.prior)
        yield Site("once", title, partial(_apply, kernel), likely, _ONCE, arithmetic=said)


def _by_columns(kernel: Kernel, names: str, columns: int) -> Iterator[Site]:
    """A thread for each column, which goes down along it behind what its elements have alike."""
    chip = CHIPS.get(kernel.chip)
    few = chip is not None and columns < _FULL * chip.sms * chip.warps_per_sm
    if not isinstance(once_a_column(kernel), Refused):
        yield Site(
            "column", f"a thread for each column, which computes {names} once",
            partial(once_a_column, kernel), _FUNCTIONS if few else _COLUMNS, _ONCE,
        )  # fmt: skip


def products(made: Kernel) -> list[Site]:
    """A kernel as a product of tiles, where it is one: what is left of a transform of many rows."""
    rule = BlockedProduct()
    try:
        sites = [*rule.sites(rule.shaped(made))]
    except NotLegal:
        return []
    return [site for site in sites if isinstance(site, Site)]


def _apply(kernel: Kernel) -> Kernel | Refused:
    """With a launch for each such work, as long as there is some."""
    made, refused = kernel, Refused("there is nothing that threads compute alike")
    for _ in range(_LAUNCHES):
        step = _step(made)
        if isinstance(step, Refused):
            refused = step
            break
        made = step
    return refused if made is kernel else made


def _step(kernel: Kernel) -> Kernel | Refused:
    try:
        finder, found = works(kernel)
    except NotLegal as reason:
        return Refused(reason.reason, reason.line)
    refused = Refused("there is nothing that threads compute alike")
    for at, work in enumerate(found):
        if _is_worth(kernel, finder, work):
            made = beforehand(kernel, at)
            if isinstance(made, Kernel):
                return where_legal(pruned, made)
            refused = made
    return refused


def _is_worth(kernel: Kernel, finder: Finder, work: Common) -> bool:
    """Whether enough is computed, often enough, and what is kept of it has room."""
    if not _loops(work) and not any(isinstance(one, str) for one in work.dropped):
        return False  # what rounds alone have in common is computed before them
    if kernel.facts is None:
        return True
    sizes = [items_of(kernel, finder, one) for one in work.kept]
    alike = [items_of(kernel, finder, one) for one in work.dropped]
    if None in sizes or None in alike:
        return False
    kept = math.prod(size or 0 for size in sizes) * len(work.results)
    fewer = math.prod(size or 0 for size in alike)
    long = any(map(finder.is_long, work.statements))
    least = _FEW if work.kept else _MANY
    long = long or rounds_of(kernel, finder, work.statements) >= least
    return long and fewer >= _ALIKE and kept <= LARGEST


def _of_a_row(kernel: Kernel, finder: Finder, work: Common) -> bool:
    """Whether the threads of one row alone compute it alike, and not those of several rows."""
    return all(items_of(kernel, finder, one) == 1 for one in work.dropped if one != "x")


def _loops(work: Common) -> bool:
    return any(loops_in(statement) for statement in work.statements)


def items_of(kernel: Kernel, finder: Finder, one: One) -> int | None:
    """How many items there are along an axis, or of a loop or a local, at the measured sizes."""
    most = most_rounds(kernel, finder.axes[one]) if isinstance(one, Loop) else None
    if most is not None:
        return most
    try:
        return value(kernel, finder.count(one))
    except NotLegal:
        return None


def rounds_of(kernel: Kernel, finder: Finder, statements: Sequence[Statement]) -> int:
    """How many rounds the longest of the loops in statements have, with those in it."""
    most = 1
    axes = {axis.node: axis for axis in kernel.reading.axes}
    for statement in statements:
        loops = loops_in(statement) or finder.called_loops(statement)
        if loops:
            first = loops[0]
            own = most_rounds(kernel, axes[first]) if first in axes else None
            inner = rounds_of(kernel, finder, [first.body]) if len(loops) > 1 else 1
            most = max(most, (_FEW if own is None else own) * inner)
    return most
