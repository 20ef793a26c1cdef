"""Long loops of few threads, shared by rows of threads and by blocks, and put together after."""

from __future__ import annotations

import math
from collections.abc import Iterator
from functools import partial

from optiml_magic.chips import CHIPS
from optiml_magic.kernels.primitives.accumulating import in_register
from optiml_magic.kernels.primitives.base import Kernel, Refused, where_legal
from optiml_magic.kernels.primitives.branched import branched
from optiml_magic.kernels.primitives.chunks import chunk, front
from optiml_magic.kernels.primitives.counted import all_counted, as_counted
from optiml_magic.kernels.primitives.cutting import cut
from optiml_magic.kernels.primitives.direct import direct, in_full
from optiml_magic.kernels.primitives.effects import is_simple, loops_in
from optiml_magic.kernels.primitives.lanes import Lanes
from optiml_magic.kernels.primitives.listed import listed
from optiml_magic.kernels.primitives.parts import Sharing, spare_axis, split
from optiml_magic.kernels.primitives.plain import PLAIN
from optiml_magic.kernels.primitives.pulled import pulled
from optiml_magic.kernels.primitives.read_back import read_back
from optiml_magic.kernels.primitives.rectangular import rectangular
from optiml_magic.kernels.primitives.rows import rows
from optiml_magic.kernels.primitives.shaped import linear, planar
from optiml_magic.kernels.primitives.sizes import alike_rounds, rounds, working
from optiml_magic.kernels.primitives.spread import spread_rounds
from optiml_magic.kernels.primitives.taking import dealing
from optiml_magic.kernels.primitives.unbroken import unbroken
from optiml_magic.kernels.primitives.unnested import unnested
from optiml_magic.kernels.primitives.unpeeled import unpeeled
from optiml_magic.kernels.reading import Axis, Reduction
from optiml_magic.kernels.tree import Loop
from optiml_magic.model.hypothesis import TIME, Hypothesis
from optiml_magic.model.space import Point
from optiml_magic.proposers.rewrites.kernel_rule import KernelRule, Site
from optiml_magic.proposers.rewrites.rounds_within import rounds_within
from optiml_magic.proposers.rewrites.row_to_lanes import THREADS, order, shared_by
from optiml_magic.proposers.rewrites.whole_array import whole_array

_ROWS = (1, 2, 4, 8, 16, 32)
_PARTS = (1, 2, 4, 8, 16, 32, 64)
_CHUNKS = (*_PARTS, 128, 256)  # whose blocks have several threads for a row
_RESIDENT = 2048  # threads of a multiprocessor that is full
_FEW = 2 * _PARTS[-1]  # rounds below which none is split; what combines parts has half as many
_SOME = 8  # rounds, each of which is long, that are worth parts: ours
_EACH = 4  # rounds of a part, at least: ours
_THREADS = 256  # of a block for a row: eight blocks fill a multiprocessor
_IDLE = 0.2  # the chance where most of them have nothing of a row: ours
_EMPTY = 4  # such blocks for each row, below which lanes alone fill the chip: ours
_FILLED = 2  # times that blocks of several rounds fill the chip, at least: ours
_WIDTH = 64  # threads of a row: two lines of the cache side by side


