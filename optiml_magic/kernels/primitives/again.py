"""Loops of a thread that go over the same elements: what it may keep from one to the next."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from optiml_magic.kernels.expressions import Assign, Call, Expr, Name, every
from optiml_magic.kernels.polynomial import Polynomial
from optiml_magic.kernels.primitives.base import Kernel, NotLegal
from optiml_magic.kernels.primitives.effects import Effects, is_counted, loops_in
from optiml_magic.kernels.primitives.items import element
from optiml_magic.kernels.primitives.places import code
from optiml_magic.kernels.primitives.rounds import moves
from optiml_magic.kernels.reading import Access, Axis
from optiml_magic.kernels.symbols import Compare
from optiml_magic.kernels.tree import Block, Declare, Evaluate, Loop, walk

_ROUND = Polynomial.symbol("@round")


@dataclass(frozen=True)
class Kept:
    """The accesses to one element a round of an array; ``loads`` where it must be loaded first."""

    array: str
    kind: str
    size: int
    accesses: tuple[Access, ...]
    source: Expr | None  # what stands for the element in the first loop that touches it


@dataclass(frozen=True)
class Again:
    """Loops side by side whose rounds are the same, and what they touch more than once."""

    numbers: tuple[int, ...]
    axes: tuple[Axis, ...]
    kept: tuple[Kept, ...]

    @property
    def bytes(self) -> int:
        """What a round keeps."""
        return sum(one.size for one in self.kept)

    @property
    def widest(self) -> int:
        """The bytes of its largest access."""
        return max(one.size for one in self.kept)


def again(kernel: Kernel, own: frozenset[str] = frozenset()) -> tuple[Again, ...]:
    """The groups of loops that touch the same elements.

    Of the arrays that are a round's ``own`` each element was touched by one round of each loop,
    before rounds were taken as vectors: what these left over touches others. Raises NotLegal where
    there are some that nothing may be moved across.
    """
    effects, axes, found = Effects(kernel), kernel.axes(), list[Again]()
    loops = loops_in(kernel.function.body)
    for block in (s for s in walk(kernel.function.body) if isinstance(s, Block)):
        side = [axes[s] for s in block.body if isinstance(s, Loop) and s in axes]
        for same in _alike(side, _extents(kernel)):
            kept = tuple(_kept(kernel, same, effects, own))
            if kept:
                touched = {a.own for one in kept for a in one.accesses}
                used = [x for x in same if touched & effects.inside(x.node)]
                numbers = tuple(loops.index(x.node) for x in used)
                found.append(Again(numbers, tuple(used), kept))
    if found:
        effects.straightforward(lanes=True, alone=False)
        if "volatile" in code(kernel.unit, kernel.function.span):
            raise NotLegal("its memory may change at any time")
    return tuple(found)


def _alike(axes: Iterable[Axis], held: frozenset[str]) -> Iterator[list[Axis]]:
    """The loops, of those side by side, that make the same rounds.

    Those that begin behind what is ``held`` in local arrays are what a step like this has left.
    """
    groups: list[list[Axis]] = []
    for axis in axes:
        if axis.scaled or axis.step is None or axis.variable is None or not axis.exact:
            continue
        if axis.start is None or axis.start.symbols & held:
            continue
        group = next((g for g in groups if rounds_made(g[0]) == rounds_made(axis)), None)
        if group is None:
            groups.append([axis])
        else:
            group.append(axis)
    return (group for group in groups if len(group) > 1)


def _extents(kernel: Kernel) -> frozenset[str]:
    """The names of how many elements local arrays have."""
    own = (a for a in kernel.reading.arrays.values() if a.space == "local")
    return frozenset(n for a in own for e in a.extents if e is not None for n in e.symbols)


def rounds_made(axis: Axis) -> object:
    """What decides which rounds a loop makes; equal for loops that make the same."""
    test = axis.test  # equal guards also say that no thread leaves between two loops
    form = by_round(test.form, axis) if isinstance(test, Compare) else None
    if form is None or axis.start is None:
        return axis
    return axis.start, axis.step, axis.stop, form, axis.guard


def by_round(form: Polynomial, axis: Axis) -> Polynomial | None:
    """A form over the round, whichever loop that is of."""
    by = form.coefficient(axis.name)
    return None if by is None else form.without([axis.name]) + by * _ROUND


def _kept(
    kernel: Kernel, axes: Sequence[Axis], effects: Effects, own: frozenset[str]
) -> Iterator[Kept]:
    """The elements that at least two of these loops touch, and may have for themselves."""
    found: dict[tuple[str, str, Polynomial], list[Access]] = {}
    for axis in axes:
        for access in effects.accesses(axis.node.body):
            form = _element(kernel, axis, access, effects)
            if form is not None:
                found.setdefault((access.array, access.element.name, form), []).append(access)
    for (array, kind, _), accesses in found.items():
        touching = [x for x in axes if any(x.name in a.loops for a in accesses)]
        first = [a for a in accesses if touching[0].name in a.loops]
        sure = next((a for a in first if always(a, touching[0])), None)
        loaded = any(a.mode == "load" for a in accesses)
        if len(touching) < 2 or sure is None or not loaded or array in effects.moved:
            continue
        if not _alone(kernel, axes, accesses, effects, own):
            continue
        begins = first[0]
        fills = begins.mode == "store" and begins is sure and _plain_store(begins)
        source = None if fills else element(effects, sure)
        if fills or (source is not None and stands(source, touching[0], effects)):
            yield Kept(array, kind, accesses[0].element.size or 0, tuple(accesses), source)


def _element(kernel: Kernel, axis: Axis, access: Access, effects: Effects) -> Polynomial | None:
    """Where an access is in a round; None where that cannot stay in a register."""
    form, symbols = access.offset, kernel.reading.symbols
    inner = {a.name for a in kernel.reading.axes if a.node in set(loops_in(axis.node.body))}
    kind = access.element
    if form is None or axis.name not in form.symbols or access.mode == "atomic":
        return None
    by = by_round(form, axis)
    if by is None or kind.depth or not kind.size or kind.kind not in ("int", "float", "vector"):
        return None
    if ({axis.name} | inner) & symbols.inside(form.without([axis.name])):
        return None
    if not symbols.known(form) or element(effects, access) is None:
        return None
    return by


def always(access: Access, axis: Axis) -> bool:
    """Whether every round of a loop makes an access, once."""
    return access.loops[-1] == axis.name and all(
        part in axis.held for c in access.guard for part in c.conjuncts()
    )


def _plain_store(access: Access) -> bool:
    return isinstance(access.node, Assign) and access.node.op == "="


def _alone(
    kernel: Kernel, axes: Sequence[Axis], accesses: Sequence[Access], effects: Effects,
    own: frozenset[str],
) -> bool:  # fmt: skip
    """Whether nobody else changes the elements from the first of the loops to the last.

    Those of an array that is written are a thread's own where nothing else touches it, and all
    stores are made in every round: another thread would store there in the same loop.
    """
    same = [a for a in kernel.reading.accesses if effects.same(a.array, accesses[0].array)]
    if all(a.mode == "load" for a in same):
        return True
    others = [a for a in same if a not in accesses]
    left = accesses[0].array in own and all(_is_left(kernel, axes[0], a) for a in others)
    if others and not left:
        return False
    by_name = {axis.name: axis for axis in axes}
    for access in accesses:
        axis = by_name[next(name for name in access.loops if name in by_name)]
        stored = isinstance(access.node, Assign) and access.call is None
        if access.mode == "store" and not (
            stored and always(access, axis) and moves(kernel, axis, access, axis.node)
            and any(isinstance(s, Evaluate) and s.expression is access.node
                    for s in walk(axis.node.body))
        ):  # fmt: skip
            return False
    return True


def _is_left(kernel: Kernel, axis: Axis, access: Access) -> bool:
    """Whether a loop makes it that goes on where the vectors of another one end."""
    begins = [a.start for a in kernel.reading.loops(access) if a.start is not None]
    ends = axis.stop.symbols if axis.stop is not None else frozenset()
    return bool(ends) and any(ends <= start.symbols for start in begins)


def stands(source: Expr, axis: Axis, effects: Effects) -> bool:
    """Whether an expression means the same before a loop, but for its counter.

    Where the loop is not counted yet, its counter may change in it.
    """
    inside = {v for s in walk(axis.node.body) if isinstance(s, Declare) for v in s.variables}
    changed = {*inside, *effects.changed(axis.node.body)}
    changed -= set() if is_counted(axis, effects) else {axis.variable}
    parts = [*every(source)]
    if any(
        isinstance(e, Assign | Call) or (isinstance(e, Name) and e.variable in changed)
        for e in parts
    ):
        return False
    places, rounds = {*parts} - {source}, effects.inside(axis.node.body)
    accesses = effects.kernel.reading.accesses
    asked = {a.array for a in accesses if a.node in places}
    stored = {a.array for a in accesses if a.mode != "load" and a.own in rounds}
    return not any(effects.same(one, other) for one in asked for other in stored)
