"""P13, hoist: what each round loads anew from where no round moves is loaded once, before the loop.

A compiler keeps no load over a barrier, and makes none that a guard may have left out. Where
nothing that the kernel stores is there, and one thread of the block is certain to load it in the
first round, a local in front of the loop holds it.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass
from functools import partial

from optiml_magic.kernels.editing import Node, edited, lines, text
from optiml_magic.kernels.expressions import Expr, Index
from optiml_magic.kernels.polynomial import Polynomial
from optiml_magic.kernels.primitives.accumulating import first_test
from optiml_magic.kernels.primitives.base import Kernel, NotLegal, primitive
from optiml_magic.kernels.primitives.effects import Effects, names
from optiml_magic.kernels.primitives.loaded_elements import is_number, whole_element
from optiml_magic.kernels.primitives.staged import hints_of
from optiml_magic.kernels.ranges import Ranges
from optiml_magic.kernels.reading import Access, Axis
from optiml_magic.kernels.symbols import THREADS, Compare, Condition
from optiml_magic.kernels.tree import Block, Declare, Loop, Statement, walk
from optiml_magic.kernels.types import CType

_MOST = 16  # locals; ours
_WORD = 4
_Swaps = dict[Node, Node | tuple[Statement, ...] | None]


@dataclass(frozen=True)
class _Load:
    """The expressions in a loop that load one element; ``test`` says whether there is a round."""

    axis: Axis
    array: str
    kind: CType
    words: str
    test: str
    places: tuple[Index, ...]
    own: bool  # whether it says which thread it is

    @property
    def locals(self) -> int:
        """As many as the numbers of 4 bytes that it has, where it has several."""
        return 1 if is_number(self.kind) else -(-(self.kind.size or 0) // _WORD)


@primitive
def loaded_before(kernel: Kernel) -> Kernel:
    """What loops whose rounds wait for each other load from one place is loaded before them."""
    effects = Effects(kernel)
    effects.straightforward(alone=False)
    found = _loads(kernel, effects, partial(_waits, kernel))
    if not found:
        raise NotLegal("no round that waits loads from where no round moves")
    return _before(kernel, found)


@primitive
def own_loaded_before(kernel: Kernel) -> Kernel:
    """What rounds load from one place of the thread's own, an element, is loaded before them.

    Also where no round waits: a step behind this one may make rounds that do.
    """
    effects = Effects(kernel)
    effects.straightforward()
    found = tuple(one for one in _loads(kernel, effects, lambda _: True) if one.own)
    if not found:
        raise NotLegal("no round loads an element of the thread's own from where no round moves")
    return _before(kernel, found)


def _before(kernel: Kernel, found: Sequence[_Load]) -> Kernel:
    if sum(load.locals for load in found) > _MOST:
        raise NotLegal("a thread has no room for what its rounds load")
    above: dict[Loop, list[Statement]] = {}
    swaps: _Swaps = {}
    taken = list[str]()
    for load in found:
        taken.append(kernel.fresh(f"{load.array}_here", *taken))
        none = f"{load.kind.name}(0)" if is_number(load.kind) else f"{load.kind.name}{{}}"
        value = f"{load.test} ? {load.words} : {none}" if load.test else load.words
        made = lines(f"const {load.kind.name} {taken[-1]} = {value};")
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


def _loads(
    kernel: Kernel, effects: Effects, wanted: Callable[[Axis], bool]
) -> tuple[_Load, ...]:  # fmt: skip
    axes, touching = kernel.axes(), {one.own for one in kernel.reading.accesses}
    groups: dict[tuple[Axis, str], list[tuple[Access, Index, str | None]]] = {}
    for access in kernel.reading.accesses:
        place = whole_element(kernel, effects, access, touching)
        if place is None:
            continue
        around = [kernel.reading.axis(name) for name in access.loops]
        if any(axes.get(axis.node) is not axis for axis in around):
            continue
        for at, axis in enumerate(around):
            if wanted(axis) and _stays(effects, axis, place):
                words = kernel.spelled(place)
                test = _first(kernel, effects, access, around[at:])
                groups.setdefault((axis, words), []).append((access, place, test))
                break
    return tuple(_found(kernel, groups))


def _found(
    kernel: Kernel, groups: dict[tuple[Axis, str], list[tuple[Access, Index, str | None]]]
) -> Iterator[_Load]:  # fmt: skip
    for (axis, words), group in groups.items():
        tests = [test for _, _, test in group if test is not None]
        if tests:
            access = group[0][0]
            kind = kernel.reading.arrays[access.array].element
            places = tuple(dict.fromkeys(place for _, place, _ in group))
            own = bool(THREADS & kernel.reading.symbols.depends(access.index or Polynomial()))
            yield _Load(axis, access.array, kind, words, min(tests), places, own=own)


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
