"""P9 and P7, a thread's own elements: a small problem in memory is held in registers.

Elements that lie together, and that a thread loads and stores at places that the text says, one by
one or in loops of constant bounds, become a local array. It is filled and stored by 16 bytes at a
time, by each thread or by the lanes of a warp together (`records`), and the loops are unrolled, so
that each of its indices is a constant and a compiler keeps it in registers.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from optiml_magic.kernels.editing import Node, edited, lines, text
from optiml_magic.kernels.expressions import Index, Unary
from optiml_magic.kernels.polynomial import Polynomial
from optiml_magic.kernels.primitives.base import Kernel, NotLegal, primitive
from optiml_magic.kernels.primitives.effects import Effects, by_ones, loops_in
from optiml_magic.kernels.primitives.following import Touch, number
from optiml_magic.kernels.primitives.indices import put
from optiml_magic.kernels.primitives.items import WIDEST, Items, element, is_plain
from optiml_magic.kernels.primitives.members import structure
from optiml_magic.kernels.primitives.naming import speller_before
from optiml_magic.kernels.primitives.places import index
from optiml_magic.kernels.primitives.records import Owned, Rows
from optiml_magic.kernels.primitives.regions import (
    Region,
    certain,
    loop_region,
    resting,
    stretch,
    written_out,
)
from optiml_magic.kernels.reading import Access, Axis
from optiml_magic.kernels.spelling import Speller
from optiml_magic.kernels.symbols import Condition
from optiml_magic.kernels.tree import Blank, Block, Declare, Loop, Statement, walk

_WHOLE = {axis: f"((int)(blockIdx.{axis} * blockDim.{axis} + threadIdx.{axis}))" for axis in "xyz"}
_WIDE = {
    axis: f"((long long)blockIdx.{axis} * blockDim.{axis} + threadIdx.{axis})" for axis in "xyz"
}
_ONES = (Polynomial.constant(1), Polynomial.constant(-1))
_FEW, _MANY = 4, 128  # elements of an array that registers hold


@primitive
def hold(kernel: Kernel, at: int | None, *, together: bool = False) -> Kernel:
    """What a thread owns in the loop with this number, in local arrays; its loops unrolled.

    Without a number in all that it does. The lanes of a warp bring and store what they own alone,
    or ``together``.
    """
    effects = Effects(kernel)
    region = region_of(kernel, at, effects)
    found = owned(kernel, region, effects) if region is not None else []
    if region is None or not found:
        line = region.line if region is not None else 0
        raise NotLegal("no elements that lie together are a thread's own", line)
    place = speller_before(kernel, effects, region.statements[0])
    for axis, words in (_WIDE if kernel.wide else _WHOLE).items():  # where no local holds it
        place.names.setdefault(f"@{axis}", words)
    swaps: dict[Node, Node] = {}
    before, after = list[str](), list[str]()
    names, bases = _names(kernel, found), [place.address(place.local(one.base)) for one in found]
    records = {
        one: one.record(name, f"{one.array}[{base}]")
        for one, name, base in zip(found, names, bases, strict=True) if together and one.in_rows
    }  # fmt: skip
    _check_free(kernel, bases, region.line)
    turn = kernel.fresh("at", *names)
    rows = Rows(kernel, [*records.values()], names) if records else None
    if together and rows is None:
        raise NotLegal("what threads own does not lie in rows", region.line)
    before += rows.opening() if rows is not None else []
    for one, name, base in zip(found, names, bases, strict=True):
        swaps |= {node: text(f"{name}{behind}") for node, behind in one.whole.items()}
        for access in one.accesses if not one.whole else ():
            assert access.index is not None
            inner = _counted(kernel, access, access.index - one.base)
            swaps[element(effects, access) or access.node] = text(f"{name}[{inner}]")
        before.append(_declared(one, name))
        record = records.get(one)
        for stores in (False, True):
            if not (one.stored if stores else one.loaded):
                continue
            if rows is not None and record is not None:
                alone = _each(one, name, base, turn, stores=stores)
                move = rows.moved(record, alone, stores=stores)
            else:
                move = _moved(one, name, base, turn, stores=stores)
            (after if stores else before).append(move)
    helpers = rows.helpers() if rows is not None else ()
    body = edited(kernel.function.body, _around(kernel, region, swaps, before, after))
    return kernel.rewritten(body, helpers=helpers)


def _counted(kernel: Kernel, access: Access, form: Polynomial) -> str:
    """A form of rounds by the counters of the loops, of which each begins where it says."""
    counters = dict[str, str]()
    for axis in reversed(kernel.reading.loops(access)):
        if axis.name not in form.symbols:
            continue
        if axis.variable is None or axis.start is None or axis.step not in _ONES:
            raise NotLegal("the loop does not count up or down by one", axis.line)
        counters[axis.name] = axis.variable.name
        form = put(form, axis.name, (Polynomial.symbol(axis.name) - axis.start) * axis.step)
    return Speller(kernel.reading.symbols, counters).form(form)


def _check_free(kernel: Kernel, bases: Sequence[str], line: int) -> None:
    """Raise NotLegal where a place is spelled by what a block's tuned extent is at the moment."""
    for base in bases:
        left = base
        for words in (*_WHOLE.values(), *_WIDE.values()):
            left = left.replace(words, "")
        if ("Idx" in left or "Dim" in left) and kernel.settled() is not kernel:
            raise NotLegal("where its elements lie is told by the extent of its blocks", line)


