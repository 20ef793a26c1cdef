"""P13, hoist: what the threads of a row compute alike, one thread computes once for the row.

A thread an element that goes through its row for a maximum, a sum or a mean does what all others
of the row do. As a thread a row it is done before a loop over the elements, which lanes may share.
"""

from __future__ import annotations

from collections.abc import Sequence
from collections.abc import Set as AbstractSet
from dataclasses import replace

from optiml_magic.kernels.editing import Node, edited, text
from optiml_magic.kernels.expressions import Name, every
from optiml_magic.kernels.primitives.axes import exchanged
from optiml_magic.kernels.primitives.base import Kernel, NotLegal, primitive, where_legal
from optiml_magic.kernels.primitives.cutting import cut
from optiml_magic.kernels.primitives.effects import Effects, is_simple, loops_in, parted
from optiml_magic.kernels.primitives.firsts import stores_first
from optiml_magic.kernels.primitives.flow import ends
from optiml_magic.kernels.primitives.paired import done
from optiml_magic.kernels.primitives.serial import by_rows
from optiml_magic.kernels.primitives.sizes import with_grid
from optiml_magic.kernels.tree import (
    Block,
    Declare,
    If,
    Loop,
    Statement,
    Variable,
    walk,
)

_WIDTH = 128  # rows of a block; rules choose another


@primitive
def once_a_row(kernel: Kernel) -> Kernel:
    """A thread for each row, which walks along it behind what its elements have in common."""
    if not loops_in(kernel.function.body):
        raise NotLegal("the kernel has no loop")
    made = done(hoisted(done(by_rows(kernel, _WIDTH)), 0))
    if kernel.facts is None:
        return made
    return with_grid(replace(made, facts=kernel.facts))


@primitive
def once_a_column(kernel: Kernel) -> Kernel:
    """A thread for each column, beside those of its neighbours, which goes down along it."""
    turned = done(exchanged(kernel, "x", "y"))
    if turned.block[0] == 1:  # blocks of an element each have no guard
        turned = where_legal(cut, turned, {"x": 2})
    return done(once_a_row(turned))


@primitive
def hoisted(kernel: Kernel, at: int) -> Kernel:
    """What each round of the loop with this number does alike is done once, before the loop.

    Refused where none of that is a loop: a compiler moves the rest.
    """
    loop = loops_in(kernel.function.body)[at]
    effects = Effects(kernel)
    effects.straightforward()
    axis = kernel.axes().get(loop)
    if axis is None or not axis.exact or not is_simple(axis, effects) or loop.test is None:
        raise NotLegal("a loop does not count from 0 in its head", loop.line)
    assert axis.variable is not None
    own = [*parted(loop.body)]
    first_stores = {s for s in own if stores_first(kernel, effects, s, axis.name)}
    alike = _alike(effects, loop, axis.variable, own, first_stores)
    if not any(isinstance(s, Loop) for one in alike for s in walk(one)):
        raise NotLegal("no loop is the same for all elements of a row", loop.line)
    _check_names(kernel, loop, alike)
    rest = tuple(s for s in own if s not in alike)
    if any(isinstance(s, Loop) for one in rest for s in walk(one)):
        raise NotLegal("each element also has a loop of its own", loop.line)
    inner = replace(loop, body=Block(None, loop.line, rest), span=None, head=None, foot=None)
    done_first = [s.then if isinstance(s, If) and s in first_stores else s for s in alike]
    moved: tuple[Statement, ...] = (*done_first, inner)
    if first_stores & {*alike} or _loads_by_itself(
        effects, alike
    ):  # where there is no round, there may be nothing to load
        first: dict[Node, Node] = {
            e: text("0") for e in every(loop.test)
            if isinstance(e, Name) and e.variable is axis.variable
        }  # fmt: skip
        body = Block(None, loop.line, moved)
        moved = (If(None, loop.line, edited(loop.test, first), body),)
    return kernel.rewritten(edited(kernel.function.body, {loop: moved}))


def _alike(
    effects: Effects,
    loop: Loop,
    counter: Variable,
    own: Sequence[Statement],
    first: AbstractSet[Statement],
) -> list[Statement]:
    """The statements that are the same in each round, and that nothing before them asks after.

    ``first`` are stores of the first round alone.
    """
    fresh = {v for s in own if isinstance(s, Declare) for v in s.variables}
    written = {a.array for a in effects.accesses(loop) if a.mode != "load"}
    varying, found = {counter}, list[Statement]()
    before: set[Variable] | None = None
    while varying != before:
        before, found, asked = set(varying), [], set[Variable]()
        always = True  # not behind a way out of the round
        for statement in own:
            changed = effects.given(statement)
            body = statement.then if isinstance(statement, If) and statement in first else statement
            touched = changed | effects.mentions(body)
            moves = (
                always
                and not touched & varying
                and changed <= fresh
                and not changed & asked
                and (statement in first or effects.computes(statement, written))
            )
            if moves:
                found.append(statement)
            else:
                varying |= changed
                asked |= touched
            always = always and not any(ends(statement))
    return found


def _loads_by_itself(effects: Effects, statements: Sequence[Statement]) -> bool:
    """Whether something is loaded outside of the loops in these."""
    for statement in statements:
        inside = {e for loop in loops_in(statement) for e in effects.inside(loop.body)}
        if any(a.own not in inside for a in effects.accesses(statement)):
            return True
    return False


def _check_names(kernel: Kernel, loop: Loop, moved: Sequence[Statement]) -> None:
    """Raise NotLegal where a local that moves out has the name of another one."""
    own = {v for s in moved if isinstance(s, Declare) for v in s.variables}
    inside = {*walk(loop.body)}
    others = {
        v.name for s in walk(kernel.function.body) if isinstance(s, Declare) and s not in inside
        for v in s.variables
    } | {p.name for p in kernel.function.parameters}  # fmt: skip
    for variable in own:
        if variable.name in others:
            raise NotLegal(f"another local is called `{variable.name}`", loop.line)
