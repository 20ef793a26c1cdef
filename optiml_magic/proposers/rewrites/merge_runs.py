"""Atomic operations of neighbouring items on one element, as one."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import partial

from optiml_magic.kernels.primitives.base import Kernel, NotLegal, Refused, kernels, where_legal
from optiml_magic.kernels.primitives.behind import behind, columns
from optiml_magic.kernels.primitives.direct import in_full
from optiml_magic.kernels.primitives.pulled import pulled
from optiml_magic.kernels.primitives.raised import raised
from optiml_magic.kernels.primitives.runs import in_runs, one_run, runs
from optiml_magic.kernels.primitives.shaped import linear
from optiml_magic.kernels.primitives.stopped import stopped
from optiml_magic.kernels.primitives.unravelled import unravelled
from optiml_magic.kernels.primitives.unstrided import unstrided
from optiml_magic.kernels.primitives.updates import Updated
from optiml_magic.model.hypothesis import Hypothesis
from optiml_magic.proposers.rewrites.kernel_rule import KernelRule, Site
from optiml_magic.proposers.rewrites.one_pass import sites_of
from optiml_magic.proposers.rewrites.row_to_lanes import RowToLanes

_ATOMICS = "l1tex__t_sectors_pipe_lsu_mem_global_op_red.sum"
_SHORT, _LONG = (8, 16, 4), (32, 64, 16)  # items of a thread: ours
_LIKELY, _UNKNOWN = 0.84, 0.5
#: Items in a row that update one element in the mean, at least, and how likely runs are then: ours.
_IN_A_ROW = ((4.0, _LIKELY), (2.0, 0.6), (0.0, 0.15))


class MergeRuns(KernelRule):
    """Elements of a sparse matrix, edges of a graph, sorted by what they update; columns' sums."""

    name = "merge_runs"
    before = (stopped, unstrided, linear, in_full, unravelled)
    teaches = (
        "Items that lie side by side often update the same element, where they are sorted by it: "
        "the elements of a row of a sparse matrix, the edges into a node. An atomic operation each "
        "is done one after the other. A thread that takes several neighbours adds them up in a "
        "register for as long as the element stays the same, and updates it once for all of them; "
        "all their loads are under way before that. Items in no order gain nothing by it. Where "
        "no data say which element it is, each element has a thread that adds up all for it."
    )

    def sites(self, kernel: Kernel) -> Iterator[Site | Refused]:
        if any(a.mode == "atomic" and a.loops for a in kernel.reading.accesses):
            yield from _behind(kernel)
            made = pulled(kernel)
            if isinstance(made, Kernel):
                yield Site(
                    "pull",
                    "add up in a thread for each element what others added to it",
                    partial(pulled, kernel), 0.8,
                    Hypothesis(_ATOMICS, "lower", "one operation for each element", (1.1, 1e6)),
                    arithmetic=made.arithmetic,
                )  # fmt: skip
        if not any(a.mode == "atomic" and not a.loops for a in kernel.reading.accesses):
            return
        refused = list[Refused]()
        for axis, width in zip("yxz", (kernel.block[1], *kernel.block[::2]), strict=True):
            if width is None or (axis != "x" and not _has(kernel, axis)):
                continue
            try:
                found = runs(kernel, axis)
            except NotLegal as reason:
                refused.append(Refused(reason.reason, reason.line))
                continue
            arrays = ", ".join(one.array for one in found)
            alike = one_run(kernel, axis)
            exact = all(one.exact for one in found)
            yield Site(
                axis,
                f"add up what neighbours along {axis} update in {arrays}, one after the other",
                partial(in_runs, kernel, axis),
                0.95 if alike else _chance(kernel, found),
                Hypothesis(_ATOMICS, "lower", "one operation for a run of items", (1.1, 32.0)),
                tuple({"ITEMS": items} for items in (_LONG if alike else _SHORT)),
                () if exact else ("the order of additions",),
            )
            return
        yield from refused[:1]


def _chance(kernel: Kernel, found: Sequence[Updated]) -> float:
    """How likely runs are longer than an item, by the inputs that say where each one goes.

    A form of one or several of these is as long the same as the one that changes most often.
    """
    table, inside = kernel.reading.symbols.table, kernel.reading.symbols.inside
    forms = [u.access.index for one in found for u in one.updates if u.access.index is not None]
    loads = {table[n].array for form in forms for n in inside(form) if table[n].kind == "load"}
    arrays = kernel.facts.arrays if kernel.facts is not None else {}
    known = [arrays[array].alike for array in loads if array in arrays]
    changing = [alike for alike in known if alike is not None]
    if not changing or len(changing) < len(loads):
        return _UNKNOWN
    return next(chance for least, chance in _IN_A_ROW if min(changing) >= least)


def _behind(kernel: Kernel) -> Iterator[Site | Refused]:
    """What items add to all elements of a row, by columns; a block may have an item each."""
    alone = where_legal(raised, kernel)
    alone = where_legal(in_full, where_legal(linear, alone)) if alone is not kernel else kernel
    try:
        _, _, found = columns(alone)
    except NotLegal as reason:
        yield Refused(reason.reason, reason.line)
        return
    arrays = ", ".join(one.array for one in found.arrays)
    exact = all(one.exact for one in found.arrays)
    site = Site(
        "behind",
        f"add up in a launch behind, by columns, what all items update in {arrays}",
        partial(behind, alone),
        0.93,
        Hypothesis(_ATOMICS, "lower", "one operation for a run of items", (1.1, 64.0)),
        tuple({kernel.fresh("ITEMS"): items} for items in (64, 32, 128)),
        () if exact else ("the order of additions",),
    )
    if alone is kernel:
        yield site
    else:  # an item of one thread is left, which a warp or a block had before
        yield from _shared(alone, site)


def _shared(kernel: Kernel, site: Site) -> Iterator[Site]:
    """The launch that is left with its rows shared again."""
    made = behind(kernel)
    if not isinstance(made, Kernel):
        return
    left = next(
        one for one in kernels(made.program, None) if one.launch.kernel != made.launch.kernel
    )
    left = replace(left, facts=kernel.facts, chip=kernel.chip, defines=kernel.defines)
    for shared in sites_of(RowToLanes(), left):
        yield replace(
            site, key=f"behind {shared.key}", title=f"{site.title}; {shared.title}",
            apply=shared.apply, prior=min(site.prior, shared.prior),
            points=tuple({**point, **site.points[0]} for point in shared.points),
            arithmetic=tuple(dict.fromkeys((*site.arithmetic, *shared.arithmetic))),
        )  # fmt: skip


def _has(kernel: Kernel, axis: str) -> bool:
    """Whether the launch has threads or blocks along an axis."""
    names = {f"threadIdx.{axis}", f"blockIdx.{axis}"}
    return bool(names & kernel.reading.symbols.table.keys())