class SplitReduction(KernelRule):
    """A thread a column, or an output, walks along an axis that is long, and there are few."""

    name = "split_reduction"
    before = (
        pulled, *PLAIN, unbroken, linear, planar, in_full, direct, branched,
        in_register, read_back, unnested,
    )  # fmt: skip
    teaches = (
        "Neighbouring threads read neighbouring elements already, but there are far fewer threads "
        "than the chip holds, each with a long loop, so too few loads are on their way. Rows of "
        "threads in a block and several blocks share the rounds: each row adds up its own, a block "
        "its rows through shared memory, and a second launch the parts that the blocks have left "
        "in scratch, in the same order each time."
    )

    def sites(self, kernel: Kernel) -> Iterator[Site | Refused]:
        busy, chip = working(kernel), CHIPS.get(kernel.chip)
        apart = _RESIDENT * chip.sms // max(busy, 1) if busy is not None and chip else _ROWS[-1]
        if apart <= 1:
            return
        found = _long(kernel)
        if found is not None and found[2] is None:
            kernel = where_legal(rectangular, kernel, found[0])
            found = _long(kernel)
        if found is None and (kept := _in_lists(kernel, apart)) is not None:
            yield kept
            return
        walked = rows(kernel) if found is not None or apart >= _EMPTY * _THREADS else ()
        if walked:
            if apart >= _EMPTY * _THREADS:
                yield from _in_rows(kernel, apart // _THREADS)
            return
        if found is None:
            if not rows(kernel):
                sites = [*_in_blocks(kernel, apart)]
                yield from sites or rounds_within(kernel, apart)
            return
        spare_axis(kernel)
        number, axis, length = found
        if length is None and kernel.facts is not None:
            yield Refused("each thread may make another number of rounds", axis.line)
            return
        combined = [r for r in kernel.reading.reductions if axis.name in r.axes]
        sums = [r for r in combined if not r.exact]
        counter = axis.variable.name if axis.variable is not None else "its rounds"
        if any(r.carried for r in combined):  # of equals the first, so parts in their order
            yield Site(
                f"chunks {number}", f"blocks share the loop over {counter}, in its order",
                partial(_in_order, kernel, number), 0.86 if apart >= 8 else 0.5,
                Hypothesis(TIME, "lower", "more loads are on their way", (1.5, 32.0)),
                _points(kernel.fresh("PARTS"), 8 * apart, 8 * (length or _FEW)),
                ("the order of additions",) if sums else (),
            )  # fmt: skip
            return
        each = min(_each(kernel, axis.node), _EACH)  # a round of many is a part by itself
        points = _points(kernel.fresh("PARTS"), apart, length * each if length else _FEW)
        behind = _behind(kernel, number)
        sums += [r for r in behind if not r.exact]
        more = ", and those behind it" if behind else ""
        yield Site(
            f"split {number}", f"rows of threads and blocks share the loop over {counter}{more}",
            partial(self._in_turn, kernel, number, points[0], apart), 0.88 if apart >= 8 else 0.5,
            Hypothesis(TIME, "lower", "more loads are on their way", (1.5, 32.0)), points,
            ("the order of additions",) if sums else (),
        )  # fmt: skip

    def _in_turn(self, kernel: Kernel, number: int, point: Point, apart: int) -> Kernel | Refused:
        """The loop with this number in parts, then what is as long behind it, by parts or blocks.

        As long as one of them is left to as few threads, nothing is won by the others.
        """
        (parts,) = (int(value) for value in point.values())
        made = _apply(kernel, number, parts)
        while isinstance(made, Kernel):
            shaped = self.shaped(made)
            found = _long(shaped) if not rows(shaped) else None
            more = _apply(shaped, found[0], parts) if found is not None and found[2] else None
            if isinstance(more, Kernel):
                made = more
                continue
            apiece = () if rows(shaped) else _in_blocks(shaped, apart)
            last = next((s.apply() for s in apiece if s.key.startswith("spread")), None)
            return last if isinstance(last, Kernel) else made
        return made


def _in_lists(kernel: Kernel, apart: int) -> Site | None:
    """A long loop that keeps a sorted list of the best that it comes to."""
    axes = kernel.axes()
    for number, loop in enumerate(loops_in(kernel.function.body)):
        length = rounds(kernel, axes[loop]) if loop in axes else None
        if loop not in axes or (length is not None and length < _FEW):
            continue
        points = _points(kernel.fresh("PARTS"), 8 * apart, 8 * (length or _FEW))
        made = _lists(kernel, number)
        if isinstance(made, Kernel):
            counter = axes[loop].variable
            return Site(
                f"lists {number}",
                f"blocks share the loop over {counter.name if counter else 'its rounds'}, and one "
                "list is made of theirs",
                partial(_lists, kernel, number), 0.88 if apart >= 8 else 0.5,
                Hypothesis(TIME, "lower", "more loads are on their way", (1.5, 32.0)), points,
            )  # fmt: skip
    return None


def _lists(kernel: Kernel, at: int) -> Kernel | Refused:
    plain = all_counted(kernel, (at,))
    return plain if isinstance(plain, Refused) else listed(plain, at, _PARTS[-1], _PARTS)


def _in_blocks(kernel: Kernel, apart: int) -> Iterator[Site]:
    """Rounds that do not meet, of which each may have threads of its own."""
    axes = kernel.axes()
    for number, loop in enumerate(loops_in(kernel.function.body)):
        length = rounds(kernel, axes[loop]) if loop in axes else None
        if length is None or length < _FEW:
            continue
        if isinstance(spread_rounds(kernel, number), Refused):
            continue
        counter = axes[loop].variable
        name = counter.name if counter is not None else "its rounds"
        # What other loops find every block finds anew.
        most = length // (_FILLED * apart) if number else 1
        fit = max(n for n in _PARTS if n <= max(most, 1))
        each = tuple(n for n in (fit, fit * 2, fit // 2) if n > 1) if fit > 1 else ()
        if each and isinstance(spread_rounds(kernel, number, each), Refused):
            each = ()
        many = "several rounds" if each else "a round"
        yield Site(
            f"spread {number}", f"blocks take {many} each of the loop over {name}",
            partial(spread_rounds, kernel, number, each), 0.86 if apart >= 8 else 0.5,
            Hypothesis(TIME, "lower", "more loads are on their way", (1.5, 32.0)),
            tuple({kernel.fresh("ROUNDS"): n} for n in each) or ({},),
        )  # fmt: skip
        return
    shared = dealing(kernel)
    if shared is not None:
        yield Site(
            shared.key, shared.words.removeprefix(", "), partial(shared.step, kernel),
            0.7 if apart >= 8 else 0.5,
            Hypothesis(TIME, "lower", "more loads are on their way", (1.0, 32.0)), shared.points,
        )  # fmt: skip


def _long(kernel: Kernel) -> tuple[int, Axis, int | None] | None:
    """The first loop that is not short, with its rounds, if it reduces and is in no other."""
    axes, inside = kernel.axes(), set[Loop]()
    for number, loop in enumerate(loops_in(kernel.function.body)):
        axis = axes.get(loop)
        if axis is None:
            return None
        length = alike_rounds(kernel, axis)
        if loop in inside or (length is not None and not _is_long(kernel, loop, length)):
            inside |= set(loops_in(loop.body))
            continue
        reduces = any(axis.name in r.axes for r in kernel.reading.reductions)
        return (number, axis, length) if reduces else None
    return None


def _is_long(kernel: Kernel, loop: Loop, length: int) -> bool:
    """Whether it has many rounds, or some that are as long as many."""
    return length >= _FEW or (length >= _SOME and length * _each(kernel, loop) >= _FEW)


def _each(kernel: Kernel, loop: Loop) -> int:
    """The rounds of the loops in a round of this one."""
    axes, inside = kernel.axes(), loops_in(loop.body)
    known = [rounds(kernel, axes[i]) if i in axes else None for i in inside]
    return math.prod(n or 1 for n in known)


def _behind(kernel: Kernel, number: int) -> list[Reduction]:
    """What the long loops behind the one with this number reduce."""
    axes = kernel.axes()
    later = [axes[loop] for loop in loops_in(kernel.function.body)[number + 1 :] if loop in axes]
    long = {axis.name for axis in later if (alike_rounds(kernel, axis) or 0) >= _FEW}
    return [r for r in kernel.reading.reductions if r.axes[-1:] and r.axes[-1] in long]


def _in_rows(kernel: Kernel, few: int) -> Iterator[Site | Refused]:
    """Rows of so few threads that blocks, which share each, leave the chip empty."""
    for number in range(len(loops_in(kernel.function.body))):
        kernel = where_legal(unpeeled, kernel, number)
    walked = rows(kernel)
    loops = loops_in(kernel.function.body)
    around = [loop for loop in loops if {*loops_in(loop.body)} & {axis.node for axis in walked}]
    outer = around[0] if around else walked[0].node
    number = loops.index(outer)
    kernel = where_legal(as_counted, kernel, number, is_simple)
    outer = loops_in(kernel.function.body)[number]
    axis = kernel.axes().get(outer)
    walked = rows(kernel)
    length = _FEW if kernel.facts is None or axis is None else rounds(kernel, axis)
    made = chunk(kernel, number, _CHUNKS[0], _CHUNKS)
    if axis is None or isinstance(made, Refused) or length is None:
        return
    left = _left_out(kernel, outer)
    if left is not None:
        found = [*whole_array(kernel, few)]
        yield from found
        if not found:
            yield Refused("a loop beside it is as long, and left to as few threads", left.line)
        return
    inside = loops_in(outer.body)
    row = next((rounds(kernel, row) for row in walked if row.node in inside), 1)
    short = bool(around) and row is not None and _EACH * row < _THREADS
    share = length if None in (kernel.facts, row) else length * (row or 1) // (_THREADS * _EACH)
    if min(length, share) < 2:
        return
    sums = [r for r in kernel.reading.reductions if axis.name in r.axes and not r.exact]
    parts = front(made)
    arithmetic = ("the order of additions",) if sums else order(parts, rows(parts))
    counter = axis.variable.name if axis.variable is not None else "its rounds"
    most = max(n for n in _CHUNKS if n <= min(few, length, share))
    points = tuple(
        {kernel.fresh("PARTS"): n, made.fresh("THREADS"): _THREADS}
        for n in dict.fromkeys((most, max(1, most // 2), min(2 * most, _CHUNKS[-1])))
    )
    yield Site(
        f"chunks {number}", f"blocks share the loop over {counter}, their threads the rows in it",
        partial(_chunked, kernel, number), _IDLE if short else 0.9,
        Hypothesis(TIME, "lower", "more loads are on their way", (1.5, 32.0)), points, arithmetic,
    )  # fmt: skip


def _left_out(kernel: Kernel, outer: Loop) -> Axis | None:
    """A long loop beside this one, whose threads stay as few when blocks share it."""
    axes = kernel.axes()
    for loop in loops_in(kernel.function.body):
        axis = axes.get(loop)
        beside = loop is not outer and loop not in loops_in(outer.body)
        around = outer in loops_in(loop.body)
        if axis is not None and beside and not around and (rounds(kernel, axis) or 0) >= _FEW:
            return axis
    return None


def _chunked(kernel: Kernel, number: int) -> Kernel | Refused:
    """Parts by blocks, of which the threads share the rows."""
    made = chunk(kernel, number, _CHUNKS[0], _CHUNKS)
    if isinstance(made, Refused):
        return made
    parts = front(made)
    loops = loops_in(parts.function.body)
    at = tuple(loops.index(axis.node) for axis in rows(parts))
    if not at:
        return Refused("in a part its rows are no longer seen")
    lanes = Lanes("block", _THREADS, _THREADS, THREADS, THREADS)
    return shared_by(parts, at, lanes)


def _in_order(kernel: Kernel, at: int) -> Kernel | Refused:
    """Counted from 0, and in parts of neighbouring rounds: the loop with this number."""
    plain = all_counted(where_legal(unpeeled, kernel, at), (at,))
    return plain if isinstance(plain, Refused) else chunk(plain, at, _PARTS[-1], _PARTS)


def _points(name: str, wanted: int, length: int) -> tuple[Point, ...]:
    """Parts that fill the chip with eight rows of threads each, and twice or half as many."""
    most = max(1, min(wanted, length // _EACH) // 8)
    fit = max(n for n in _PARTS if n <= most)
    more, less = min(2 * fit, _PARTS[-1]), max(fit // 2, 1)
    return tuple({name: n} for n in dict.fromkeys((fit, more, less)))


def _apply(kernel: Kernel, at: int, parts: int) -> Kernel | Refused:
    """Counted, in narrow blocks where these are free, and split: the loop with this number."""
    plain = all_counted(kernel, (at,))
    if isinstance(plain, Refused):
        return plain
    across, down = plain.block[0] or 1, plain.block[1] or 1
    if across * down > _WIDTH and (down == 1 or across <= _WIDTH):
        narrow = {"x": _WIDTH} if down == 1 else {"y": _WIDTH // across}
        plain = where_legal(cut, plain, narrow)
    return split(plain, at, Sharing(8, parts, _ROWS, _PARTS))
