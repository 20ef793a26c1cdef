"""Rows that one thread each walks along, walked by the lanes of a warp or a block together."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from functools import partial

from optiml_magic.kernels.primitives.abreast import check_abreast
from optiml_magic.kernels.primitives.accumulating import in_register
from optiml_magic.kernels.primitives.base import Kernel, NotLegal, Refused, once, where_legal
from optiml_magic.kernels.primitives.branched import branched
from optiml_magic.kernels.primitives.by_element import by_element
from optiml_magic.kernels.primitives.carried import carried
from optiml_magic.kernels.primitives.clipped import clipped, clips
from optiml_magic.kernels.primitives.commuting import commuting
from optiml_magic.kernels.primitives.counted import all_counted, upward
from optiml_magic.kernels.primitives.direct import direct, in_full
from optiml_magic.kernels.primitives.effects import Effects, loops_in
from optiml_magic.kernels.primitives.ended import asked_within
from optiml_magic.kernels.primitives.grouped import grouped
from optiml_magic.kernels.primitives.lanes import Lanes, share
from optiml_magic.kernels.primitives.once_a_row import once_a_row
from optiml_magic.kernels.primitives.own_tests import own_tests
from optiml_magic.kernels.primitives.plain import PLAIN
from optiml_magic.kernels.primitives.round_a_block import round_a_block
from optiml_magic.kernels.primitives.rows import (
    across,
    finer,
    in_strips,
    others_load,
    rows,
    stored_in_parts,
    within,
)
from optiml_magic.kernels.primitives.rows_added import rows_added
from optiml_magic.kernels.primitives.scans import mixes
from optiml_magic.kernels.primitives.shaped import linear, planar
from optiml_magic.kernels.primitives.sizes import usual_rounds
from optiml_magic.kernels.primitives.unbroken import unbroken
from optiml_magic.kernels.primitives.unclamped import unclamped
from optiml_magic.kernels.primitives.unnested import unnested
from optiml_magic.kernels.primitives.unpeeled import unpeeled
from optiml_magic.kernels.primitives.unscanned import unscanned
from optiml_magic.kernels.primitives.vectors import vectorise, vectorised
from optiml_magic.kernels.primitives.welford import welford
from optiml_magic.kernels.reading import Axis
from optiml_magic.kernels.tree import Loop
from optiml_magic.model.hypothesis import Hypothesis
from optiml_magic.model.space import Point
from optiml_magic.proposers.rewrites.kernel_rule import KernelRule, Site
from optiml_magic.proposers.rewrites.outer_rounds import outer_rounds
from optiml_magic.proposers.rewrites.rounds_of_lanes import (
    LONG,
    cut_evenly,
    evenly,
    handed_exactly,
    in_batches,
    meet,
    of_a_block,
    repeats,
    seldom,
    several_by,
    unshared,
    windows,
)
from optiml_magic.proposers.rewrites.row_threads import A_LANE, few_threads, of_rows

_SECTORS = "l1tex__t_sectors_pipe_lsu_mem_global_op_ld.sum"
COUNTS, BLOCKS = (2, 4, 8, 16, 32), (64, 128, 256, 512)
THREADS = (64, 128, 256, 512, 1024)
_WARP = 32
_SECTOR = 8  # elements of four bytes
_A_VECTOR = 4  # elements of a row that a thread by itself loads at once: ours
_STRIPS = (16, 32, 8)  # elements that a thread takes at once of a row that is its own: ours
_BESIDE = 0.2  # the chance of lanes where threads load neighbours without them: ours
_MET = 0.05  # the same where they load short rows that meet: ours
_WINDOWS = 0.8  # the chance of lanes for short rows that may be neighbours already: ours
_SELDOM = 0.15  # the chance of strips of rows too few for the chip, or seldom walked along: ours
_ONE_STRIP = 0.4  # the chance of strips of rows that have not two of them: ours
SHORT = 256  # a block takes no shorter row: ours
_UNEVEN = 128  # elements of a row that begins anywhere, up to which vectors are few: ours


class RowToLanes(KernelRule):
    """Loops over consecutive elements whose rows lie apart from thread to thread."""

    name = "row_to_lanes"
    before = (
        rows_added, round_a_block, unscanned, *PLAIN, unbroken, asked_within, once_a_row, linear,
        planar, in_full, direct, branched, own_tests, unclamped, in_register, carried, grouped,
        unnested,
    )  # fmt: skip
    teaches = (
        "Each thread walked along a row of its own, so the lanes of a warp read elements that lie "
        "a row apart, a sector for each. Lanes that share a row read neighbouring elements, "
        "several at once where they are aligned, and many more threads hide the latency; shuffles "
        "combine what each has, or hand a running sum, extreme or fading average from lane to lane."
    )

    def sites(self, kernel: Kernel) -> Iterator[Site | Refused]:
        try:
            found = _walked(kernel)
        except NotLegal:
            yield from _by_itself(kernel)
            raise
        if not found:
            return (yield from _by_itself(kernel))
        length = _length(kernel, found)
        few = length >= SHORT and few_threads(kernel)
        strips = _SELDOM if few or all(seldom(kernel, axis) for axis in found) else 0.8
        yield from _by_itself(kernel, {i for a in found for i in loops_in(a.node.body)}, strips)
        kernel = _unguarded(kernel, found)
        found = _walked(kernel)
        own = {loop for axis in found for loop in loops_in(axis.node)}
        if {*loops_in(kernel.function.body)} - own:  # which lanes would all go through
            yield from _by_itself(kernel, {axis.node for axis in found}, strips)
        at = _numbers(kernel, found)
        yield from outer_rounds(kernel, found, length, THREADS, order)
        if unshared(kernel, at) is not None:
            others = where_legal(welford, kernel), where_legal(by_element, kernel)
            for made in (where_legal(commuting, kernel, at), *others):
                again = _walked(made)
                if again and unshared(made, _numbers(made, again)) is None:
                    kernel, found, at = made, again, _numbers(made, again)
                    break
            else:
                anew = within(kernel, found)
                if anew and unshared(kernel, _numbers(kernel, anew)) is None:
                    found, at = anew, _numbers(kernel, anew)
                    length = _length(kernel, found)
        kept = unshared(kernel, at)
        if kept is not None and any(axis.broken for axis in found):
            yield kept
            return
        uneven = any(axis.start is None or axis.start.value is None for axis in found)
        counters = ", ".join(dict.fromkeys(a.variable.name for a in found if a.variable))
        hypothesis = Hypothesis(_SECTORS, "lower", "lanes read neighbouring elements", (1.5, 8.0))
        alone = _alone(kernel, at, length, counters)
        if alone is not None:
            yield from alone
            return
        if kept is not None:
            yield kept
            return
        arithmetic, late = order(kernel, found), 0 < length <= _A_VECTOR
        lanes = Lanes("warp", 32, 256, COUNTS, BLOCKS)
        points = _lanes(kernel, at, length)
        late = late or others_load(kernel, found)
        late = late or repeats(kernel, found, points[0].get("LANES", lanes.count))
        met = 0 < length < 2 * _SECTOR and meet(kernel, found, _A_VECTOR)
        neighbours = _MET if met else _BESIDE if meet(kernel, found, 1) else 0.0
        short = 0 < length < 2 * _SECTOR and not uneven  # uneven rows lie one behind the other
        likely = _WINDOWS if short and windows(kernel, found) else 0.85
        title = f"lanes of a warp share the loop over {counters}"
        if across(kernel, found):
            beside = Lanes("apart", 8, 256, COUNTS, BLOCKS)
            yield Site(
                f"apart {at}", f"lanes beside neighbours share the loop over {counters}",
                partial(shared_by, kernel, at, beside, vectors=False),
                0.88, hypothesis, ({"LANES": 8}, {"LANES": 4}), arithmetic,
            )  # fmt: skip
        if uneven and (not length or length <= _UNEVEN):
            several = _abreast(kernel, at)
            apply = partial(shared_by, kernel, at, lanes, vectors=False)
            yield cut_evenly(kernel, Site(
                f"warp {at} one by one",
                f"{title}, {'several elements' if several else 'an element'} each",
                partial(several_by, apply, at) if several else apply,
                neighbours or 0.87, hypothesis,
                _several(length) if several else _few(length), arithmetic,
            ), lanes)  # fmt: skip
        vectors = not _adds_along(kernel, found) and not stored_in_parts(kernel, found)
        mixed = mixes(kernel, (axis.node for axis in found))
        if mixed:  # whose states may grow, or cancel, too much to be found in another order
            yield from _by_itself(kernel, {axis.node for axis in found})
        if not length or length <= LONG or mixed:
            yield cut_evenly(kernel, Site(
                f"warp {at}", title,
                partial(in_batches, shared_by, kernel, at, lanes, vectors=vectors),
                neighbours or (0.4 if late else likely), hypothesis, points, arithmetic,
            ), lanes)  # fmt: skip
        inner = _inner_vectors(kernel, at)
        if inner is not None and (not length or length <= LONG):
            yield Site(
                f"warp {at} inner", f"{title}, and take what its rounds walk along by vectors",
                partial(share, inner, at, lanes), 0.86, hypothesis, points, arithmetic,
            )  # fmt: skip
        if not length or length >= SHORT:
            points = of_rows(kernel, found, length, THREADS[: len(THREADS) - mixed])
            most = points[0].get("THREADS", 256)
            block = Lanes("block", most, most, THREADS, THREADS)
            yield Site(
                f"block {at}", f"a block shares the loop over {counters}",
                partial(in_batches, shared_by, kernel, at, block, vectors=vectors),
                0.4 if late else 0.86 if of_a_block(kernel, length) else 0.78, hypothesis,
                points, arithmetic,
            )  # fmt: skip


def _length(kernel: Kernel, axes: Sequence[Axis]) -> int:
    """The rounds of the longest of the loops; 0 where they are not known."""
    return max((usual_rounds(kernel, axis) or 0 for axis in axes), default=0)


def _inner_vectors(kernel: Kernel, at: tuple[int, ...]) -> Kernel | None:
    """With short loops in the only one that lanes share by vectors, where they take any.

    Of what all threads load alike lanes that share the rounds have each its own part.
    """
    plain = all_counted(kernel, at)
    if isinstance(plain, Refused) or len(at) > 1:
        return None
    loops = loops_in(plain.function.body)
    within, made = loops_in(loops[at[0]].body), plain
    for number in [n for n, loop in enumerate(loops) if loop in within][::-1]:
        axis = plain.axes().get(loops[number])
        if axis is not None and (axis.trips or 0) >= _SECTOR:
            made = where_legal(vectorise, made, number)
    return made if made is not plain else None


def _adds_along(kernel: Kernel, axes: Sequence[Axis]) -> bool:
    """Whether atomic operations go along the rounds: of neighbours in one request L2 does many."""
    return any(
        access.mode == "atomic" and access.space == "global" and axis.name in access.loops
        and (access.offset is None or axis.name in access.offset.symbols)
        for axis in axes for access in kernel.reading.accesses
    )  # fmt: skip


def _walked(kernel: Kernel) -> tuple[Axis, ...]:
    """Rows, or those inside of them where lanes may share these and combine as seldom."""
    found = rows(kernel, broken=True)
    inner = finer(kernel, found)
    return inner if inner and unshared(kernel, _numbers(kernel, inner)) is None else found


def _numbers(kernel: Kernel, found: Sequence[Axis]) -> tuple[int, ...]:
    loops = loops_in(kernel.function.body)
    return tuple(loops.index(axis.node) for axis in found)


def _alone(
    kernel: Kernel, at: tuple[int, ...], length: int, counters: str
) -> tuple[Refused, Site] | None:
    """Each thread walks by itself, by whole sectors, where lanes cannot share; and why not."""
    kept = unshared(kernel, at)
    strips = tuple(n for n in _STRIPS if not length or 2 * n <= length)
    if kept is None or not strips:
        return None
    made = _in_strips(kernel, at, strips)
    if isinstance(made, Refused):
        return None
    return kept, Site(
        f"strips {at}", f"each thread takes several vectors of its row at once over {counters}",
        partial(_in_strips, kernel, at, strips), 0.8,
        Hypothesis(_SECTORS, "lower", "a thread asks once for all of a sector", (1.5, 8.0)),
        _strip_points(kernel, made, strips),
    )  # fmt: skip


def _strip_points(kernel: Kernel, made: Kernel, strips: Sequence[int]) -> tuple[Point, ...]:
    """The numbers of elements that a strip may have; a single one has no name."""
    name = kernel.fresh("STRIP")
    values = next((tune.values for tune in made.program.tunes if tune.name == name), ())
    return tuple({name: n} for n in strips if n in values) or ({},)


def _by_itself(
    kernel: Kernel, within: Collection[Loop] | None = None, prior: float = 0.7
) -> Iterator[Site]:
    """Threads that walk along rows of their own, in some loops or in all that there are.

    They wait for each other elsewhere, or the rows are parts of what lanes may share otherwise.
    """
    effects, axes = Effects(kernel), kernel.axes()
    at = tuple(
        number for number, loop in enumerate(loops_in(kernel.function.body))
        if loop in axes and (within is None or loop in within)
        and any(in_strips(kernel, axes[loop], a) for a in effects.accesses(loop))
        and not any(inner in axes and inner is not loop for inner in loops_in(loop))
    )  # fmt: skip
    rounds = {n: usual_rounds(kernel, axes[loops_in(kernel.function.body)[n]]) for n in at}
    long = tuple(n for n, count in rounds.items() if count is None or count >= 2 * min(_STRIPS))
    fitting = tuple(n for n, count in rounds.items() if count is None or count >= min(_STRIPS))
    at, prior = long or fitting, prior if long else min(prior, _ONE_STRIP)
    if not at:
        return
    own = [axes[loops_in(kernel.function.body)[n]] for n in at]
    strips = evenly([axis.trips for axis in own], _STRIPS)
    made = _in_strips(kernel, at, strips)
    if isinstance(made, Refused):
        return
    counters = ", ".join(dict.fromkeys(v.name for a in own if (v := a.variable) is not None))
    yield Site(
        f"strips {at}", f"each thread takes several vectors of its row at once over {counters}",
        partial(_in_strips, kernel, at, strips), prior,
        Hypothesis(_SECTORS, "lower", "a thread asks once for all of a sector", (1.5, 8.0)),
        _strip_points(kernel, made, strips),
    )  # fmt: skip


def order(kernel: Kernel, axes: Sequence[Axis]) -> tuple[str, ...]:
    """What changes where lanes share these loops."""
    names, at = {axis.name for axis in axes}, _numbers(kernel, axes)
    exact = all(r.exact for r in kernel.reading.reductions if names & {*r.axes})
    exact = exact and not any(a.mode == "atomic" and a.element.floating and names & {*a.loops}
                              for a in kernel.reading.accesses)  # fmt: skip
    return () if exact and handed_exactly(kernel, at) else ("the order of additions",)


def _in_strips(kernel: Kernel, at: tuple[int, ...], strips: tuple[int, ...]) -> Kernel | Refused:
    """All of the loops that take their elements so; the first reason where none does."""
    made = all_counted(kernel, at)
    if isinstance(made, Refused):
        return made
    found, name, reason = made, kernel.fresh("STRIP"), Refused("no loop walks along a row")
    for number in reversed(at):  # so that those to come keep their numbers
        strip = name if name in found.program.values else ""
        one = vectorise(upward(found, number), number, strips=strips, strip=strip)
        if isinstance(one, Refused):
            reason = one
        else:
            found = one
    return found if found is not made else reason


def _abreast(kernel: Kernel, at: tuple[int, ...]) -> bool:
    """Whether lanes may have several rounds of the only loop under way."""
    plain = all_counted(kernel, at)
    if isinstance(plain, Refused) or len(at) > 1:
        return False
    try:
        check_abreast(plain, loops_in(plain.function.body)[at[0]], Effects(plain))
    except NotLegal:
        return False
    return True


def _several(length: int) -> tuple[Point, ...]:
    """As ``_few`` has it, with several rounds under way, by which most rows are done at once."""
    lanes = _few(length)[0]["LANES"]
    near = ((lanes, 4), (lanes, 2), (lanes // 2, 8), (2 * lanes, 2), (lanes, 1))
    return tuple({"LANES": n, "ROUNDS": r} for n, r in near if n in COUNTS)


def _few(length: int) -> tuple[Point, ...]:
    """So many lanes that each has two elements of a row or more, half as many and twice."""
    fit = max((n for n in COUNTS if 2 * n <= length), default=COUNTS[0]) if length else 8
    near = (fit, fit // 2, 2 * fit)
    return tuple({"LANES": n} for n in near if n in COUNTS)


def _lanes(kernel: Kernel, at: tuple[int, ...], length: int) -> tuple[Point, ...]:
    """So many lanes that each has a few elements, and twice as many.

    Where no vectors bring these, lanes that take one at a time have to fill a sector together.
    """
    if not length:
        return ({}, {"LANES": 8})
    if length < _SECTOR * A_LANE and not _by_vectors(kernel, at):
        fit = max((n for n in COUNTS if n <= min(length, _SECTOR)), default=COUNTS[0])
        return ({"LANES": fit}, {"LANES": 2 * fit}, {"LANES": max(2, fit // 2)})
    fit = max((n for n in COUNTS if n * A_LANE <= length + A_LANE), default=COUNTS[0])
    more = min(2 * fit, 32) if fit < 32 else 16
    return ({"LANES": fit}, {"LANES": more})


def _unguarded(kernel: Kernel, found: Sequence[Axis]) -> Kernel:
    """Rows that end where a comparison says, where vectors then bring what each round tested."""
    counters = {axis.variable.name for axis in found if axis.variable}
    if not counters & {*clips(kernel).names} or _by_vectors(kernel, _numbers(kernel, found)):
        return kernel
    made = where_legal(clipped, kernel)
    return made if _by_vectors(made, _numbers(made, rows(made, broken=True))) else kernel


@once
def _by_vectors(kernel: Kernel, at: tuple[int, ...]) -> bool:
    """Whether a thread takes several elements of one of these rows at once."""
    plain = all_counted(kernel, at)
    return isinstance(plain, Kernel) and any(
        isinstance(vectorise(upward(plain, number), number), Kernel) for number in at
    )


def shared_by(
    kernel: Kernel, at: tuple[int, ...], lanes: Lanes, *, vectors: bool = True
) -> Kernel | Refused:
    """Counted, as vectors where these are wanted, and shared: the loops with these numbers."""
    plain = all_counted(kernel, at)
    if isinstance(plain, Refused):
        return plain
    for number in at:
        plain = where_legal(unpeeled, plain, number)
    wide, loops = vectorised(plain, at) if vectors else (plain, at)
    made = share(wide, loops, lanes)
    if isinstance(made, Refused) and wide is not plain:
        return share(plain, at, lanes)  # what vectors made may be followed less far
    return made
