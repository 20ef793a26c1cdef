"""P13, hoist: what each round loads anew from where no round moves is loaded once, before the loop.

A compiler keeps no load over a barrier, and makes none that a guard may have left out. Where
nothing that the kernel stores is there, and one thread of the block is certain to load it in the
first round, a local in front of the loop holds it.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass

from optiml_magic.kernels.editing import Node, edited, lines, text
from optiml_magic.kernels.expressions import Expr, Index, Name
from optiml_magic.kernels.polynomial import Polynomial
from optiml_magic.kernels.primitives.accumulating import first_test
from optiml_magic.kernels.primitives.base import Kernel, NotLegal, primitive
from optiml_magic.kernels.primitives.effects import Effects, names
from optiml_magic.kernels.primitives.items import element, is_plain
from optiml_magic.kernels.primitives.staged import hints_of
from optiml_magic.kernels.primitives.tabulated import is_value
from optiml_magic.kernels.ranges import Ranges
from optiml_magic.kernels.reading import Access, Axis
from optiml_magic.kernels.symbols import THREADS, Compare, Condition
from optiml_magic.kernels.tree import Block, Declare, Loop, Statement, walk

_MOST = 16  # locals; ours
_Swaps = dict[Node, Node | tuple[Statement, ...] | None]


@dataclass(frozen=True)
class _Load:
    """The expressions in a loop that load one element; ``test`` says whether there is a round."""

    axis: Axis
    array: str
    kind: str
    words: str
    test: str
    places: tuple[Expr, ...]


@primitive
def loaded_before(kernel: Kernel) -> Kernel:
    """What loops whose rounds wait for each other load from one place is loaded before them."""
    found = _loads(kernel)
    if not found:
        raise NotLegal("no round that waits loads from where no round moves")
    if len(found) > _MOST:
        raise NotLegal("a thread has no room for what its rounds load")
    above: dict[Loop, list[Statement]] = {}
    swaps: _Swaps = {}
    taken = list[str]()
    for load in found:
        taken.append(kernel.fresh(f"{load.array}_here", *taken))
        value = f"{load.test} ? {load.words} : {load.kind}(0)" if load.test else load.words
        made = lines(f"const {load.kind} {taken[-1]} = {value};")
        above.setdefault(load.axis.node, []).append(made)
        swaps |= dict.fromkeys(load.places, text(taken[-1]))
    body = edited(kernel.function.body, swaps)
    loops = zip(*([s for s in walk(b) if isinstance(s, Loop)]
                  for b in (kernel.function.body, body)), strict=True)  # fmt: skip
    whole: _Swaps = {}
    for old, new in loops:
        if old in above:
            hints = hints_of(kernel, old)
            told = [lines(kernel.show(hint).strip()) for hint in hints]
            whole |= dict.fromkeys(hints)
            whole[new] = (*above[old], *told, new)
    return kernel.rewritten(_placed(body, whole))


def _placed(body: Block, whole: _Swaps) -> Block:
    """A body with statements exchanged, loops within others first."""
    for loop in [s for s in walk(body) if isinstance(s, Loop) and s in whole][::-1]:
        within = {*walk(loop)} - {loop}
        inner: _Swaps = {s: new for s, new in whole.items() if s in within}
        made = whole[loop]
        if inner and isinstance(made, tuple):
            whole[loop] = (*made[:-1], edited(loop, inner))
    return edited(body, whole)


def _loads(kernel: Kernel) -> tuple[_Load, ...]:
    effects, axes = Effects(kernel), kernel.axes()
    effects.straightforward(alone=False)
    groups: dict[tuple[Axis, str], list[tuple[Access, Expr, str | None]]] = {}
    for access in kernel.reading.accesses:
        place = element(effects, access) if access.mode == "load" else None
        if place is None or not _is_kept(kernel, effects, access, place):
            continue
        around = [kernel.reading.axis(name) for name in access.loops]
        if any(axes.get(axis.node) is not axis for axis in around):
            continue
        for at, axis in enumerate(around):
            if _waits(kernel, axis) and _stays(effects, axis, place):
                words = kernel.spelled(place)
                test = _first(kernel, effects, access, around[at:])
                groups.setdefault((axis, words), []).append((access, place, test))
                break
    return tuple(_found(groups))


def _found(
    groups: dict[tuple[Axis, str], list[tuple[Access, Expr, str | None]]],
) -> Iterator[_Load]:
    for (axis, words), group in groups.items():
        tests = [test for _, _, test in group if test is not None]
        if tests:
            access = group[0][0]
            places = tuple(place for _, place, _ in group)
            yield _Load(axis, access.array, access.element.name, words, min(tests), places)


def _is_kept(kernel: Kernel, effects: Effects, access: Access, place: Expr) -> bool:
    """Whether a load takes a plain element that stays the same as long as the kernel runs."""
    if access.space != "global" or access.call is not None or access.verbatim:
        return False
    if not isinstance(place, Index) or not isinstance(place.base, Name):
        return False
    pointer = place.base.variable
    plain = pointer in kernel.function.parameters and is_plain(kernel, access)
    if not plain or pointer is None or access.index is None or pointer.name in effects.moved:
        return False
    if pointer.type.volatile or access.element.kind == "vector":
        return False
    touching = {one.own for one in kernel.reading.accesses}
    if not is_value(kernel, place.index, touching) or not kernel.reading.symbols.known(
        access.index
    ):
        return False
    return not any(effects.same(access.array, other) for other in kernel.reading.written)


def _waits(kernel: Kernel, axis: Axis) -> bool:
    return any(axis.name in barrier.loops for barrier in kernel.reading.barriers)


def _stays(effects: Effects, axis: Axis, place: Expr) -> bool:
    """Whether an expression means the same before a loop as in all of its rounds."""
    loop = axis.node
    blocks = (s for s in walk(effects.kernel.function.body) if isinstance(s, Block))
    declared = {v for s in walk(loop) if isinstance(s, Declare) for v in s.variables}
    moving = {*declared, *effects.changed(loop)}
    return any(loop in block.body for block in blocks) and not moving & names([place])


def _first(kernel: Kernel, effects: Effects, access: Access, around: list[Axis]) -> str | None:
    """What says that some thread loads an element in the first rounds; None where none need do so.

    It is the thread itself, or, of an element that does not say which thread it is, the first one
    of the block.
    """
    if access.index is None or not all(one.exact for one in around):
        return None
    found = [_asked(kernel, access, around, set())]
    if not kernel.reading.symbols.depends(access.index) & THREADS:
        found.insert(0, _asked(kernel, access, around, THREADS))
    if False in found:
        return ""
    try:
        return first_test(kernel, effects, around[0]) if True in found else None
    except NotLegal:
        return None


def _asked(
    kernel: Kernel, access: Access, around: list[Axis], first: Collection[str]
) -> bool | None:
    """Whether the loop's test says that a load is made; False where it is anyway, None elsewhere.

    The indices of the thread that makes it are 0 where they are in ``first``.
    """
    axis, zeros = around[0], {one.name for one in around} | {*first}
    held = [p for c in axis.guard for p in c.conjuncts() if not p.depends & {*first}]
    tests = [] if axis.first else [p for p in axis.test.conjuncts() if not p.depends & {*first}]
    begun = [Compare(p.op, p.form.without(zeros), p.roots) for p in tests if isinstance(p, Compare)]
    asked, symbols = False, kernel.reading.symbols
    always, then = Ranges(held, symbols), Ranges([*held, *begun], symbols)
    for part in (part for c in access.guard for part in c.conjuncts()):
        if part not in held and not _holds(part, zeros, always, kernel):
            if part not in tests and not _holds(part, zeros, then, kernel):
                return None
            asked = True
    return asked


def _holds(part: Condition, zeros: set[str], ranges: Ranges, kernel: Kernel) -> bool:
    """Whether a condition holds in the first rounds, and for the first thread if it is among."""
    if not isinstance(part, Compare):
        return False
    form = part.form.without(zeros)
    if zeros & kernel.reading.symbols.inside(form):
        return False
    if part.op == ">=":
        return ranges.nonnegative(form)
    if part.op == "==":
        return form == Polynomial()
    return ranges.nonnegative(form - Polynomial.constant(1)) or ranges.nonnegative(
        -form - Polynomial.constant(1)
    )
