"""P9, keep in a register: the element at a place that a loop keeps, beside the place itself.

``if (x[c] > x[best]) best = c;`` asks memory in each round for what an earlier round has loaded,
and the next round waits for it. With ``float x_best = x[best];`` before the loop, which changes
as ``best`` does, a round waits for nothing, and what is sought is seen to be an extreme.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from optiml_magic.kernels.combining import same
from optiml_magic.kernels.editing import Node, edited, lines, text
from optiml_magic.kernels.expressions import Assign, Call, Expr, Index, Name, Step, every
from optiml_magic.kernels.primitives.accumulating import first_test
from optiml_magic.kernels.primitives.base import Kernel, NotLegal, primitive
from optiml_magic.kernels.primitives.effects import Effects, names
from optiml_magic.kernels.primitives.items import is_plain
from optiml_magic.kernels.primitives.staged import hints_before
from optiml_magic.kernels.reading import Access, Axis
from optiml_magic.kernels.tree import Block, Declare, Evaluate, Loop, Statement, Variable, walk


@dataclass(frozen=True, eq=False)
class _Kept:
    """The element that ``asked`` are in a loop, at a place that ``given`` statements change.

    Beside each of these stands where the loop loads the element that is at the new place. ``test``
    says that there is a first round; it is empty where that is certain.
    """

    place: Variable
    loop: Loop
    hints: tuple[Statement, ...]
    asked: tuple[Access, ...]
    given: tuple[tuple[Evaluate, Expr], ...]
    test: str


@primitive
def remembered(kernel: Kernel) -> Kernel:
    """The kernel with the elements at places that its loops keep as locals of these."""
    effects, taken = Effects(kernel), list[str]()
    changes: dict[Node, Node | tuple[Statement, ...] | None] = {}
    for one in _kept(kernel, effects):
        first = one.asked[0]
        name = kernel.fresh(f"{first.array.rpartition('.')[2]}_{one.place.name}", *taken)
        taken.append(name)
        swaps: dict[Node, Node] = {access.node: text(name) for access in one.asked}
        for statement, source in one.given:
            words = kernel.show(statement).strip()
            swaps[statement] = Block(None, 0, (
                lines(words), lines(f"{name} = {_shown(kernel, source)};")))  # fmt: skip
        begin = f"{first.element.name} {name} = {_shown(kernel, first.node)};"
        hints = [kernel.show(hint).strip() for hint in one.hints]
        whole = [begin, *hints, kernel.show(one.loop, swaps)]
        if one.test:
            whole = [f"if ({one.test}) {{", *whole, "}"]
        changes |= dict.fromkeys(one.hints)
        changes[one.loop] = (lines("\n".join(whole)),)
    if not changes:
        raise NotLegal("no loop asks for the element at a place that it keeps")
    return kernel.rewritten(edited(kernel.function.body, changes))


def _kept(kernel: Kernel, effects: Effects) -> Iterator[_Kept]:
    axes = kernel.axes()
    for block in walk(kernel.function.body):
        for loop in block.statements if isinstance(block, Block) else ():
            axis = axes.get(loop) if isinstance(loop, Loop) else None
            found = _in_loop(kernel, effects, axis) if axis is not None else None
            if axis is None or found is None:
                continue
            try:
                test = "" if axis.first else first_test(kernel, effects, axis)
            except NotLegal:
                continue
            place, asked, given = found
            yield _Kept(place, axis.node, hints_before(block, axis.node), asked, given, test)


def _in_loop(
    kernel: Kernel, effects: Effects, axis: Axis
) -> tuple[Variable, tuple[Access, ...], tuple[tuple[Evaluate, Expr], ...]] | None:
    """What is asked for at one place, and what changes the place; None where there is nothing."""
    loop = axis.node
    rounds = {part for c in (*axis.guard, axis.test) for part in c.conjuncts()}
    loads = [a for a in effects.accesses(loop) if _is_load(kernel, effects, a)]
    sure = [a for a in loads if a.loops[-1:] == (axis.name,)
            and {part for c in a.guard for part in c.conjuncts()} <= rounds]  # fmt: skip
    moving = {v for v in effects.changed(loop.body) if not v.array and v is not axis.variable}
    inner = {v for s in walk(loop) if isinstance(s, Declare) for v in s.variables}
    still = {*moving, *inner, *([axis.variable] if axis.variable is not None else [])}
    for access in sure:
        own = names([access.node]) & still
        place = next(iter(own), None)
        if place is None or len(own) > 1 or place not in moving or place in inner:
            continue
        given = _given(kernel, effects, loop, place, moving)
        asked = tuple(a for a in loads if same(a.node, access.node))
        if given is None or not _first(effects, loop, place, [a for a in asked if a in sure]):
            continue
        new = [(s, _loaded(sure, access.node, place, value)) for s, value in given]
        found = tuple((s, source) for s, source in new if source is not None)
        if len(found) == len(new):
            return place, asked, found
    return None


def _first(effects: Effects, loop: Loop, place: Variable, sure: list[Access]) -> bool:
    """Whether a round asks for the element before it changes the place."""
    own = {access.node for access in sure}
    body = loop.body.body if isinstance(loop.body, Block) else (loop.body,)
    for statement in body:
        if place in effects.mentions(statement):
            heads = statement.expressions
            return bool(own & {e for head in heads for e in every(head)}) and not any(
                place in effects.changed(Evaluate(None, 0, head)) for head in heads
            )
    return False


def _is_load(kernel: Kernel, effects: Effects, access: Access) -> bool:
    """Whether an element that nobody writes is loaded in the kernel's own text."""
    plain = access.mode == "load" and access.call is None and isinstance(access.node, Index)
    if not plain or not is_plain(kernel, access) or access.array in effects.moved:
        return False
    if any(isinstance(e, Call | Assign | Step) for e in every(access.node)):
        return False
    return not any(effects.same(access.array, other) for other in kernel.reading.written)


def _given(
    kernel: Kernel, effects: Effects, loop: Loop, place: Variable, moving: set[Variable]
) -> list[tuple[Evaluate, Expr]] | None:
    """The statements that give a place its values, which are of its own type and stay."""
    found = list[tuple[Evaluate, Expr]]()
    for statement in walk(loop.body):
        match statement:
            case Evaluate(
                expression=Assign(op="=", target=Name(variable=own) as target, value=value)
            ):
                if own is not place:
                    continue
                alike = kernel.reading.types.get(value) == kernel.reading.types.get(target)
                if not alike or names([value]) & moving or not isinstance(value, Name):
                    return None
                found.append((statement, value))
    changing = [s for s in walk(loop) if not s.statements and place in effects.changed(s)]
    heads = [e for s in walk(loop) if s.statements for e in s.expressions]
    steady = not any(place in effects.changed(Evaluate(None, 0, e)) for e in heads)
    whole = place.storage == "local" and not place.type.reference and not place.type.depth
    return found if found and whole and steady and len(changing) == len(found) else None


def _loaded(sure: list[Access], element: Expr, place: Variable, value: Expr) -> Expr | None:
    """Where each round loads the element that is at the new place."""
    there = edited(element, {
        e: value for e in every(element) if isinstance(e, Name) and e.variable is place
    })  # fmt: skip
    return next((a.node for a in sure if same(a.node, there)), None)


def _shown(kernel: Kernel, e: Expr) -> str:
    return kernel.spelled(e)
