"""Rows: loops whose rounds take neighbouring elements, while neighbouring threads' lie apart."""

from __future__ import annotations

import math
from collections.abc import Iterable
from fractions import Fraction

from optiml_magic.kernels.polynomial import Polynomial
from optiml_magic.kernels.primitives.base import Kernel, NotLegal
from optiml_magic.kernels.primitives.effects import Effects, loops_in
from optiml_magic.kernels.primitives.outward import outward
from optiml_magic.kernels.primitives.sizes import mean_rounds, value, working
from optiml_magic.kernels.reading import Access, Axis
from optiml_magic.kernels.symbols import Compare
from optiml_magic.kernels.tree import Loop

_THREAD, _WARP = "threadIdx.x", 32
_WIDEST = 16  # bytes of an element of which a part is taken, such as a complex number's: ours
_SEVERAL = (2, 3, 4)  # elements that a round stores side by side, as `vectors` takes them: ours
_FEW = 16  # threads of a block, or that work, below which most lanes of a warp idle anyway: ours
_AXES = [{f"threadIdx.{axis}", f"blockIdx.{axis}"} for axis in "xyz"]


def rows(kernel: Kernel, *, broken: bool = False) -> tuple[Axis, ...]:
    """The outermost loops that walk along rows, each thread along its own.

    Whoever takes ``broken`` ones looks at what ends these. Raises NotLegal where there are some
    that nothing may be moved across.
    """
    axes, effects = kernel.axes(), Effects(kernel)
    found: list[Axis] = []
    inside: set[Loop] = set()
    for loop in loops_in(kernel.function.body):
        axis = axes.get(loop)
        if loop in inside or axis is None:
            continue
        if any(along(kernel, axis, access) for access in effects.accesses(loop)):
            found.append(axis)
            inside |= set(loops_in(loop.body))
    if found:
        effects.straightforward()
    for axis in found:
        if not axis.exact and not (broken and axis.broken):
            raise NotLegal(f"the loop has another way out: {axis.reason}", axis.line)
    return tuple(found)


def finer(kernel: Kernel, found: tuple[Axis, ...]) -> tuple[Axis, ...]:
    """Rows inside of rows, of a warp's length or more, whose sums the rounds of these add up.

    ``acc += scale[g] * partial``, where ``partial`` is that of the group ``g`` of a row: lanes that
    share the groups read as far apart as threads did, and those that share each of them do not.
    They combine behind the outer loop. Empty where rows are none of these.
    """
    axes, effects, inner = kernel.axes(), Effects(kernel), list[Axis]()
    for outer in found:
        within = [axes[loop] for loop in loops_in(outer.node.body) if loop in axes]
        walked = [
            a for a in within if any(along(kernel, a, one) for one in effects.accesses(a.node))
        ]
        if not walked or not all(_long(kernel, axis) for axis in walked):
            return ()
        inner += walked
    around = {axis.name for axis in found}
    sums = {r.place: r for r in kernel.reading.reductions if any(a.name in r.axes for a in inner)}
    anew = {place: r for place, r in sums.items() if not around & {*r.axes}}
    changed = {v for axis in inner for v in effects.changed(axis.node.body)}
    own = {v: anew[v.name] for v in changed if v.name in anew}
    kept = outward(kernel, effects, own, [a.node for a in inner], kernel.function.body)
    return tuple(inner) if sums and kept.keys() == own.keys() else ()


def within(kernel: Kernel, found: tuple[Axis, ...]) -> tuple[Axis, ...]:
    """Rows inside of rows, of a warp's length or more: what is found anew in each round of these.

    The greatest of a row, then the greatest of the others: a round asks for what the one before
    left behind, and all of it walks along another row.
    """
    axes, effects, inner = kernel.axes(), Effects(kernel), list[Axis]()
    done = set[Loop]()
    for outer in found:
        for loop in loops_in(outer.node.body):
            axis = axes.get(loop)
            if loop in done or axis is None or not _long(kernel, axis):
                continue
            if any(along(kernel, axis, access) for access in effects.accesses(loop)):
                inner.append(axis)
                done |= {*loops_in(loop.body)}
    return tuple(inner)


def _long(kernel: Kernel, axis: Axis) -> bool:
    """Whether a warp has something to do in each round of the loop around, as far as is known."""
    length = mean_rounds(kernel, axis)
    return axis.exact and (length or _WARP) >= _WARP


def in_strips(kernel: Kernel, axis: Axis, access: Access) -> bool:
    """Whether a thread may take elements of several rounds at once.

    They are of a row, or side by side what a step of a path stores.
    """
    return along(kernel, axis, access) or _leaves(axis, access)


def _leaves(axis: Axis, access: Access) -> bool:
    """Whether the next round stores so far behind as several elements reach."""
    by = access.offset.coefficient(axis.name) if access.offset is not None else None
    several = {n * (access.element.size or 0) for n in _SEVERAL}
    return access.mode == "store" and by is not None and bool(by.value) and by.value in several


