"""Whether the rounds of a loop may run side by side, each by a lane of its own."""

from __future__ import annotations

from collections.abc import Collection
from itertools import combinations

from optiml_magic.kernels.changes import closure_of
from optiml_magic.kernels.expressions import Assign, Call, Name, Step, every
from optiml_magic.kernels.polynomial import Polynomial
from optiml_magic.kernels.primitives import combine
from optiml_magic.kernels.primitives.base import Kernel, NotLegal
from optiml_magic.kernels.primitives.claims import claimed
from optiml_magic.kernels.primitives.effects import Effects, loops_in, names
from optiml_magic.kernels.primitives.selections import selected
from optiml_magic.kernels.primitives.updates import Updated, commuting, updated
from optiml_magic.kernels.ranges import Ranges
from optiml_magic.kernels.reading import Access, Axis, Reduction
from optiml_magic.kernels.subscripts import Subscript
from optiml_magic.kernels.tree import Declare, Evaluate, Loop, Variable, walk

_NONE = Polynomial()
_ACTS = (Assign, Call, Step)
_WIDE = 4  # bytes of a counter to which the steps of all lanes together may be added
_AT_ONCE = 1 << 13  # of all lanes, several rounds each


def _may_begin_far(kernel: Kernel, start: Polynomial) -> bool:
    """Whether an unsigned number was taken from a smaller one on the way to a first round."""
    symbols = kernel.reading.symbols
    wrapped = (s for n in symbols.inside(start) if (s := symbols[n]).op == "wrap")
    return any(factor < 0 for s in wrapped for _, factor in s.arguments[0].terms)


def _is_far(axis: Axis) -> bool:
    """Whether the rounds of all lanes are steps beyond what an int holds, where numbers say so."""
    ends = [abs(e.value) for e in (axis.start, axis.stop) if e is not None and e.value is not None]
    step = abs(axis.step.value or 0) if axis.step is not None else 0
    return max(ends, default=0) + _AT_ONCE * step >= 1 << 31


def shareable(
    kernel: Kernel,
    loop: Loop,
    effects: Effects,
    *,
    scanning: bool = False,
    divided: Collection[str] = (),
    broken: bool = False,
) -> tuple[Reduction, ...]:
    """The reductions of a loop whose rounds lanes may share; raises NotLegal for any other.

    Who is ``scanning`` looks by itself at what goes from round to round, and waits around the loop
    for what is done in it. Of local arrays that are ``divided`` each round has its own element.
    Who takes loops that are ``broken`` looks by itself at what ends these.
    """
    axis = counting(kernel, loop, effects, broken=broken)
    kept = effects.kept(loop.body, divided)
    if kept:
        raise NotLegal(f"`{kept}` goes from round to round", loop.line)
    reductions, passed = combined_in(kernel, axis, effects, loop)
    if passed and not scanning:
        raise NotLegal(f"`{passed[0].name}` goes from round to round", loop.line)
    for access in effects.accesses(loop):
        if access.mode == "store":
            _check_stores(kernel, axis, access, effects, loop)
    check_updates(kernel, effects, loop, loop if scanning else None)
    return reductions


def counting(kernel: Kernel, loop: Loop, effects: Effects, *, broken: bool = False) -> Axis:
    """A loop whose counter several may step over together; raises NotLegal for any other."""
    axis = kernel.axes().get(loop)
    if axis is None:
        raise NotLegal("a loop is not read", loop.line)
    if not axis.exact and not (broken and axis.broken):
        raise NotLegal(f"the loop has another way out: {axis.reason}", loop.line)
    if loop.kind != "for" or axis.variable is None or axis.scaled or axis.step is None:
        raise NotLegal("the loop does not count in steps", loop.line)
    kinds = (kernel.reading.types.get(e) for e in effects.inside(loop)
             if isinstance(e, Name) and e.variable is axis.variable)  # fmt: skip
    sizes = {kind.size or 0 for kind in kinds if kind is not None and kind.integral}
    if any(size < _WIDE or (size == _WIDE and _is_far(axis)) for size in sizes):
        raise NotLegal("its counter may not hold a longer step", loop.line)
    if axis.start is not None and _may_begin_far(kernel, axis.start):
        raise NotLegal("it may begin near the end of its type, which a step would pass", loop.line)
    changed = effects.changed(loop.body)
    if axis.variable.type.depth:
        raise NotLegal("a pointer counts its rounds", loop.line)
    if axis.variable in changed:
        raise NotLegal("its counter changes in the loop", loop.line)
    for variable in effects.mentions(loop):
        closure = closure_of(variable)
        if closure is not None and names([closure]) & {*changed, axis.variable}:
            raise NotLegal("a lambda asks for what goes from round to round", loop.line)
    return axis


