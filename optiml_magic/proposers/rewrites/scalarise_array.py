"""Small problems of one thread each, held in registers: their loops written out."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator, Sequence
from functools import partial

from optiml_magic.kernels.primitives.base import Kernel, NotLegal, Refused, in_turn, where_legal
from optiml_magic.kernels.primitives.chosen_places import chosen_places
from optiml_magic.kernels.primitives.cutting import cut, tuned
from optiml_magic.kernels.primitives.direct import direct, in_full
from optiml_magic.kernels.primitives.effects import Effects, loops_in
from optiml_magic.kernels.primitives.endings import enclosed, ended
from optiml_magic.kernels.primitives.flag_words import flagged, flags_in_words
from optiml_magic.kernels.primitives.held import Holding, holding
from optiml_magic.kernels.primitives.known_tables import known_tables
from optiml_magic.kernels.primitives.let_on import let_on
from optiml_magic.kernels.primitives.localised import localised, own_scratch
from optiml_magic.kernels.primitives.operation_counts import requests
from optiml_magic.kernels.primitives.ordered import ordered, sortings
from optiml_magic.kernels.primitives.owned import hold, owned, region_of, unroll
from optiml_magic.kernels.primitives.paired import alone
from optiml_magic.kernels.primitives.places import functions_of
from optiml_magic.kernels.primitives.raised import raised
from optiml_magic.kernels.primitives.records import Owned
from optiml_magic.kernels.primitives.regions import written_out
from optiml_magic.kernels.primitives.resident import points, resident
from optiml_magic.kernels.primitives.room import SHARED
from optiml_magic.kernels.primitives.searched import searched, searches
from optiml_magic.kernels.primitives.shaped import linear
from optiml_magic.kernels.primitives.sized import bounding, sized
from optiml_magic.kernels.primitives.unshadowed import unshadowed
from optiml_magic.kernels.primitives.unstrided import unstrided
from optiml_magic.kernels.primitives.walked import walked, walks
from optiml_magic.kernels.reading import Axis
from optiml_magic.kernels.tree import Blank, Block, Loop, walk
from optiml_magic.model.hypothesis import Hypothesis
from optiml_magic.model.space import Point
from optiml_magic.proposers.rewrites.kernel_rule import KernelRule, Site
from optiml_magic.proposers.rewrites.own_places import in_columns, updated_in_registers
from optiml_magic.proposers.rewrites.table_places import LOCAL, tables

_FEW = 64  # rounds of the outermost loop
_LONG = 128  # rounds of a loop that a size bounds
_MOST = 1024  # rounds that are written out
_BLOCKS = (128, 64, 256)
_ROWS = 0.86  # the chance of rows in registers
_ALL, _PART = 0.945, 0.6  # of rows that a warp brings, of most requests and of a few: ours
_MOSTLY = 0.9  # of all requests, from which on these are most: ours
_WORTH = 0.25  # of a thread's requests that these save, from which it is that: ours
MANY = 16  # words of a thread from which on registers are what bounds it: ours


class ScalariseArray(KernelRule):
    """A matrix a thread, in memory or in a local array that loops of constant bounds walk through.

    What such loops index by their counters has constant indices once they are unrolled.
    """

    name = "scalarise_array"
    before = (raised, let_on, unstrided, linear, in_full, direct)
    teaches = (
        "Each thread worked on a few elements of its own in memory, one access for each use. In "
        "a local array whose indices are constants, since the loops around them are unrolled, a "
        "compiler keeps them in registers; memory is read once and written once, by 16 bytes. "
        "Where the elements of neighbouring threads lie one behind the other, the lanes of a warp "
        "bring them together, so that neighbours load neighbours, and change them in shared "
        "memory. A loop that looks for a place in such an array comes to all places in turn, "
        "since where it ends is not a constant; one that sorts it becomes a network of exchanges. "
        "Numbers that stand in the text lie in constant memory, where no thread fills them in. An "
        "array of flags at places that data say is bits of one number, whatever the place. "
        "Counters and stacks have a column of shared memory for each thread: lanes that stand at "
        "different places of local memory ask for a line each, of shared memory for a bank."
    )

    def sites(self, kernel: Kernel) -> Iterator[Site | Refused]:
        yield from tables(kernel)
        kernel = yield from _among(kernel)
        yield from _places(kernel)
        yield from _flags(kernel)
        yield from in_columns(kernel)
        yield from updated_in_registers(kernel, written_short)
        yield from [*_sized(kernel)] or _walked(kernel)
        yield from _rows(kernel)
        yield from own_in_registers(kernel)
        yield from _owning(kernel)
        sizes = bounding(kernel, _LONG)
        known = sized(kernel, sizes) if sizes else kernel
        if isinstance(known, Kernel) and sizes:
            where = "".join(f", where {name} is {size}" for name, size in sizes.items())
            yield from (s for s in _owning(known, where) if isinstance(s, Site))


def _among(kernel: Kernel) -> Generator[Site, None, Kernel]:
    """Rows of local arrays that data choose alone, such as a pivot's; what chooses among all."""
    made = chosen_places(kernel)
    asked = any(any(found(kernel)) for found in (known_tables, searches, walks, sortings))
    if isinstance(made, Refused) or asked:
        return kernel
    title = "choose among all rows of local arrays, with constant indices"
    yield Site("among", title, partial(written_short, made), 0.75, LOCAL)
    return made


