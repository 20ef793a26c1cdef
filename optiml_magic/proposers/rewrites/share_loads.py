"""Stencils, filters and convolutions: threads whose neighbours load what they load themselves."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from itertools import combinations
from math import prod

from optiml_magic.chips import CHIPS
from optiml_magic.kernels.polynomial import Polynomial
from optiml_magic.kernels.primitives.accumulating import in_register
from optiml_magic.kernels.primitives.base import Kernel, NotLegal, Refused, where_legal
from optiml_magic.kernels.primitives.begun_aligned import begun_aligned
from optiml_magic.kernels.primitives.costs import long_calls
from optiml_magic.kernels.primitives.direct import in_full
from optiml_magic.kernels.primitives.effects import loops_in
from optiml_magic.kernels.primitives.enclosed import enclosed_by_memory
from optiml_magic.kernels.primitives.ended import ended
from optiml_magic.kernels.primitives.fields_in_turn import fields_in_turn
from optiml_magic.kernels.primitives.floored import floored
from optiml_magic.kernels.primitives.grids import needed_form
from optiml_magic.kernels.primitives.hoisted import hoisted
from optiml_magic.kernels.primitives.in_ints import in_ints
from optiml_magic.kernels.primitives.items import WIDEST, numbers
from optiml_magic.kernels.primitives.jammed import (
    Several,
    Sharing,
    blocks_name,
    free_axes,
    item_names,
    jam_apart,
    jam_in_pairs,
    shared,
)
from optiml_magic.kernels.primitives.known_offsets import known_offsets
from optiml_magic.kernels.primitives.pairs import may_be_integers
from optiml_magic.kernels.primitives.plain import PLAIN
from optiml_magic.kernels.primitives.row_sums import row_sums
from optiml_magic.kernels.primitives.saved import Saved
from optiml_magic.kernels.primitives.sizes import rounds, threads, value, words_taken
from optiml_magic.kernels.primitives.triples import by_numbers
from optiml_magic.kernels.primitives.unclamped import unclamped
from optiml_magic.kernels.primitives.unravelled import unravelled
from optiml_magic.kernels.primitives.unravelled_planes import unravelled_planes
from optiml_magic.kernels.primitives.whole_elements import whole_elements
from optiml_magic.kernels.primitives.whole_rests import whole_rests
from optiml_magic.kernels.reading import Axis
from optiml_magic.model.hypothesis import Hypothesis
from optiml_magic.model.space import Point
from optiml_magic.proposers.rewrites.item_points import BLOCKS, points_of
from optiml_magic.proposers.rewrites.kernel_rule import KernelRule, Site
from optiml_magic.proposers.rewrites.long_windows import ENOUGH, ITEMS, in_strips
from optiml_magic.proposers.rewrites.multiplying import with_multipliers
from optiml_magic.proposers.rewrites.sums_behind import with_sums

_REQUESTS = "l1tex__t_requests_pipe_lsu_mem_global_op_ld.sum"
_WORD, _ITEMS, _SEVERAL = 4, (4, 8, 16), (4, 8, 2)  # the last along each of two axes
_SAVED = 0.05  # of a thread's loads, below which no items are worth their registers: ours
_UNROLLED = 256  # rounds of one item that are worth a number in the text: ours
_VECTORS = 2  # what items along x come in, fewer accesses than elements at least: ours
_STRIP_PRIOR = 0.7  # where blocks share the rounds, so that threads are enough
_HELD = 1024  # words that all rounds take, above which they are not written out: ours
_NEAR = 4  # elements that windows lie apart, for which there is a number in the text: ours
_THREADS = {f"threadIdx.{axis}" for axis in "xyz"}
_WORK, _LEAST = 256, 4  # rounds of all items along x, and items whatever they are: ours
_BORDERS = 1 / 32  # of threads near a border, from which on their tests stay: ours
_REGISTERS, _CROWDED = 96, 0.7  # words of a window above which its chance is less: ours
_CALLS = 1024  # of long functions, from which compilers take most of a minute: ours
_ROLLED = 8  # rounds that share nothing, above which they are not written out: ours
_APART = 0.6  # as likely one at a time where pairs are integers, of which each takes less: ours
_ROWS = 0.05  # as much more likely where sums of rows are in common, too: ours
_ALONE = 2  # times as long as before items take that are taken one by one: ours


class ShareLoads(KernelRule):
    """A thread computes several neighbours of a stencil, or several filters of one image."""

    name = "share_loads"
    before = (
        known_offsets, fields_in_turn, in_ints, *PLAIN, ended, in_full, begun_aligned, by_numbers,
        unravelled, unravelled_planes, whole_rests, floored, unclamped, in_register,
        enclosed_by_memory,
    )  # fmt: skip
    teaches = (
        "Neighbouring threads loaded mostly the same elements, each for one output, and each asked "
        "for every neighbour whether it lies inside. A thread that computes several outputs along "
        "an axis keeps what they share in registers, so an output needs a fraction of the loads, "
        "and far from the borders one comparison stands for all tests of them. Of a long window, "
        "such as a filter of many taps or a correlation, it keeps a strip of rounds at a time; "
        "where outputs are few, blocks share the rounds as well. Narrow numbers of two neighbours "
        "are computed at once, each in a half of a word, where that is exact."
    )

    def sites(self, kernel: Kernel) -> Iterator[Site | Refused]:
        yield from with_sums(kernel, with_multipliers(kernel, self.all_sites))

    def all_sites(self, kernel: Kernel) -> Iterator[Site | Refused]:
        """The sites of a kernel as it is."""
        kernel = kernel.settled()
        free, fixed = free_axes(kernel), _short(kernel)
        sharing = _sharing(kernel, fixed, [axis for axis in "zy" if axis in free])
        found = {axis: own for axis, own in sharing.saved.items() if own.share >= _SAVED}
        for count in range(1, len(found) + 1):
            for axes in combinations(found, count):
                part = replace(sharing, saved={axis: found[axis] for axis in axes})
                yield from _in_rows(kernel, fixed, part)
        if "x" in free:
            strips = [*_in_strips(kernel, fixed)]
            if not any(isinstance(site, Site) for site in strips):
                whole = where_legal(whole_elements, kernel)
                strips = [*_in_strips(whole, fixed)] if whole is not kernel else strips
            crowded = _CROWDED if any(isinstance(site, Site) for site in strips) else 1.0
            for site in _along_rows(kernel, fixed, found):  # all of a long window at once
                yield site if isinstance(site, Refused) else site.times(crowded)
            yield from strips


def _sharing(kernel: Kernel, fixed: Mapping[str, int], axes: Sequence[str]) -> Sharing:
    """What items along other axes than x share; along one of them where all together are many.

    Loops over a window are not written out where that is too much for items along all of them.
    """
    if not axes:
        return Sharing({})
    every = shared(kernel, Several(dict.fromkeys(axes, _ITEMS), fixed))
    if len(axes) == 1 or any(own.share >= _SAVED for own in every.saved.values()):
        return every
    alone = (shared(kernel, Several({axis: _ITEMS}, fixed)) for axis in axes)
    return max(alone, key=lambda one: max(own.share for own in one.saved.values()))


def _in_rows(
    kernel: Kernel, fixed: Mapping[str, int], sharing: Sharing
) -> Iterator[Site | Refused]:
    """Neighbours along other axes than x, which have sums of rows in common as well."""
    made = next((k for a in sharing.saved if isinstance(k := row_sums(kernel, a), Kernel)), None)
    site = _site(made, fixed, sharing, ()) if made is not None else None
    exact = made is not None and all(r.exact for r in made.reading.reductions)
    if made is None or not isinstance(site, Site) or not exact:
        yield _site(kernel, fixed, sharing, ())
    if made is None or not isinstance(site, Site):
        return
    names = item_names(made, _counts(sharing, ())).values()
    more = max(site.points, key=lambda point: [point[name] for name in names])
    yield replace(
        site, key=site.key if exact else f"{site.key}, rows",
        title=f"{site.title}, with sums of rows", prior=min(0.9, round(site.prior + _ROWS, 2)),
        points=(more, *(point for point in site.points if point != more)),
        arithmetic=() if exact else ("the order of additions", "the rounding of products"),
    )  # fmt: skip


def _is_narrow(kernel: Kernel, saved: Saved) -> bool:
    """Whether rounds load less than a word of every array, of which vectors bring many."""
    axes, words = [*kernel.axes().values()], saved.words.values()
    return max(words, default=1) < 1 and bool(axes) and all(_is_apart(kernel, a) for a in axes)


def _is_apart(kernel: Kernel, axis: Axis) -> bool:
    """Whether the rounds of a loop load as far apart as no neighbouring threads do.

    They share nothing with each other or with those of neighbours, as those of dates or channels.
    """
    found = [a for a in kernel.reading.accesses
             if a.mode == "load" and a.space == "global" and axis.name in a.loops]  # fmt: skip
    for access in found:
        index = access.index
        by = index.coefficient(axis.name) if index is not None else None
        if index is None or by is None or not by.terms or by.value is not None:
            return False
        if by in [index.coefficient(name) for name in sorted(_THREADS)]:
            return False
        near = (o.index - index for o in found if o.array == access.array and o.index is not None)
        if any(between.terms and between.over(by) is not None for between in near):
            return False
    return bool(found)


def _along_rows(
    kernel: Kernel, fixed: Mapping[str, int], found: Mapping[str, Saved],
    items: tuple[int, ...] = (),
) -> Iterator[Site | Refused]:  # fmt: skip
    """Neighbours along x as well, which come and go as vectors."""
    items = items or _vectors(kernel)
    if _near(kernel, {"x": items[0]}) >= _BORDERS:
        padded = [*_padded(kernel, fixed, found, items)]
        yield from padded
        if padded:
            return
    try:
        sharing = shared(kernel, Several({"x": items}, fixed))
    except NotLegal as reason:
        padded = [*_padded(kernel, fixed, found, items)]
        yield from padded
        if found and not padded:
            yield Refused(reason.reason, reason.line)
        return
    for form, width in sharing.rows:
        length = value(kernel, form)
        if length is not None and length % width:
            yield Refused(f"rows of {length} elements do not hold whole vectors")
            return
    along = sharing.saved["x"]
    alone: list[list[str]] = [[]] if along.share >= _SAVED or _is_narrow(kernel, along) else []
    best = [] if sharing.alone else sorted(found, key=lambda axis: -found[axis].share)[:1]
    for axes in [*alone, best] if best else alone:
        own = replace(sharing, saved=dict(sharing.saved) | {a: found[a] for a in axes})
        apart = _unshared(kernel, Several(_counts(own, items), fixed)) if axes else None
        yield from _sites(kernel, fixed, own, items) if apart is None else [apart]


def _unshared(kernel: Kernel, several: Several) -> Refused | None:
    """Why items along several axes are not taken together, though along each of them they are."""
    refused: Refused | None = None
    for stacks in (True, False):
        try:
            shared(kernel, replace(several, stacks=stacks))
        except NotLegal as reason:
            refused = refused or Refused(reason.reason, reason.line)
        else:
            return None
    return refused


def _in_strips(kernel: Kernel, fixed: Mapping[str, int]) -> Iterator[Site | Refused]:
    """Neighbours along x whose windows are long, or as long as a size says."""
    for ready in in_strips(kernel):
        if isinstance(ready, Refused):
            yield ready
            continue
        free = {name: size for name, size in fixed.items() if name not in ready.bounds}
        for site in _along_rows(ready.kernel, free, {}, ITEMS):
            if isinstance(site, Refused):
                yield site
                continue
            prior = max(site.prior, _STRIP_PRIOR if ready.shared_out else 0)
            # Loads are waited for in each strip: more threads come before more registers.
            fewest = partial(_fewest, blocks_name(ready.kernel))
            strips = ", ".join([f"strips {ready.number}", *site.key.split(", ")[1:]])
            yield replace(
                site, key=strips, title=f"{site.title}, {ready.title}", prior=prior,
                points=tuple(sorted(site.points, key=fewest)),
            )  # fmt: skip


def _fewest(blocks: str, point: Point) -> int:
    return -point.get(blocks, 1)


def _padded(
    kernel: Kernel, fixed: Mapping[str, int], found: Mapping[str, Saved], items: tuple[int, ...]
) -> Iterator[Site | Refused]:
    """The same for those near a border as well, whose tests stay; and with each other axis."""
    kernel, stay = where_legal(hoisted, kernel), 0
    for axes in ([], *([axis] for axis in found)):
        counts = {"x": items, **dict.fromkeys(axes, _SEVERAL)}
        try:
            sharing = shared(kernel, Several(counts, fixed, padded=True))
        except NotLegal:
            continue
        stay = stay or sharing.stay
        whole = all((value(kernel, form) or 0) % width == 0 for form, width in sharing.rows)
        if whole and sharing.saved["x"].share >= _SAVED:
            near = _near(kernel, {a: n[0] for a, n in counts.items()})
            yield from _sites(kernel, fixed, sharing, items, near if sharing.stay < stay else 0.0)


def _near(kernel: Kernel, items: Mapping[str, int]) -> float:
    """The share of threads near a border of their plane, where each takes so many items."""
    inside = 1.0
    for axis in "xy":
        form = needed_form(kernel, axis)
        count = value(kernel, form) if form is not None else None
        inside *= max(0, 1 - 2 * items.get(axis, 1) / count) if count else 1
    return 1 - inside


def _sites(
    kernel: Kernel, fixed: Mapping[str, int], sharing: Sharing, vectors: tuple[int, ...],
    near: float = 0.0,
) -> Iterator[Site | Refused]:  # fmt: skip
    """Items in vectors, and one at a time as well where they may be integers in pairs."""
    site = _site(kernel, fixed, sharing, vectors, near)
    yield site
    if isinstance(site, Site) and may_be_integers(kernel):
        several = Several(_counts(sharing, vectors), fixed, BLOCKS, sharing.stay > 0)
        yield replace(
            site, key=f"{site.key}, apart", title=f"{site.title}, one at a time",
            prior=round(site.prior * _APART, 2), apply=partial(jam_apart, kernel, several),
        )  # fmt: skip


def _site(
    kernel: Kernel, fixed: Mapping[str, int], sharing: Sharing, vectors: tuple[int, ...],
    near: float = 0.0,
) -> Site | Refused:  # fmt: skip
    """Items along the axes that share loads; of ``near`` so many threads, each one by one."""
    left, saved, padded = 1.0, sharing.saved, sharing.stay > 0
    for axis, own in saved.items():
        # Elements that are each asked for by a test of its own do not come in vectors.
        left *= (1 - own.share) / (_VECTORS if axis == "x" and not padded else 1)
    counts = _counts(sharing, vectors)
    if (calls := prod(items[0] for items in counts.values()) * long_calls(kernel)) > _CALLS:
        return Refused(f"its items would be written out with {calls} calls of long functions")
    several = Several(counts, fixed, BLOCKS, padded)
    along = " and ".join(sorted(saved))
    crowded = not sharing.deep and _words(saved, counts) > _REGISTERS
    title = f"take several items along {along} together{', those at borders as well' * padded}"
    title += "".join(f", where {name} is {number}" for name, number in fixed.items())
    enough = _enough(kernel, 4 ** len(saved))
    return Site(
        f"along {along}", title, partial(jam_in_pairs, kernel, several),
        round(
            (0.8 if enough else 0.3) * (_CROWDED if crowded else 1)
            * max(0, 1 - left - _ALONE * near), 2,
        ),
        Hypothesis(
            _REQUESTS, "lower", "items of a thread share what they load",
            (1.0, round(2 / left, 1)),
        ),
        points_of(kernel, several, deep=sharing.deep and not padded, crowded=crowded),
    )  # fmt: skip


def _counts(sharing: Sharing, vectors: tuple[int, ...]) -> dict[str, tuple[int, ...]]:
    """How many items a thread may take along each axis, along x in vectors."""
    items = _ITEMS if len(sharing.saved) == 1 else _SEVERAL
    return {axis: vectors if axis == "x" else items for axis in sharing.saved}


def _words(saved: Mapping[str, Saved], counts: Mapping[str, tuple[int, ...]]) -> float:
    """Of items along several axes the words of their windows: one more has a row or a column.

    Of what is the same along one of the axes each item along the other has its own.
    """
    if len(saved) < 2:
        return 0.0
    found, axes = 0.0, [*saved]
    for array, words in {a: w for own in saved.values() for a, w in own.words.items()}.items():
        more, own = {axis: saved[axis].more.get(array, 0.0) for axis in axes}, words
        for axis, beside in zip(axes, [*axes[1:], axes[0]], strict=True):
            plane = all(more.values())
            count = counts[axis][0]
            own *= more[beside] + count - 1 if plane else max(1.0, more[axis] * count)
        found += own if any(more.values()) else 0.0
    return found


def _vectors(kernel: Kernel) -> tuple[int, ...]:
    """Items along x: whole vectors of the widest elements, fewer where each is much work."""
    symbols, sizes, work = kernel.reading.symbols, {1}, 1
    for access in kernel.reading.accesses:
        if access.space != "global" or access.offset is None:
            continue
        if symbols.inside(access.offset) & {"threadIdx.x", "blockIdx.x"}:
            sizes.add(access.element.size or WIDEST)
            count = prod(rounds(kernel, loop) or 1 for loop in kernel.reading.loops(access))
            count *= numbers(kernel, access) or 1
            work = max(work, count if count <= _UNROLLED else 1)
    most = max(_LEAST, 1 << (_WORK // work).bit_length() - 1)
    width = max(2, min(WIDEST // max(sizes), most))
    return (width, 2 * width)


def _short(kernel: Kernel) -> dict[str, int]:
    """Scalars that say how long short loops are, with their values at the measured sizes."""
    found: dict[str, int] = {}
    given = kernel.facts.scalars if kernel.facts is not None else {}
    axes, symbols, short = kernel.axes(), kernel.reading.symbols, set[str]()
    for loop, axis in axes.items():
        if (rounds(kernel, axis) or 0) > _ROLLED and _is_apart(kernel, axis):
            continue
        bounds = [form for form in (axis.start, axis.stop) if form is not None]
        names = {name for form in bounds for name in symbols.made_of(form)}
        total = 1
        for inner in loops_in(loop):
            total *= (rounds(kernel, axes[inner]) or 0) if inner in axes else 0
        held = words_taken(kernel, axis)
        if names <= given.keys() and 0 < total <= _UNROLLED and held <= _HELD:
            short.add(axis.name)
            found |= {n: int(given[n]) for n in sorted(names) if n not in kernel.program.values}
    for access in kernel.reading.accesses if short else ():
        index = access.index if access.loops and access.index is not None else Polynomial()
        for monomial, _ in index.terms:  # how far windows lie apart, their elements, and borders
            own = {*monomial} & (_THREADS | short)
            names = {*monomial} if own or (len(monomial) == 1 and found) else set()
            near = {n: int(v) for n, v in given.items() if n in names and 0 <= v <= _NEAR}
            found |= {n: v for n, v in near.items() if n not in kernel.program.values}
    return found


def _enough(kernel: Kernel, items: int) -> bool:
    """Whether there are threads for every multiprocessor when each takes so many items."""
    count, chip = threads(kernel), CHIPS.get(kernel.chip)
    return count is None or chip is None or count // items >= ENOUGH * chip.sms