def combined_in(
    kernel: Kernel, axis: Axis, effects: Effects, loop: Loop
) -> tuple[tuple[Reduction, ...], list[Variable]]:
    """What a loop combines, and what goes from round to round besides."""
    found = {r.place: r for r in kernel.reading.reductions if axis.name in r.axes}
    own, passed = list[Reduction](), list[Variable]()
    along = {
        v for r in found.values() if r.carried
        for v in selected(kernel, axis, loop, r, effects).carried
    }  # fmt: skip
    for variable in effects.changed(loop.body):
        reduction = found.get(variable.name)
        if variable in along:
            continue
        if reduction is None and effects.begun_anew(variable, loop):
            continue
        if reduction is None:
            passed.append(variable)
            continue
        combine.supported(reduction)
        own.append(reduction)
    return tuple(own), passed


def _check_stores(kernel: Kernel, axis: Axis, access: Access, effects: Effects, loop: Loop) -> None:
    """Rounds that run side by side must not meet in memory."""
    if _stores_alike(kernel, axis, access, effects, loop):
        return
    if not moves(kernel, axis, access, loop):
        raise NotLegal("two rounds may store to one element", access.line)
    for other in effects.accesses(loop):
        met = effects.same(other.array, access.array) and other.offset != access.offset
        if met and not _apart(axis, other, access) and not _mirrored(kernel, axis, other, access):
            raise NotLegal("a round may meet what another has stored", other.line)


def _stores_alike(kernel: Kernel, axis: Axis, access: Access, effects: Effects, loop: Loop) -> bool:
    """Whether all that is done to an array in a loop is to store one value, the same each round."""
    stores = [a for a in effects.accesses(loop) if effects.same(a.array, access.array)]
    once = {*effects.changed(loop), axis.variable}
    once |= {v for s in walk(loop) if isinstance(s, Declare) for v in s.variables}
    loads = {a.own for a in kernel.reading.accesses}
    words = set[str]()
    for store in stores:
        value = store.value
        plain = store.mode == "store" and not store.op and store.call is None
        if value is None or not plain or store.array != access.array:
            return False
        parts = {*every(value)}
        if names([value]) & once or parts & loads or any(isinstance(p, _ACTS) for p in parts):
            return False
        words.add(kernel.show(Evaluate(None, 0, value)))
    return len(words) == 1 and len({store.element for store in stores}) == 1


def check_updates(kernel: Kernel, effects: Effects, loop: Loop, within: Loop | None = None) -> None:
    """Rounds that run side by side do their atomic operations in any order.

    Nothing else is done to these elements, in the kernel or ``within`` a loop.
    """
    found = [access for access in effects.accesses(loop) if access.mode == "atomic"]
    commute = {u.access for own in updated(kernel, within) if isinstance(own, Updated)
               for u in own.updates} if found else set()  # fmt: skip
    commute |= commuting(kernel, within) | (claimed(kernel) if found else frozenset())
    for access in found:
        if access not in commute:
            raise NotLegal("atomic operations of its rounds do not only add up", access.line)