def along(kernel: Kernel, axis: Axis, access: Access) -> bool:
    """Whether the rounds take neighbouring elements, and the threads such that lie apart."""
    form, size = access.offset, access.element.size
    by = form.coefficient(axis.name) if form is not None else None
    if form is None or by is None or by.value is None or not size:
        return False
    array = kernel.reading.arrays.get(access.array)
    whole = array.element.size or 0 if array is not None else 0
    if abs(by.value) not in (size, whole if whole <= _WIDEST else size):
        return False
    if min(_threads(kernel), working(kernel) or _WARP) < _FEW:  # few neighbours to load beside
        return True
    return _differs(kernel, form.without([axis.name])) and not _beside(kernel, form, abs(by.value))


def _beside(kernel: Kernel, form: Polynomial, far: int) -> bool:
    """Whether the next thread takes what lies so many bytes on, or less, as the next round does."""
    thread = form.coefficient(_THREAD)
    if thread is None or thread.terms:
        return thread is not None and thread.value is not None and abs(thread.value) <= far
    moved = _moved(kernel, form)
    return moved is not None and 0 < abs(moved) <= far


def _moved(kernel: Kernel, form: Polynomial) -> Fraction | None:
    """How far a form moves from thread to thread, a quotient on average; None if none knows."""
    symbols, found = kernel.reading.symbols, Fraction(0)
    for name in form.symbols:
        if _THREAD not in symbols.inside(Polynomial.symbol(name)):
            continue
        times = form.coefficient(name)
        if times is None or times.value is None:
            return None
        if name == _THREAD:
            found += times.value
            continue
        symbol = symbols[name]
        by = value(kernel, symbol.arguments[1]) if symbol.op == "/" else None
        inner = _moved(kernel, symbol.arguments[0]) if by else None
        if by is None or inner is None:
            return None
        found += times.value * inner / by
    return found


def stored_in_parts(kernel: Kernel, found: Iterable[Axis]) -> bool:
    """Whether rounds test for each element of a row whether they store it.

    No vector brings such elements back: lanes that had several neighbours each would store into a
    part of a sector at a time.
    """
    inside = kernel.reading.symbols.inside
    return any(
        access.mode == "store" and access.space == "global" and axis.name in access.loops
        and along(kernel, axis, access)
        and any(
            isinstance(part, Compare) and axis.name in inside(part.form)
            for condition in access.guard for part in condition.conjuncts()
            if part not in {*axis.test.conjuncts()}
        )
        for axis in found for access in kernel.reading.accesses
    )  # fmt: skip


def across(kernel: Kernel, found: tuple[Axis, ...]) -> bool:
    """Whether rounds of these take elements, too, that lie beside those of neighbouring threads.

    As of a matrix of which half is stored, or of one that is taken by rows and by columns: a warp
    reads whole sectors of both where some of its lanes share rows and the others are neighbours.
    """
    effects, inside = Effects(kernel), kernel.reading.symbols.inside
    loads = [(axis, a) for axis in found for a in effects.accesses(axis.node) if a.mode == "load"]
    return any(
        access.offset is not None
        and (by := access.offset.coefficient(_THREAD)) is not None
        and by.value in (access.element.size, -(access.element.size or 0))
        and axis.name in inside(access.offset)
        and not along(kernel, axis, access)
        and not _near(axis, access)
        for axis, access in loads
    )


def _near(axis: Axis, access: Access) -> bool:
    """Whether the rounds of a thread take neighbouring elements."""
    by = access.offset.coefficient(axis.name) if access.offset is not None else None
    size = access.element.size or 0
    return by is not None and by.value in (size, -size)


def _threads(kernel: Kernel) -> int:
    """The threads of a block; as many as a warp where that is not known."""
    return math.prod(extent or _WARP for extent in kernel.block)


def _differs(kernel: Kernel, form: Polynomial) -> bool:
    """Whether neighbouring threads have other values of a form, more often than once a warp."""
    symbols = kernel.reading.symbols
    for name in form.symbols:
        if name == _THREAD or symbols[name].kind == "unknown":
            return True
        if _THREAD not in symbols.inside(Polynomial.symbol(name)):
            continue
        arguments = symbols[name].arguments
        by = value(kernel, arguments[1]) if symbols[name].op == "/" else None
        if by is not None and by >= _WARP:
            continue
        if not arguments or any(_differs(kernel, inner) for inner in arguments):
            return True
    return False


def others_load(kernel: Kernel, found: tuple[Axis, ...]) -> bool:
    """Whether all that loops load the outputs along some axis of the launch load as well.

    Then a block that brings it for many outputs loads it less often than lanes do for each.
    """
    inside, effects = kernel.reading.symbols.inside, Effects(kernel)
    loaded = [a for axis in found for a in effects.accesses(axis.node) if a.mode == "load"]
    stored = [a for a in kernel.reading.accesses if a.mode == "store" and a.space == "global"]
    used = [inside(a.offset) for a in stored if a.offset is not None]
    axes = [a for a in _AXES if any(a & names for names in used)]
    return bool(loaded) and all(
        access.offset is not None and any(not a & inside(access.offset) for a in axes)
        for access in loaded
    )
