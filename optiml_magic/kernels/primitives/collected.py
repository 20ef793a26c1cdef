"""P24, aggregate atomics: what rounds of a loop add to one place, a thread adds up first.

``for (...) atomicAdd(&sum, x[k]);`` becomes ``float part = 0; for (...) part += x[k];`` and one
atomic operation behind the loop. What a block or a thread adds up is then seen to be a reduction.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from optiml_magic.kernels.combining import same
from optiml_magic.kernels.editing import Node, edited, lines
from optiml_magic.kernels.expressions import Assign, Call, Expr, Lambda, Step, Unread, every
from optiml_magic.kernels.functions import BLOCK_BARRIERS, WARP_BARRIERS, bare
from optiml_magic.kernels.primitives.base import Kernel, NotLegal, Refused, primitive, where_legal
from optiml_magic.kernels.primitives.effects import Effects, names
from optiml_magic.kernels.primitives.staged import hints_of
from optiml_magic.kernels.primitives.updates import Update, Updated, converted, updated
from optiml_magic.kernels.reading import Access, Axis
from optiml_magic.kernels.symbols import Condition
from optiml_magic.kernels.tree import Declare, Leave, Loop, Statement, walk


@dataclass(frozen=True, eq=False)
class Collected:
    """The ``updates`` of one place in a loop; ``certain`` where it is there without a round."""

    whole: Updated
    axis: Axis
    updates: tuple[Update, ...]
    certain: bool

    @property
    def address(self) -> Expr:
        return address(self.updates[0])


@primitive
def collected(kernel: Kernel) -> Kernel:
    """The kernel with one atomic operation behind a loop for each place that its rounds update."""
    found = collecting(kernel)
    if not found:
        raise NotLegal("no rounds of a loop update one place")
    changes, taken = dict[Node, Node | tuple[Statement, ...] | None](), list[str]()
    for loop in dict.fromkeys(one.axis.node for one in found):
        begun, behind, swaps = list[str](), list[str](), dict[Node, Node]()
        for one in (one for one in found if one.axis.node is loop):
            whole = one.whole
            name = kernel.fresh(f"{whole.array.rpartition('.')[2]}_part", *taken)
            taken.append(name)
            begun.append(f"{whole.kind} {name} = {whole.identity};")
            for update in one.updates:
                value = converted(kernel, whole, update)
                if whole.op in ("min", "max") and not value.startswith("("):
                    value = f"({whole.kind}){value}"
                swaps[update.statement] = lines(whole.combining(name, value))
            place = kernel.spelled(one.address)
            test = "" if one.certain else f"if ({name} != {whole.identity}) "
            behind.append(f"{test}{whole.function}({place}, {name});")
        hints = hints_of(kernel, loop)
        told = [lines(kernel.show(hint).strip()) for hint in hints]
        changes |= dict.fromkeys(hints)
        changes[loop] = (*map(lines, begun), *told, edited(loop, swaps), *map(lines, behind))
    made = kernel.rewritten(edited(kernel.function.body, changes))
    return where_legal(collected, made)  # inner loops may have places of their own


def collecting(kernel: Kernel) -> list[Collected]:
    """What may be collected, in the outermost loop in which it may, where that is in no other."""
    if not any(a.mode == "atomic" and a.loops for a in kernel.reading.accesses):
        return []
    effects = Effects(kernel)
    effects.straightforward(lanes=True, alone=False)
    found, reasons, inner = list[Collected](), list[NotLegal](), set[Loop]()
    for loop, axis in kernel.axes().items():
        if loop in inner:
            continue
        try:
            own = [*_in_loop(kernel, effects, axis)]
        except NotLegal as reason:
            reasons.append(reason)
            continue
        if own:
            found += own
            inner |= {s for s in walk(loop.body) if isinstance(s, Loop)}
    if not found and reasons:
        raise reasons[-1]
    return found


def address(update: Update) -> Expr:
    """What the atomic operation is given as its place."""
    assert isinstance(update.access.node, Call)
    return update.access.node.arguments[0]


def _in_loop(kernel: Kernel, effects: Effects, axis: Axis) -> Iterator[Collected]:
    loop = axis.node
    inside = effects.inside(loop)
    atomics = [a for a in kernel.reading.accesses if a.own in inside and a.mode == "atomic"]
    if not atomics:
        return
    found = list[Updated]()
    for one in updated(kernel, loop, ("global", "shared")):
        if isinstance(one, Refused):
            raise NotLegal(one.reason, one.line)
        found.append(one)
    _check_alone(kernel, effects, axis)
    for one in found:
        places = list[list[Update]]()
        for update in one.updates:
            if not _steady(kernel, effects, loop, address(update)):
                continue
            known = (own for own in places if same(address(own[0]), address(update)))
            own = next(known, None)
            if own is None:
                places.append(own := [])
            own.append(update)
        for own in places:
            certain = _there(kernel, own[0].access) or _in_each(axis, own)
            yield Collected(one, axis, tuple(own), certain)


def _check_alone(kernel: Kernel, effects: Effects, axis: Axis) -> None:
    """Raise NotLegal where others may ask for what rounds have done before the loop is over."""
    loop = axis.node
    for barrier in kernel.reading.barriers:
        if axis.name in barrier.loops:
            raise NotLegal("threads wait for each other in the loop", barrier.line)
    for e in effects.inside(loop):
        if isinstance(e, Call):
            waits = bare(e.function) in BLOCK_BARRIERS | WARP_BARRIERS
            if waits or bare(e.function).startswith("__threadfence") or e.receiver is not None:
                raise NotLegal("threads tell each other something in the loop", loop.line)
        if isinstance(e, Lambda | Unread):
            raise NotLegal("a part of the loop is not read", loop.line)
    if any(v.type.volatile for v in names(effects.inside(loop))):
        raise NotLegal("threads tell each other something in the loop", loop.line)
    for statement in walk(loop):
        if isinstance(statement, Leave) and statement.kind == "return":
            raise NotLegal("the kernel may end in the loop", statement.line)


def _steady(kernel: Kernel, effects: Effects, loop: Loop, place: Expr) -> bool:
    """Whether an address is the same in all rounds, and behind the loop."""
    # Where a shared variable is stays, and what it holds is loaded.
    own = {v for v in names([place]) if v.storage != "shared" or v.type.depth}
    parts = {*every(place)}
    if any(isinstance(e, Call | Assign | Step) for e in parts):
        return False
    inner = {v for s in walk(loop) if isinstance(s, Declare) for v in s.variables}
    if own & (inner | effects.changed(loop).keys()):
        return False
    written = kernel.reading.written
    loaded = (a.array for a in kernel.reading.accesses if a.own in parts and a.mode == "load")
    return not any(effects.same(array, other) for array in loaded for other in written)


def _there(kernel: Kernel, access: Access) -> bool:
    """Whether the place is one of a shared array, whatever the loop does."""
    array = kernel.reading.arrays.get(access.array)
    at = access.index.value if access.index is not None else None
    if array is None or array.space != "shared" or at is None:
        return False
    extents = [e.value if e is not None else None for e in array.extents]
    if not extents:
        return at == 0
    count = 1
    for extent in extents:
        count *= extent or 0
    return 0 <= at < count


def _in_each(axis: Axis, updates: Sequence[Update]) -> bool:
    """Whether there is a round that updates the place."""

    def known(guard: Sequence[Condition]) -> set[Condition]:
        return {part for condition in guard for part in condition.conjuncts()}

    sure = known((*axis.guard, axis.test))
    each = any(
        known(u.access.guard) <= sure and u.access.loops[-1:] == (axis.name,) for u in updates
    )
    return each and (axis.first or bool(axis.trips))