def region_of(kernel: Kernel, at: int | None, effects: Effects) -> Region | None:
    """The loop with this number, or all that a thread does with global memory."""
    effects.straightforward()
    if at is None:
        return stretch(kernel, effects)
    return loop_region(kernel, loops_in(kernel.function.body)[at])


def _around(
    kernel: Kernel, region: Region, swaps: dict[Node, Node],
    before: Sequence[str], after: Sequence[str],
) -> dict[Node, Node | tuple[Statement, ...] | None]:  # fmt: skip
    """The statements of a region anew, its loops unrolled, with others before and after them."""
    axes, told = kernel.axes(), _told(kernel)
    loops: dict[Node, Node | tuple[Statement, ...] | None] = {**swaps}
    for loop in region.loops:
        axis = axes.get(loop)
        if axis is not None and _few(kernel, axis):
            made = unrolled(loop, swaps)
            loops[loop] = made[1:] if loop in told else made
    changes: dict[Node, Node | tuple[Statement, ...] | None] = {}
    opening = tuple(map(lines, before))
    head = told.get(region.statements[0])
    if head is not None:  # it belongs to what stands behind it
        changes[head] = (*opening, head)
    for statement in region.statements:
        made_of = loops[statement] if statement in loops else edited(statement, loops)
        own = made_of if isinstance(made_of, tuple) else (made_of,)
        first = opening if statement is region.statements[0] and head is None else ()
        last = [*map(lines, after)] if statement is region.statements[-1] else []
        changes[statement] = (*first, *(s for s in own if isinstance(s, Statement)), *last)
    return changes


def _told(kernel: Kernel) -> dict[Statement, Statement]:
    """What stands before a statement and says how a compiler should take it."""
    return {
        after: before for block in walk(kernel.function.body) if isinstance(block, Block)
        for before, after in zip(block.body, block.body[1:], strict=False)
        if isinstance(before, Blank)
    }  # fmt: skip


def _few(kernel: Kernel, axis: Axis) -> bool:
    """Whether a compiler can write out the rounds of a loop."""
    try:
        return bool(written_out(kernel, axis))
    except NotLegal:
        return False


def _names(kernel: Kernel, found: Sequence[Owned]) -> list[str]:
    """What the local arrays are called."""
    taken = list[str]()
    for one in found:
        taken.append(kernel.fresh(f"{one.array.replace('.', '_')}_own", *taken))
    return taken


@primitive
def unroll(kernel: Kernel, at: int) -> Kernel:
    """The loop with this number and those in it, as many rounds as a compiler can write out."""
    loop = loops_in(kernel.function.body)[at]
    return kernel.rewritten(edited(kernel.function.body, {loop: unrolled(loop, {})}))


def unrolled(loop: Loop, swaps: dict[Node, Node]) -> tuple[Statement, ...]:
    """A loop with all in it unrolled, and parts exchanged; none that says so itself already."""
    said = {
        after for block in walk(loop) if isinstance(block, Block)
        for before, after in zip(block.body, block.body[1:], strict=False)
        if isinstance(before, Blank)
    }  # fmt: skip
    inner = [s for s in loops_in(loop.body)
             if not any(s in loops_in(o.body) for o in loops_in(loop.body))]  # fmt: skip
    changes: dict[Node, Node | tuple[Statement, ...] | None] = {**swaps}
    for one in inner:
        made = unrolled(one, swaps)
        changes[one] = made[1:] if one in said else made
    return lines("#pragma unroll"), replace(edited(loop, changes), lead=None)


def owned(kernel: Kernel, region: Region, effects: Effects) -> list[Owned]:
    """The arrays of which a thread has elements of its own in a region."""
    counters = {a.variable.name for a in kernel.reading.axes if a.variable is not None}
    loops = {loop for s in region.statements for loop in loops_in(s)}
    used = {
        a.variable.name for a in kernel.reading.axes if a.node in loops and a.variable is not None
    }
    given = frozenset(loop.before for loop in loops if loop.before is not None)
    inner = {v.name for s in region.statements for d in walk(s)
             if isinstance(d, Declare) and d not in given for v in d.variables}  # fmt: skip
    if used and counters & inner:
        raise NotLegal("a local has the name of a counter", region.line)
    found = [
        _own(kernel, region, array, effects) or structure(kernel, region, array, effects)
        for array in region.touched
    ]
    return [one for one in found if one is not None]