def _owning(kernel: Kernel, where: str = "") -> Iterator[Site | Refused]:
    """What loops of constant rounds touch of a thread's own, in memory or in a local array.

    ``where`` says of which sizes the rounds are constants; a local array is another site's then.
    """
    loops, effects = loops_in(kernel.function.body), Effects(kernel)
    done, held = set[Loop](), list[set[str]]()
    for number, loop in enumerate(loops):
        axis = kernel.axes().get(loop)
        if loop in done or axis is None or not 1 < (axis.trips or 0) <= _FEW:
            continue
        if where and not loops_in(loop.body):  # a row, of which each element is asked for once
            continue
        done |= set(loops_in(loop.body))
        try:
            region = region_of(kernel, number, effects)
            found = owned(kernel, region, effects) if region is not None else []
        except NotLegal as reason:
            yield Refused(reason.reason, reason.line)
            continue
        if found:
            arrays = ", ".join(one.array for one in found)
            held.append({one.array for one in found})
            yield from _together(kernel, number, found, where)
            yield Site(
                f"own {number}{where}", f"hold a thread's elements of {arrays} in registers{where}",
                partial(hold, kernel, number), 0.78,
                Hypothesis(
                    "l1tex__t_requests_pipe_lsu_mem_global_op_ld.sum", "lower",
                    "an element is loaded once, with its neighbours", (1.5, 16.0),
                ),
            )  # fmt: skip
        elif not where and _indexed(kernel, axis) and not _said(kernel, loop):
            yield Site(
                f"local {number}", "unroll the loops that index a local array",
                partial(unroll, kernel, number), 0.4, LOCAL,
            )  # fmt: skip
    yield from _stretch(kernel, held, where)


def _places(kernel: Kernel) -> Iterator[Site]:
    """Searches of local arrays, which come to their places in turn, and arrays that are sorted."""
    sorted_by = [*sortings(kernel)]
    if sorted_by:
        floats = not all(one.kind.integral for one in sorted_by)
        names = ", ".join(one.array.name for one in sorted_by)
        yield Site(
            "order", f"sort {names} by a network of exchanges",
            partial(in_turn, kernel, (
                ordered, partial(where_legal, searched), written_short,
            )), 0.92, LOCAL, arithmetic=("which of two zeros comes first",) if floats else (),
        )  # fmt: skip
    arrays = sorted({array for one in searches(kernel) for array in one.arrays})
    if arrays:
        yield Site(
            "places", f"look for a place in {', '.join(arrays)} with constant indices",
            partial(in_turn, kernel, (searched, _held, written_short)), 0.9, LOCAL,
        )  # fmt: skip


def _flags(kernel: Kernel) -> Iterator[Site]:
    """Local arrays of flags, at places that data say."""
    names = [v.name for function in functions_of(kernel) for v in flagged(kernel, function)]
    if names:
        yield Site(
            "flags", f"keep the flags of {', '.join(names)} as bits of a number",
            partial(flags_in_words, kernel), 0.88, LOCAL,
        )  # fmt: skip


def _sized(kernel: Kernel) -> Iterator[Site]:
    """Local arrays that loops walk through to a size that the kernel is given."""
    sizes = bounding(kernel, _LONG, lambda axis: _walks(kernel, axis))
    if sizes:
        where = ", ".join(f"{name} is {size}" for name, size in sizes.items())
        yield Site(
            "sized", f"walk through local arrays with constant indices, where {where}",
            partial(in_turn, kernel, (
                partial(sized, values=sizes), _held, partial(where_legal, searched), written_short,
            )), 0.85, LOCAL,
        )  # fmt: skip


