"""P2 and P16, inward: a loop that adds to each element of a row becomes one within a row of them.

``for (k) for (j) out[j] += f(k, j)`` becomes ``for (j) for (k) out[j] += f(k, j)``, and a loop
before it that begins the elements, with the same rounds, is taken into the outer one. Each element
is then the place of a reduction.
"""

from __future__ import annotations

from dataclasses import replace

from optiml_magic.kernels.editing import edited, lines
from optiml_magic.kernels.expressions import Assign, Call, Expr, Step, every
from optiml_magic.kernels.polynomial import Polynomial
from optiml_magic.kernels.primitives.base import Kernel, NotLegal, primitive, where_legal
from optiml_magic.kernels.primitives.effects import Effects, is_simple, loops_in, names
from optiml_magic.kernels.primitives.rounds import moves
from optiml_magic.kernels.reading import Access, Axis
from optiml_magic.kernels.tree import (
    Blank,
    Block,
    Declare,
    If,
    Leave,
    Loop,
    Statement,
    walk,
)


def all_inward(kernel: Kernel) -> Kernel:
    """The kernel with each loop inside of the one in it, and joined with those beside it."""
    for number in range(len(loops_in(kernel.function.body))):
        kernel = where_legal(inward, kernel, number)
    for number in reversed(range(len(loops_in(kernel.function.body)))):
        kernel = where_legal(joined, kernel, number)
    return kernel


@primitive
def inward(kernel: Kernel, at: int) -> Kernel:
    """The loop with this number changes places with the only one in it."""
    loop = loops_in(kernel.function.body)[at]
    effects = Effects(kernel)
    effects.straightforward()
    lets, inner = _parts(loop)
    outer_axis, axis = (_simple(kernel, one, effects) for one in (loop, inner))
    counters = {outer_axis.variable, axis.variable}
    own = {v for s in lets for v in s.variables} | {outer_axis.variable}
    head = [e for e in (inner.test, inner.update) if e is not None]
    if names(head) & own or len({v.name for v in own | counters if v}) != len(own) + 1:
        raise NotLegal("how often the inner loop runs depends on the outer one", inner.line)
    for let in own - counters:
        if let is None or let not in effects.lasting or let.array:
            raise NotLegal("what stands beside the inner loop changes", inner.line)
    _pure(loop, inner)
    _meetings(kernel, effects, loop, inner, axis, {outer_axis.name})
    inside = replace(loop, body=edited(loop.body, {inner: inner.body}), span=None, head=None)
    made = replace(inner, body=Block(None, 0, (inside,)), span=None, head=None)
    return kernel.rewritten(edited(kernel.function.body, {loop: lines(kernel.show(made))}))


@primitive
def joined(kernel: Kernel, at: int) -> Kernel:
    """The loop with this number and the one that follows it, which make the same rounds, as one."""
    loop = loops_in(kernel.function.body)[at]
    effects = Effects(kernel)
    effects.straightforward()
    following = _following(kernel, loop)
    axis, other = (_simple(kernel, one, effects) for one in (loop, following))
    if axis.stop != other.stop or axis.guard != other.guard:
        raise NotLegal("the loops do not make the same rounds", loop.line)
    assert axis.variable is not None
    assert other.variable is not None
    for one in (loop, following):
        if any(isinstance(s, Leave) for s in walk(one)) or effects.changed(one.body):
            raise NotLegal("a loop does more than its rounds", one.line)
        _meetings(kernel, effects, one, one, axis if one is loop else other, set())
    _same_elements(kernel, effects, (loop, following), (axis, other))
    name, second = axis.variable.name, other.variable.name
    if axis.variable.type.base != other.variable.type.base:
        raise NotLegal("the loops do not count alike", loop.line)
    bodies = [_opened(kernel, loop.body), _opened(kernel, following.body)]
    if name != second:
        bodies[1] = f"const {other.variable.type.base} {second} = {name};\n{bodies[1]}"
    whole = kernel.show(replace(loop, body=Block(None, 0, (lines("\n".join(bodies)),)), span=None,
                                head=None))  # fmt: skip
    return kernel.rewritten(edited(kernel.function.body, {loop: lines(whole), following: None}))


