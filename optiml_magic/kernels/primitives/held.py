"""P9, hold: what an inner loop loads anew in every round of the loop around it, loaded before that.

A thread that meets many rows with one of its own, a query with all references, a point with all
centres, walks along its own row in each round. The row goes to a local array before the first
round, if there is one, and the inner loops are unrolled, so that its indices are constants and it
lies in registers.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from optiml_magic.kernels.editing import Node, edited, lines, text
from optiml_magic.kernels.expressions import Assign, Call, Expr, Name, Step, every
from optiml_magic.kernels.polynomial import Polynomial
from optiml_magic.kernels.primitives.base import (
    Kernel,
    NotLegal,
    Refused,
    primitive,
    where_legal,
)
from optiml_magic.kernels.primitives.counted import as_counted
from optiml_magic.kernels.primitives.effects import Effects, is_simple, loops_in
from optiml_magic.kernels.primitives.heads import count_of
from optiml_magic.kernels.primitives.items import element
from optiml_magic.kernels.primitives.naming import speller_before
from optiml_magic.kernels.primitives.places import code
from optiml_magic.kernels.primitives.sized import sized
from optiml_magic.kernels.primitives.sizes import rounds
from optiml_magic.kernels.primitives.staged import hints_of
from optiml_magic.kernels.reading import Access, Axis
from optiml_magic.kernels.symbols import Condition
from optiml_magic.kernels.tree import Block, Declare, Leave, Loop, Statement, walk

LONGEST = 64  # rounds of an inner loop that is written out, and words that a thread holds
_OWN = frozenset({"threadIdx.x", "threadIdx.y", "threadIdx.z"})
_WORD = 4
_ROUND = "@round"


@dataclass(frozen=True)
class Row:
    """The ``count`` elements of a thread's own that inner loops walk along, ``axis`` the first.

    ``source`` stands for one of them in the first loop, if it means the same before all loops.
    """

    array: str
    kind: str
    size: int
    count: int
    axis: Axis
    index: Polynomial
    source: Expr | None
    accesses: tuple[Access, ...]

    @property
    def words(self) -> int:
        """The registers that hold it."""
        return -(-self.count * self.size // _WORD)


def held_rows(kernel: Kernel, loop: Loop, effects: Effects) -> tuple[Row, ...]:
    """What a thread may hold through the rounds of a loop; empty where there is nothing."""
    axes = kernel.axes()
    outer = axes.get(loop)
    if outer is None or not outer.exact or not is_simple(outer, effects):
        return ()
    if any(isinstance(s, Leave) for s in walk(loop.body)):
        return ()
    known = {part for c in (*outer.guard, outer.test) for part in c.conjuncts()}
    groups: dict[tuple[str, str, int, Polynomial], list[tuple[Access, Axis]]] = {}
    for inner in loops_in(loop.body):
        axis = axes.get(inner)
        if axis is None or not axis.exact or not 1 < (axis.trips or 0) <= LONGEST:
            continue
        own = {part for c in (*axis.guard, axis.test) for part in c.conjuncts()}
        if not is_simple(axis, effects) or not own <= known | {*axis.test.conjuncts(), axis.test}:
            continue
        for access in effects.accesses(inner.body):
            form = _form(kernel, access, (outer, axis), own, effects)
            if form is not None:
                key = access.array, access.element.name, axis.trips or 0, form
                groups.setdefault(key, []).append((access, axis))
    return tuple(_rows(kernel, loop, groups, effects))


def _form(
    kernel: Kernel, access: Access, axes: tuple[Axis, Axis], own: set[Condition], effects: Effects
) -> Polynomial | None:
    """Where an access is in a round of the inner loop; None where it cannot be held."""
    (outer, inner), symbols, kind = axes, kernel.reading.symbols, access.element
    form = access.offset
    if form is None or access.mode != "load" or access.call is not None or access.verbatim:
        return None
    if access.loops[-2:] != (outer.name, inner.name) or not symbols.known(form):
        return None
    if kind.depth or not kind.size or kind.kind not in ("int", "float", "vector"):
        return None
    by, rest = form.coefficient(inner.name), form.without([inner.name])
    if by is None or not by.terms or {*access.loops} & (symbols.inside(rest) | by.symbols):
        return None
    if not _OWN & symbols.depends(form):
        return None
    if any(effects.same(access.array, other) for other in kernel.reading.written):
        return None
    if any(part not in own for c in access.guard for part in c.conjuncts()):
        return None
    return rest + by * Polynomial.symbol(_ROUND)


def _rows(
    kernel: Kernel,
    loop: Loop,
    groups: dict[tuple[str, str, int, Polynomial], list[tuple[Access, Axis]]],
    effects: Effects,
) -> Iterator[Row]:
    for (array, kind, count, _), found in groups.items():
        access, axis = found[0]
        whole = kernel.reading.arrays[array].element
        places = [element(effects, one) for one, _ in found]
        if access.index is None or array in effects.moved or None in places:
            continue
        if all(one.element == whole for one, _ in found):
            accesses = tuple(one for one, _ in found)
            source = _standing(places[0], loop, axis, effects)
            yield Row(array, kind, whole.size or 0, count, axis, access.index, source, accesses)


def _standing(source: Expr | None, loop: Loop, axis: Axis, effects: Effects) -> Expr | None:
    """An expression of the loop within, if it means the same before the one around it."""
    assert source is not None
    declared = {v for s in walk(loop) if isinstance(s, Declare) for v in s.variables}
    changed = {*declared, *effects.changed(loop)} - {axis.variable}
    parts = [*every(source)]
    moves = any(isinstance(e, Assign | Step | Call) for e in parts)
    return (
        None
        if moves or any(isinstance(e, Name) and e.variable in changed for e in parts)
        else source
    )


@dataclass(frozen=True)
class Holding:
    """A kernel whose threads hold ``words`` registers of rows; its ``sizes`` have these values.

    ``arrays`` are those whose rows they are.
    """

    kernel: Kernel
    words: int = 0
    arrays: tuple[str, ...] = ()
    sizes: Mapping[str, int] = field(default_factory=dict)


def holding(kernel: Kernel) -> Holding:
    """The kernel with the rows held of the first loop where there are some; else as it is.

    The rounds of the loops within are constants, or bounded by sizes that are short at hand.
    """
    sizes = _short(kernel)
    made = where_legal(sized, kernel, sizes) if sizes else kernel
    sizes = sizes if made is not kernel else {}
    for at, loop in enumerate(loops_in(made.function.body)):
        inner = len(loops_in(loop)) - 1
        if not inner or not _stays(made, loop):
            continue
        ready = made
        for number in range(at + 1, at + 1 + inner):
            if Effects(ready).accesses(loops_in(ready.function.body)[number].body):
                ready = where_legal(as_counted, ready, number, is_simple)
        outer = as_counted(ready, at, is_simple)
        if isinstance(outer, Refused):
            continue
        found = held_rows(outer, loops_in(outer.function.body)[at], Effects(outer))
        held = where_legal(hold_rows, outer, at) if found else outer
        if held is not outer:
            arrays = tuple(dict.fromkeys(row.array for row in found))
            return Holding(held, sum(row.words for row in found), arrays, sizes)
    return Holding(kernel)


def _stays(kernel: Kernel, loop: Loop) -> bool:
    """Whether loops within load anything where the rounds of this one are not asked for."""
    axis, symbols = kernel.axes().get(loop), kernel.reading.symbols
    return axis is not None and any(
        access.mode == "load" and len(access.loops) > 1 and access.index is not None
        and axis.name not in symbols.inside(access.index)
        for access in Effects(kernel).accesses(loop)
    )  # fmt: skip


def _short(kernel: Kernel) -> dict[str, int]:
    """The sizes that bound short loops within others, with their values at the measured sizes."""
    found: dict[str, int] = {}
    given = kernel.facts.scalars if kernel.facts is not None else {}
    axes = kernel.axes()
    for outer in axes:
        for loop in loops_in(outer.body):
            axis = axes.get(loop)
            forms = [f for f in (axis.start, axis.stop) if f is not None] if axis else []
            names = {name for form in forms for name in form.symbols}
            length = rounds(kernel, axis) if axis is not None else None
            if names <= given.keys() and 1 < (length or 0) <= LONGEST:
                found |= {n: int(given[n]) for n in sorted(names) if n not in kernel.program.values}
    return found


@primitive
def hold_rows(kernel: Kernel, at: int) -> Kernel:
    """The loop with this number, what a thread asks for in each of its rounds held before it."""
    effects = Effects(kernel)
    effects.straightforward()
    loop = loops_in(kernel.function.body)[at]
    found = held_rows(kernel, loop, effects)
    if not found:
        raise NotLegal("no loop in it walks along a row of the thread's own", loop.line)
    if sum(row.words for row in found) > LONGEST:
        raise NotLegal("a thread has no room for its rows", loop.line)
    if "volatile" in code(kernel.unit, kernel.function.span):
        raise NotLegal("its memory may change at any time", loop.line)
    return kernel.rewritten(_held(kernel, loop, found, effects))


def _held(kernel: Kernel, loop: Loop, found: Sequence[Row], effects: Effects) -> Block:
    outer = kernel.axes()[loop]
    inner: dict[Node, Node | tuple[Statement, ...] | None] = {}
    filled, taken, speller = list[str](), list[str](), speller_before(kernel, effects, loop)
    for row in found:
        own = row.array.replace(".", "_").replace(":", "_")
        name = kernel.fresh(f"{own}_row", *taken)
        taken.append(name)
        assert row.axis.variable is not None
        counter, kind = row.axis.variable.name, row.axis.variable.type.base
        if row.source is not None:
            place = kernel.spelled(row.source)
        else:
            speller.names[row.axis.name] = counter
            place = f"{row.array}[{speller.address(speller.local(row.index))}]"
        head = f"for ({kind} {counter} = 0; {counter} < {row.count}; ++{counter})"
        filled += ["#pragma unroll", f"{head} {name}[{counter}] = {place};"]
        for access in row.accesses:
            there = element(effects, access)
            assert there is not None
            own_axis = next(x for x in kernel.reading.axes if x.name == access.loops[-1])
            assert own_axis.variable is not None
            inner[there] = text(f"{name}[{own_axis.variable.name}]")
    walked = {access.loops[-1] for row in found for access in row.accesses}
    for axis in kernel.reading.axes:
        if axis.name not in walked:
            continue
        inner |= dict.fromkeys(hints_of(kernel, axis.node))
        inner[axis.node] = (lines("#pragma unroll"), edited(axis.node, inner))
    made = [f"{row.kind} {name}[{row.count}];" for row, name in zip(found, taken, strict=True)]
    made += [f"if ({count_of(outer, speller, effects)} > 0) {{", *filled, "}"]
    hints = hints_of(kernel, loop)
    swaps: dict[Node, Node | tuple[Statement, ...] | None] = dict.fromkeys(hints)
    told = [lines(kernel.show(hint).strip()) for hint in hints]
    swaps[loop] = (lines("\n".join(made)), *told, edited(loop, inner))
    return edited(kernel.function.body, swaps)