def _own(kernel: Kernel, region: Region, array: str, effects: Effects) -> Owned | None:
    reading, own = kernel.reading, region.touched[array]
    accesses = [a for a in reading.accesses if effects.same(a.array, array)]
    inside = {t.access for t in own}

    def rest(access: Access) -> Polynomial | None:
        return resting(kernel, access.index, access.loops[region.depth :])

    base = rest(own[0].access) if own else None
    if base is None or "threadIdx.x" not in reading.symbols.inside(base):
        return None
    if array.partition(".")[0] in effects.moved:
        return None
    for access in accesses:
        plain = isinstance(element(effects, access), Index | Unary) and access.call is None
        if access not in inside or access.array != array or access.mode == "atomic" or not plain:
            return None
        if rest(access) != base or access.element != accesses[0].element:
            return None
        if not all(by_ones(a, effects) for a in reading.loops(access)[region.depth :]):
            return None
    if accesses[0].element.lanes > 1 or not is_plain(kernel, accesses[0]):
        return None
    places = {t: _place(t, base) for t in own}
    open_, stored_open = (
        dict[int, list[frozenset[Condition]]](),
        dict[int, list[frozenset[Condition]]](),
    )
    loaded = False
    for touch in own:
        place = places[touch]
        if touch.access.mode == "load":
            loaded |= not certain(stored_open.get(place, ()))
        else:
            stored_open.setdefault(place, []).append(touch.open)
        open_.setdefault(place, []).append(touch.open)
    sure = {place for place, ways in open_.items() if certain(ways)}
    if not sure or {min(places.values()), max(places.values())} - sure:
        return None
    first, count = min(sure), max(sure) - min(sure) + 1
    stores = bool(stored_open)
    stored = [place for place, ways in stored_open.items() if certain(ways)]
    if not _FEW <= count <= _MANY or (stores and region.leaves):
        return None
    if stores and len(stored) < count:
        if not _apart(kernel, base, count):
            return None
        loaded = True  # so that what it stores nothing to is stored as it was
    shifted = base + Polynomial.constant(first)
    kind = accesses[0].element
    return Owned(array, shifted, count, tuple(accesses), loaded, stores, kind.name, kind.size or 0)


def _apart(kernel: Kernel, base: Polynomial, count: int) -> bool:
    """Whether so many elements from there on are no other thread's."""
    one_axis = kernel.block[1:] == (1, 1) and all(str(e) == "1" for e in kernel.launch.grid[1:])
    form = index(base, "x", kernel.block[0]) if one_axis and kernel.block[0] is not None else None
    by = form.coefficient("@x") if form is not None else None
    if form is None or by is None or by.value is None or abs(by.value) < count:
        return False
    symbols = kernel.reading.symbols
    rest = symbols.inside(form.without(["@x"]))
    return all(symbols.table[n].kind in ("scalar", "operation") for n in rest)


def _place(touch: Touch, base: Polynomial) -> int:
    assert touch.access.index is not None
    found = number(touch.access.index - base, touch.rounds)
    assert found is not None
    return found


def _declared(one: Owned, name: str) -> str:
    return f"alignas({WIDEST}) {one.kind} {name}[{one.count}];"


def _moved(one: Owned, name: str, base: str, at: str, *, stores: bool) -> str:
    """The elements to or from memory: by vectors where the first one's address is aligned."""
    items = Items(one.array, one.base, one.accesses)
    width = next((w for w in (WIDEST // one.size, 2) if w > 1 and one.count % w == 0), 1)
    each, here = _each(one, name, base, at, stores=stores), f"{name}[{at}]"
    there = f"{one.array}[{_further(base, at)}]"
    if width == 1 or items.size * width < 4 or one.whole:
        return each
    move = items.stored if stores else items.loaded
    vector = move(width, f"&{here}", f"&{there}")
    test = f"(size_t)&{one.array}[{base}] % {width * items.size} == 0"
    return (
        f"if ({test}) {{\n#pragma unroll\n"
        f"for (int {at} = 0; {at} < {one.count}; {at} += {width}) {vector}\n"
        f"}} else {{\n{each}\n}}"
    )


def _each(one: Owned, name: str, base: str, at: str, *, stores: bool) -> str:
    """The elements to or from memory, one by one."""
    if one.count == 1:
        there, here = f"{one.array}[{base}]", f"{name}[0]"
        return f"{there} = {here};" if stores else f"{here} = {there};"
    there, here = f"{one.array}[{_further(base, at)}]", f"{name}[{at}]"
    single = f"{there} = {here};" if stores else f"{here} = {there};"
    return f"#pragma unroll\nfor (int {at} = 0; {at} < {one.count}; ++{at}) {single}"


def _further(base: str, at: str) -> str:
    return at if base == "0" else f"{base} + {at}"