def moves(kernel: Kernel, axis: Axis, access: Access, loop: Loop) -> bool:
    """Whether no two rounds of one thread reach the same element."""
    reading = kernel.reading
    inner = {a.name for a in reading.axes if a.node in set(loops_in(loop.body))}
    form, size = access.offset, access.element.size
    by = form.coefficient(axis.name) if form is not None else None
    if form is None or by is None or not size:
        return False
    if not reading.symbols.known(form) and _handed_on(kernel, access, loop):
        return False
    rest, symbols = form.without([axis.name]), reading.symbols
    moving = inner | {axis.name}  # what is loaded in a round may be elsewhere in the next
    if moving & symbols.depends(by):
        return False
    if not moving & (symbols.inside(rest) | symbols.depends(rest)):
        return by.value is None or abs(by.value) >= size
    if _narrower(kernel, axis, access, loop):
        return True
    subscript = reading.subscript(access)
    if subscript is None or not subscript.bounded:
        return False
    others = ((d, d.without([axis.name])) for d in subscript.digits)
    return any(
        (own := digit.coefficient(axis.name)) is not None and own.value
        and not moving & (symbols.inside(rest) | symbols.depends(rest))
        for digit, rest in others
    )  # fmt: skip


def _narrower(kernel: Kernel, axis: Axis, access: Access, loop: Loop) -> bool:
    """Whether what inner loops reach in a round lies within what two rounds are apart.

    As of pixels of 256 channels each, of which a thread has 8.
    """
    form, symbols, size = access.offset, kernel.reading.symbols, access.element.size or 0
    by = form.coefficient(axis.name) if form is not None else None
    if form is None or by is None or by.value is None or not symbols.known(form):
        return False
    inner = {a.name for a in kernel.reading.axes if a.node in set(loops_in(loop.body))}
    rest = form.without([axis.name])
    own = {n for n in rest.symbols if inner & symbols.inside(Polynomial.symbol(n))}
    apart = rest.without(own)
    far = Polynomial.constant(abs(by.value) - size)
    ranges = Ranges(access.guard, symbols)
    if (inner | {axis.name}) & symbols.inside(apart):
        return False
    return ranges.nonnegative(rest - apart) and ranges.nonnegative(far - rest + apart)


def _handed_on(kernel: Kernel, access: Access, loop: Loop) -> bool:
    """Whether where a round reaches is made of what rounds before it have changed."""
    effects, node = Effects(kernel), access.own
    found = {v for v in effects.changed(loop.body) if not effects.begun_anew(v, loop)}
    alone = [s for s in walk(loop.body) if not s.statements]
    while more := {
        v for s in alone if effects.mentions(s) & found for v in effects.given(s) if v not in found
    }:  # fmt: skip
        found |= more
    return bool(names([node.target if isinstance(node, Assign) else node]) & found)


def _apart(axis: Axis, one: Access, other: Access) -> bool:
    """Whether two accesses of one array never meet in different rounds: other parts of a struct."""
    if one.offset is None or other.offset is None or one.array != other.array:
        return False
    apart, by = (one.offset - other.offset).value, one.offset.coefficient(axis.name)
    size = max(one.element.size or 0, other.element.size or 0)
    if apart is None or by is None or not by.value or by != other.offset.coefficient(axis.name):
        return False
    return size <= apart % abs(by.value) <= abs(by.value) - size


def _mirrored(kernel: Kernel, axis: Axis, one: Access, other: Access) -> bool:
    """Whether two accesses meet in one round alone: ``c[i][j]`` and ``c[j][i]`` where j is i."""
    first, second = (_subscript(kernel, axis, access) for access in (one, other))
    if first is None or second is None or first.extents != second.extents:
        return False
    if one.array != other.array or one.element != other.element:
        return False
    rounds = Polynomial.symbol(axis.name) - Polynomial.symbol(f"{axis.name}'")
    apart = [
        a - b + (b.coefficient(axis.name) or _NONE) * rounds
        for a, b in zip(first.digits, second.digits, strict=True)
    ]
    pairs = [*combinations(apart, 2)]
    found = [*apart, *(a + b for a, b in pairs), *(a - b for a, b in pairs)]
    return rounds in found or -rounds in found


def _subscript(kernel: Kernel, axis: Axis, access: Access) -> Subscript | None:
    """Digits that tell an element from all others, and move with no other loop's rounds."""
    subscript, inside = kernel.reading.subscript(access), kernel.reading.symbols.inside
    inner = {a.name for a in kernel.reading.axes if a.node in set(loops_in(axis.node.body))}
    if subscript is None or not subscript.proved:
        return None
    for digit in subscript.digits:
        if digit.coefficient(axis.name) is None or inner & inside(digit):
            return None
        if axis.name in inside(digit.without([axis.name])):
            return None
    return subscript