def _parts(loop: Loop) -> tuple[list[Declare], Loop]:
    """What a loop declares, and the loop behind it; a test may stand around both."""
    body: list[Statement] = [loop.body]
    while len(body) == 1 and isinstance(body[0], Block | If):
        match body[0]:
            case Block(body=inner):
                body = [s for s in inner if not isinstance(s, Blank)]
            case If(then=then, other=None, before=None):
                body = [then]
            case _:
                break
    *lets, last = body or (None,)
    declared = [s for s in lets if isinstance(s, Declare)]
    if not isinstance(last, Loop) or len(declared) != len(lets):
        raise NotLegal("the loop does more than the one in it", loop.line)
    return declared, last


def _simple(kernel: Kernel, loop: Loop, effects: Effects) -> Axis:
    axis = kernel.axes().get(loop)
    if axis is None or not axis.exact or not is_simple(axis, effects) or axis.stop is None:
        raise NotLegal("a loop does not count from 0 in its head", loop.line)
    return axis


def _pure(loop: Loop, inner: Loop) -> None:
    """Raise NotLegal where something leaves, or what is beside the inner loop does something."""
    body = set(walk(inner.body))
    for statement in walk(loop):
        if isinstance(statement, Leave):
            raise NotLegal("a round is left", statement.line)
        if isinstance(statement, Loop) and statement not in (loop, inner):
            raise NotLegal("there are more loops in it", statement.line)
        asked: list[Expr] = [*statement.expressions]
        beside = statement not in body and not isinstance(statement, Loop)
        if isinstance(statement, Loop) and statement.test is not None:
            asked, beside = [statement.test], True
        inside = [e for one in asked for e in every(one)] if beside else []
        if any(isinstance(e, Assign | Step | Call) for e in inside):
            raise NotLegal("what is beside the inner loop does something", statement.line)


def _meetings(
    kernel: Kernel, effects: Effects, loop: Loop, inner: Loop, axis: Axis, others: set[str]
) -> None:
    """Raise NotLegal unless what a loop stores belongs to one round of the inner one alone."""
    if effects.changed(inner.body) or effects.kept(loop):
        raise NotLegal("something goes from round to round", loop.line)
    accesses = effects.accesses(loop)
    inside = effects.inside(inner.body)
    for store in (a for a in accesses if a.mode != "load"):
        if store.mode == "atomic" or store.call is not None or store.own not in inside:
            raise NotLegal("what the loop stores is not followed", store.line)
        held = kernel.reading.symbols.inside(store.index or Polynomial())
        if store.index is None or others & held or not moves(kernel, axis, store, inner):
            raise NotLegal("two rounds may store to one element", store.line)
        for one in accesses:
            if effects.same(one.array, store.array) and (
                one.array != store.array or one.index != store.index or one.own not in inside
                or one.element != store.element
            ):  # fmt: skip
                raise NotLegal("a round may meet what another has stored", one.line)


def _same_elements(
    kernel: Kernel, effects: Effects, loops: tuple[Loop, Loop], axes: tuple[Axis, Axis]
) -> None:
    """Raise NotLegal where a round of one loop may touch what another round of the other does."""
    counter = Polynomial.symbol(axes[0].name)

    def element(access: Access, axis: Axis) -> Polynomial | None:
        by = access.index.coefficient(axis.name) if access.index is not None else None
        if access.index is None or by is None:
            return None
        rest = access.index.without([axis.name])
        return None if axis.name in kernel.reading.symbols.inside(rest) else rest + by * counter

    first, second = (
        [(a, element(a, axis)) for a in effects.accesses(loop)]
        for loop, axis in zip(loops, axes, strict=True)
    )
    for one, there in first:
        for other, then in second:
            if one.mode == other.mode == "load" or not effects.same(one.array, other.array):
                continue
            if one.array != other.array or there is None or there != then:
                raise NotLegal("the loops meet in memory", other.line)


def _following(kernel: Kernel, loop: Loop) -> Loop:
    for block in walk(kernel.function.body):
        own = [s for s in block.statements if not isinstance(s, Blank)]
        if isinstance(block, Block) and loop in own[:-1]:
            found = own[own.index(loop) + 1]
            if isinstance(found, Loop):
                return found
    raise NotLegal("no loop follows it", loop.line)


def _opened(kernel: Kernel, body: Statement) -> str:
    """A body without its braces, where it declares nothing."""
    inside = body.body if isinstance(body, Block) else (body,)
    if any(isinstance(s, Declare) for s in inside):
        return kernel.show(body)
    return "\n".join(kernel.show(s) for s in inside)
