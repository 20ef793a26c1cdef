"""Where a thread works on elements of its own: a loop, or all from its first access to its last."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass

from optiml_magic.kernels.expressions import Binary, Choice, Expr
from optiml_magic.kernels.polynomial import Polynomial
from optiml_magic.kernels.primitives.base import Kernel, NotLegal
from optiml_magic.kernels.primitives.effects import Effects, loops_in
from optiml_magic.kernels.primitives.following import Touch, followed, touches
from optiml_magic.kernels.reading import Access, Axis
from optiml_magic.kernels.symbols import Condition
from optiml_magic.kernels.tree import (
    Block,
    Declare,
    Evaluate,
    If,
    Leave,
    Loop,
    Statement,
    walk,
)

_UNROLLED = 4096  # accesses of all rounds written out


@dataclass(frozen=True, eq=False)
class Region:
    """Statements in a row of one block, within so many loops, and what they touch by array.

    Where it ``leaves``, some threads do not come to its end.
    """

    statements: tuple[Statement, ...]
    depth: int
    touched: dict[str, Sequence[Touch]]
    leaves: bool

    @property
    def line(self) -> int:
        return self.statements[0].line

    @property
    def loops(self) -> list[Loop]:
        """The outermost ones of those in it."""
        every = [loop for s in self.statements for loop in loops_in(s)]
        inner = {one for loop in every for one in loops_in(loop.body)}
        return [loop for loop in every if loop not in inner]


def loop_region(kernel: Kernel, loop: Loop) -> Region | None:
    """A loop whose rounds are numbers; None where it is not read once."""
    axis = kernel.axes().get(loop)
    if axis is None:
        return None
    every = written_out(kernel, axis)
    if any(isinstance(s, Leave) and s.kind != "continue" for s in walk(loop)):
        raise NotLegal("the loop has another way out", loop.line)
    depth = every[0].access.loops.index(axis.name)
    touched: dict[str, Sequence[Touch]] = {}
    for touch in every:
        if touch.access.space == "global":
            touched[touch.access.array] = [*touched.get(touch.access.array, ()), touch]
    return Region((loop,), depth, touched, leaves=False)


def written_out(kernel: Kernel, axis: Axis) -> list[Touch]:
    """What a loop does in all of its rounds, where a compiler may write them out."""
    every = [*touches(kernel, axis)]
    if not every or len(every) > _UNROLLED:
        raise NotLegal("its loops have too many rounds to be written out", axis.line)
    return every


def stretch(kernel: Kernel, effects: Effects) -> Region | None:
    """From the first to the last statement of one block that touches global memory.

    None where that is one loop alone. Arrays that are touched in rounds whose number is not known
    are none of its ``touched``.
    """
    block, depth = kernel.function.body, 0
    while True:
        own = [s for s in block.body if effects.accesses(s)]
        if len(own) != 1:
            break
        inner = _inside(own[0])
        if inner is None:
            break
        within = set(effects.accesses(inner))
        head = {access.array for access in effects.accesses(own[0]) if access not in within}
        if not within or head & {access.array for access in within}:
            break
        axis = kernel.axes().get(own[0]) if isinstance(own[0], Loop) else None
        if isinstance(own[0], Loop):
            if axis is None or axis.trips is not None:
                return None
            depth += 1
        block = inner
    if not own or (len(own) == 1 and isinstance(own[0], Loop)):
        return None
    first, last = block.body.index(own[0]), block.body.index(own[-1])
    return _region(kernel, effects, block.body[first : last + 1], depth)


def _inside(statement: Statement) -> Block | None:
    if isinstance(statement, If) and statement.other is None and not statement.constant:
        return statement.then if isinstance(statement.then, Block) else None
    if isinstance(statement, Loop):
        return statement.body if isinstance(statement.body, Block) else None
    return statement if isinstance(statement, Block) else None


def _region(
    kernel: Kernel, effects: Effects, statements: tuple[Statement, ...], depth: int
) -> Region | None:
    known = _known(kernel, statements)
    if known is None:
        return None
    inside = {e for s in statements for e in effects.inside(s)}
    arrays: dict[str, list[Access]] = {}
    for access in kernel.reading.accesses:
        if access.space == "global" and access.own in inside:
            arrays.setdefault(access.array, []).append(access)
    touched: dict[str, Sequence[Touch]] = {}
    for array, own in arrays.items():
        try:
            found = [*followed(kernel, own, depth, known)]
        except NotLegal:
            continue
        if len(found) <= _UNROLLED:
            touched[array] = found
    return Region(statements, depth, touched, any(_leaves(s) for s in statements))


def _known(kernel: Kernel, statements: Iterable[Statement]) -> set[Condition] | None:
    """What holds wherever all of these run: what guards all that is certainly done first.

    None where nothing is.
    """
    sure, axes = set[Expr](), kernel.axes()
    found = list[Iterable[Condition]]()
    for statement in statements:
        if isinstance(statement, Declare | Evaluate | If):
            sure |= {e for top in statement.expressions for e in _computed(top)}
        if any(isinstance(s, Leave) for s in walk(statement)):
            break
        if isinstance(statement, Loop) and statement in axes:
            found.append(axes[statement].guard)
    found += [access.guard for access in kernel.reading.accesses if access.own in sure]
    parts = [{part for one in guard for part in one.conjuncts()} for guard in found]
    return set.intersection(*parts) if parts else None


def _computed(expr: Expr) -> Iterable[Expr]:
    """The parts of an expression that are computed whatever others are."""
    yield expr
    parts = expr.parts
    if isinstance(expr, Choice) or (isinstance(expr, Binary) and expr.op in ("&&", "||")):
        parts = parts[:1]
    for part in parts:
        yield from _computed(part)


def _leaves(statement: Statement, *, within: bool = False) -> bool:
    """Whether a way leads out of a statement other than to its end."""
    if isinstance(statement, Leave):
        return statement.kind == "return" or not within
    within = within or isinstance(statement, Loop)
    return any(_leaves(inner, within=within) for inner in statement.statements)


def certain(ways: Sequence[frozenset[Condition]]) -> bool:
    """Whether all of one of these sets of conditions holds, whatever data say."""
    if any(not way for way in ways):
        return True
    told = next((part for way in ways for part in way), None)
    if told is None or not any(~told in way for way in ways):
        return False
    return all(
        certain([way - {side} for way in ways if ~side not in way]) for side in (told, ~told)
    )


def resting(kernel: Kernel, form: Polynomial | None, loops: Collection[str]) -> Polynomial | None:
    """A form without its constant, and without what moves with these loops.

    None where that is not a sum, or not followed.
    """
    if form is None or not kernel.reading.symbols.known(form):
        return None
    moving = Polynomial.of({m: c for m, c in form.terms if {*loops}.intersection(m)})
    rest = form - moving
    if {*loops} & kernel.reading.symbols.inside(rest) or not moving.symbols <= {*loops}:
        return None
    return rest - Polynomial.constant(dict(rest.terms).get((), 0))