def _walked(kernel: Kernel) -> Iterator[Site]:
    """Local arrays that loops walk through as far as the data say."""
    arrays = sorted({array for one in walks(kernel) for array in one.arrays})
    if arrays:
        yield Site(
            "walked", f"walk through all of {', '.join(arrays)} with constant indices",
            partial(in_turn, kernel, (walked, _held, written_short)), 0.8, LOCAL,
        )  # fmt: skip


def own_in_registers(kernel: Kernel) -> Iterator[Site | Refused]:
    """Scratch of which a thread asks for its own elements alone, in a local array of few."""
    scratch = {s.name for s in kernel.program.scratch if alone(kernel, s.name)}
    inside = [a for a in kernel.reading.accesses if a.loops and a.array in scratch]
    if not inside:
        return
    sizes = bounding(kernel, _LONG, lambda axis: any(axis.name in a.loops for a in inside))
    ready = where_legal(sized, where_legal(unshadowed, kernel), values=sizes)
    made = in_turn(ready, (localised, written_short))
    if isinstance(made, Refused):
        yield made
        return
    if not _written(made):
        yield Refused("rounds that walk through its scratch are too many", inside[0].line)
        return
    held = own_scratch(ready)
    words = sum(one.words for one in held)
    counts = points(made, words) if words >= MANY else ()
    bound = where_legal(resident, made, *counts[0].values()) if counts else made
    where = ", ".join(f"{name} is {size}" for name, size in sizes.items())
    yield Site(
        "scratch", f"hold what a thread leaves for itself in {', '.join(o.array for o in held)} "
        f"in registers{', where ' if where else ''}{where}",
        lambda: bound, 0.9,
        Hypothesis(
            "dram__bytes.sum", "lower", "what a thread leaves for itself stays in registers",
            (1.2, 4.0),
        ),
        counts if bound is not made else ({},),
    )  # fmt: skip


def _written(kernel: Kernel) -> bool:
    """Whether all loops that walk through local arrays have few rounds, and are written out."""
    axes = {axis.name: loop for loop, axis in kernel.axes().items()}
    return all(
        name in axes and _short(kernel, axes[name])
        for a in kernel.reading.accesses if a.space == "local" and a.index is not None
        for name in {*a.loops} & kernel.reading.symbols.inside(a.index)
    )  # fmt: skip


def _rows(kernel: Kernel) -> Iterator[Site]:
    """A row that a thread walks along in each round of a loop, such as its query, in registers."""
    found = holding(kernel)
    if found.words and not [*searches(kernel)]:
        where = "".join(f", where {n} is {v}" for n, v in found.sizes.items())
        yield Site(
            "held rows", f"hold a thread's row of {', '.join(found.arrays)} in registers{where}",
            partial(in_turn, kernel, (_held, written_short)), _chance(kernel, found),
            Hypothesis(
                "l1tex__t_requests_pipe_lsu_mem_global_op_ld.sum", "lower",
                "a row is loaded once, and not in each round", (1.2, 16.0),
            ),
        )  # fmt: skip


def _chance(kernel: Kernel, found: Holding) -> float:
    """How likely rows in registers pay: less where other requests are most of all."""
    before, after = requests(kernel), requests(found.kernel)
    saved = sum(before.get(array, 0.0) - after.get(array, 0.0) for array in found.arrays)
    every = sum(before.values()) or 1.0  # the threads looked at may have no round
    return round(_ROWS * min(1.0, max(0.0, saved / every / _WORTH)), 2)


def _held(kernel: Kernel) -> Kernel:
    """What its threads ask for in each round of a loop, in registers where there is such a row."""
    return holding(kernel).kernel


def written_short(kernel: Kernel) -> Kernel | Refused:
    """The kernel with its short loops unrolled, of which nothing says so yet."""
    short = [loop for loop in loops_in(kernel.function.body) if _short(kernel, loop)]
    inner = {one for loop in short for one in loops_in(loop.body)}
    loops = loops_in(kernel.function.body)
    outer = [loops.index(one) for one in short if one not in inner and not _said(kernel, one)]
    return in_turn(kernel, [partial(unroll, at=number) for number in outer])


def _short(kernel: Kernel, loop: Loop) -> bool:
    """Whether a loop and those in it have constant rounds, as few as are written out."""
    axes = kernel.axes()

    def count(one: Loop) -> int:
        axis, within = axes.get(one), loops_in(one.body)
        direct = [i for i in within if not any(i in loops_in(o.body) for o in within)]
        trips = axis.trips if axis is not None and axis.trips is not None else _MOST + 1
        return trips * max(1, sum(map(count, direct)))

    return 1 < count(loop) <= _MOST


