"""A row that a thread adds to in memory, held in a local array and stored once, at the end.

``for (d) out[i * n + d] = 0; for (k) for (d) out[i * n + d] += p;`` is what an array of the
thread's own would do, and rules look for that. Other threads that touched the row meanwhile would
race with this one.
"""

from __future__ import annotations

from dataclasses import replace

from optiml_magic.kernels.editing import Node, edited, lines, text
from optiml_magic.kernels.expressions import Assign, Expr, Index, every
from optiml_magic.kernels.polynomial import Polynomial
from optiml_magic.kernels.primitives.base import Kernel, NotLegal, primitive
from optiml_magic.kernels.primitives.effects import Effects, is_simple, names
from optiml_magic.kernels.reading import Access, Axis
from optiml_magic.kernels.tree import Block, Evaluate, Leave, Loop, Statement, walk

_MOST = 256  # elements of a row: ours


@primitive
def row_held(kernel: Kernel) -> Kernel:
    """The kernel whose first such row is a local array meanwhile."""
    effects = Effects(kernel)
    effects.straightforward()
    why = NotLegal("no row of a thread's own is added to in memory")
    for array in sorted(kernel.reading.written):
        accesses = [*kernel.reading.of(array)]
        if any(a.space != "global" for a in accesses) or all(a.mode == "store" for a in accesses):
            continue
        try:
            return _held(kernel, effects, array, accesses)
        except NotLegal as found:
            why = found
    raise why


def _held(kernel: Kernel, effects: Effects, array: str, accesses: list[Access]) -> Kernel:
    body = kernel.function.body.body
    others = {a.array for a in kernel.reading.accesses} - {array}
    if any(effects.same(array, other) for other in others):
        raise NotLegal(f"`{array}` may be another array as well")
    if len({a.element for a in accesses}) != 1:
        raise NotLegal(f"`{array}` has elements of several types")
    axes = {axis.name: axis for axis in kernel.axes().values()}
    places = [_place(kernel, effects, axes, access) for access in accesses]
    axis, base = places[0][0], places[0][1]
    if any(one.trips != axis.trips or rest != base for one, rest, _ in places):
        raise NotLegal(f"not all of `{array}` that a thread asks for is one row")
    touched = [s for s in body if any(a.own in effects.inside(s) for a in accesses)]
    first, last = touched[0], touched[-1]
    store = next(a for a in accesses if a.own in effects.inside(first))
    whole = _stored(effects, first, store, [a for a in accesses if a is not store])
    between = body[body.index(first) : body.index(last) + 1]
    if any(isinstance(s, Leave) for part in between for s in walk(part)):
        raise NotLegal("it ends before its row is stored")
    place = places[accesses.index(store)][2]
    counter = axes[store.loops[-1]].variable
    if names([place]) - {counter} & {v for s in between for v in effects.given(s)}:
        raise NotLegal(f"where its row of `{array}` is changes")
    if any(
        a.node in {*every(place)} and a.node is not place
        for a in kernel.reading.accesses
        if a.mode == "load"
    ):
        raise NotLegal(f"where its row of `{array}` is changes")
    row = kernel.fresh(f"{array}_row")
    swaps: dict[Node, Node | tuple[Statement, ...] | None] = {}
    for one, _, spelled in places:
        assert one.variable is not None
        swaps[spelled] = text(f"{row}[{one.variable.name}]")
    assert counter is not None
    shown = f"{kernel.spelled(place)} = {row}[{counter.name}];"
    stores = Block(None, whole.line, (lines(shown),))
    after = replace(whole, body=stores, span=None, head=None, foot=None)
    made: list[Statement] = []
    for statement in body:
        if statement is first:
            made.append(lines(f"{store.element.name} {row}[{axis.trips}];"))
        made.append(edited(statement, swaps))
        if statement is last:
            made.append(after)
    return kernel.rewritten(replace(kernel.function.body, body=tuple(made)))


def _place(
    kernel: Kernel, effects: Effects, axes: dict[str, Axis], access: Access
) -> tuple[Axis, Polynomial, Index]:
    """The loop over the elements of a row, where the row begins, and how an element is spelled."""
    axis = axes.get(access.loops[-1]) if access.loops else None
    place: Expr = access.node
    if isinstance(place, Assign):
        place = place.target
    if access.mode == "atomic" or access.call is not None or not isinstance(place, Index):
        raise NotLegal(f"how it asks for `{access.array}` is not followed", access.line)
    if axis is None or axis.variable is None or access.index is None:
        raise NotLegal(f"where it asks for `{access.array}` is not followed", access.line)
    if not is_simple(axis, effects) or not axis.trips or axis.trips > _MOST:
        raise NotLegal("how many elements a row has is not a small number", access.line)
    by = access.index.coefficient(axis.name)
    rest = access.index.without([axis.name])
    inside = kernel.reading.symbols.inside(rest)
    if by != Polynomial.constant(1) or inside & axes.keys():
        raise NotLegal(
            f"not all of `{access.array}` that a thread asks for is one row", access.line
        )
    return axis, rest, place


def _stored(effects: Effects, first: Statement, store: Access, others: list[Access]) -> Loop:
    """The loop that gives the whole row its first values, before anything else asks for it."""
    inside = effects.inside(first)
    if not isinstance(first, Loop) or any(a.own in inside for a in others):
        raise NotLegal("a row is asked for before it has a value", first.line)
    own = [s for s in walk(first.body) if isinstance(s, Evaluate)]
    plain = [s for s in own if isinstance(s.expression, Assign) and s.expression.op == "="
             and store.own in {*every(s.expression)}]  # fmt: skip
    top = first.body.body if isinstance(first.body, Block) else (first.body,)
    if store.mode != "store" or len(plain) != 1 or plain[0] not in top:
        raise NotLegal("a row is asked for before it has a value", first.line)
    return first