def _walks(kernel: Kernel, axis: Axis) -> bool:
    """Whether a loop has a place of its own in a local array in each round."""
    inside = (a for a in kernel.reading.accesses if axis.name in a.loops and a.space == "local")
    return any(a.index is not None and axis.name in a.index.symbols for a in inside)


def _stretch(kernel: Kernel, held: Sequence[set[str]], where: str) -> Iterator[Site]:
    """All that a thread does, where it owns more than what is ``held`` in a single loop."""
    whole = where_legal(ended, kernel)
    try:
        region = region_of(whole, None, Effects(whole))
        if region is not None and region.leaves:  # who leaves would not store with the others
            whole = where_legal(enclosed, whole)
            region = region_of(whole, None, Effects(whole))
        found = owned(whole, region, Effects(whole)) if region is not None else []
    except NotLegal:  # which is no less to be expected than that there are no such elements
        return
    arrays = {one.array for one in found}
    if not any(arrays <= one for one in held):
        yield from _together(whole, None, found, where)


def _together(
    kernel: Kernel, number: int | None, found: Sequence[Owned], where: str
) -> Iterator[Site]:
    """The lanes of a warp bring what they own, where it lies in rows."""
    blocks = _blocks(kernel, found)
    if blocks is None:
        return
    points, step = blocks
    arrays = ", ".join(one.array for one in found)
    yield Site(
        f"rows {'all' if number is None else number}{where}",
        f"hold a thread's elements of {arrays} in registers, "
        f"which the lanes of a warp bring and store together{where}",
        partial(in_turn, kernel, (step, partial(hold, at=number, together=True))),
        _rows_chance(kernel, number, found),
        Hypothesis(
            "l1tex__t_sectors_pipe_lsu_mem_global_op_ld.sum", "lower",
            "neighbouring lanes load neighbouring vectors", (1.5, 16.0),
        ),
        points,
    )  # fmt: skip


def _rows_chance(kernel: Kernel, number: int | None, found: Sequence[Owned]) -> float:
    """How likely rows that a warp brings pay: most where they are of all that a thread does.

    Then nothing that a thread asks for lies apart from what its neighbours do, if they are of all
    arrays as well. Parts of sectors that are stored cost more than those that are loaded, and then
    found in the L1.
    """
    if number is not None:
        return 0.82 if any(one.stored for one in found) else 0.81
    made = requests(kernel)
    own = sum(made.get(array, 0.0) for array in {one.array for one in found})
    share = own / max(1.0, sum(made.values()))
    return _ALL if share >= _MOSTLY else 0.84 if share >= 1 - _MOSTLY else _PART


def _blocks(
    kernel: Kernel, found: Sequence[Owned]
) -> tuple[tuple[Point, ...], Callable[[Kernel], Kernel | Refused]] | None:
    """Blocks whose warps can bring what they own together, where it lies in rows.

    Small ones where they are free, since registers and shared memory limit these less.
    """
    warp = max((one.room for one in found if one.in_rows), default=0)
    fitting = [n for n in _BLOCKS if n // 32 * warp <= SHARED]
    if not warp or not fitting:
        return None
    one = {} if kernel.block[1] == 1 else {"y": 1}  # a warp's records lie along a row
    extents = {"x": fitting[0], **one}
    steps = [partial(cut, extents=extents), partial(tuned, values={"x": fitting})]
    step = partial(in_turn, steps=steps)
    made = step(kernel)
    if isinstance(made, Kernel):
        (name,) = made.launch.block[0].names
        return tuple({name: n} for n in fitting), step
    fits = (kernel.block[0] or 0) // 32 * warp <= SHARED
    return (({},), lambda same: same) if fits else None


def _indexed(kernel: Kernel, axis: Axis) -> bool:
    """Whether a local array is indexed by the rounds of a loop that a compiler can write out."""
    inside = [a for a in kernel.reading.accesses if axis.name in a.loops and a.space == "local"]
    moving = (a for a in inside if a.index is not None and a.index.symbols & {*a.loops})
    if not any(moving):
        return False
    try:
        return bool(written_out(kernel, axis))
    except NotLegal:
        return False


def _said(kernel: Kernel, loop: Loop) -> bool:
    """Whether something stands before a loop that says how it is unrolled."""
    return any(
        isinstance(before, Blank) and after is loop
        for block in walk(kernel.function.body) if isinstance(block, Block)
        for before, after in zip(block.body, block.body[1:], strict=False)
    )  # fmt: skip
