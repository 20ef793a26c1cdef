"""P9, what neighbouring items sum alike: the columns of a square window, each of them once.

A box of three by three is nine additions an item. Where nothing in it but the element tells one
place of the window from another, its columns are those of the neighbours as well: an item adds up
three columns, and ``ITEMS_X + 2`` columns of three serve all of a row's items.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

from optiml_magic.kernels.editing import Node, edited, text
from optiml_magic.kernels.expressions import Literal, Name
from optiml_magic.kernels.primitives.decided import Decided
from optiml_magic.kernels.primitives.indices import COUNTER, factor
from optiml_magic.kernels.primitives.vectored import Vectored
from optiml_magic.kernels.primitives.windows import Round, Taken, Window
from optiml_magic.kernels.reading import Reduction
from optiml_magic.kernels.tree import (
    Block,
    Declare,
    If,
    Loop,
    Statement,
    Variable,
    expressions,
    walk,
)

_LEAST = 3  # rounds of either loop
_JOINED = {
    "min": "{0} = min({0}, {1});", "max": "{0} = max({0}, {1});", "+": "{0} += {1};",
}  # fmt: skip


@dataclass(frozen=True, eq=False)
class Stacked:
    """Two loops as one over the elements of a column, and one over the columns of an item.

    Attributes:
        column: the loop along a column, with all that is done in a round of both.
        turn: the rounds over columns.
        places: what is combined, and from which value.
    """

    column: Loop
    turn: Round
    places: Mapping[Variable, tuple[Reduction, str]]

    def begun(self, names: Mapping[Variable, str]) -> Loop:
        """The loop along a column, that combines into other locals."""
        swaps: dict[Node, Node] = {}
        for expr in expressions(self.column):
            variable = expr.variable if isinstance(expr, Name) else None
            if variable is not None and variable in names:
                swaps[expr] = text(names[variable])
        made = edited(self.column, swaps)
        assert isinstance(made, Loop)
        return made

    def joined(self, place: Variable, own: str, column: str) -> str:
        """A column into what an item has."""
        return _JOINED[self.places[place][0].op].format(own, column)


def stacked(
    decided: Decided, vectored: Vectored, loop: Statement, without_idle: Callable[[Block], Block]
) -> Stacked | None:
    """Two short loops in each other as columns; None where they are anything else."""
    if not isinstance(loop, Loop) or loop not in decided.unrolled:
        return None
    inner = _only_loop(decided, loop)
    if inner is None or inner not in decided.unrolled or _only_loop(decided, inner, none=True):
        return None
    kernel, effects = decided.kernel, decided.effects
    taken = vectored.taken_in(loop)
    if taken is None or not taken:
        return None
    turns = _turns(taken)
    axes = {axis.variable: axis for axis in kernel.axes().values() if axis.node in (loop, inner)}
    if turns is None or len(axes) != 2 or not all(axis.exact for axis in axes.values()):
        return None
    (column,) = (a for v, a in axes.items() if v is None or v.name != turns.name)
    places = _places(decided, loop)
    if not places or turns.step != 1:
        return None
    own = loop.body.body if isinstance(loop.body, Block) else (loop.body,)
    before = [s for s in own if s is not inner]
    of_row = {v for s in before if isinstance(s, Declare) for v in s.variables}
    if of_row & effects.changed(inner).keys() or any(v.array for v in of_row):
        return None  # what a row adds up goes from column to column
    most = inner.body.body if isinstance(inner.body, Block) else (inner.body,)
    body = edited(Block(None, 0, (*before, *most)), decided.swaps)
    assert isinstance(body, Block)
    head = replace(column.node, body=without_idle(body), span=None, head=None)
    named = {e.name for e in expressions(head.body) if isinstance(e, Name)}
    inside = {v for s in walk(head.body) if isinstance(s, Declare) for v in s.variables}
    helpers = {v.name for v in decided.pure - decided.uniform} - {v.name for v in inside}
    several = (vectored.along, *vectored.others)
    items = {turns.name, *helpers, *(n for a in several for n in (a.name, a.first))}
    changed = {v for v in effects.changed(loop) if v not in {*axes}}
    if named & items or any(v not in places and v.name not in _own(loop) for v in changed):
        return None
    return Stacked(head, turns, places)


def _own(loop: Loop) -> set[str]:
    return {v.name for s in walk(loop) if isinstance(s, Declare) for v in s.variables}


def _only_loop(decided: Decided, loop: Loop, *, none: bool = False) -> Loop | None:
    """The loop that is all there is in another, beside locals; with ``none`` any loop in it."""
    body = loop.body.body if isinstance(loop.body, Block) else (loop.body,)
    if none:
        found = [s for s in decided.alive(loop.body) if isinstance(s, Loop)]
        return found[0] if found else None
    loops = [s for s in body if isinstance(s, Loop)]
    others = [s for s in body if not isinstance(s, Loop | Declare) and not _is_gone(decided, s)]
    return loops[0] if len(loops) == 1 and not others else None


def _is_gone(decided: Decided, statement: Statement) -> bool:
    """Whether a test of a border is decided, so that nothing of it is left."""
    if not isinstance(statement, If) or statement not in decided.taken:
        return False
    return decided.taken[statement] is False and statement.other is None


def _turns(taken: Sequence[tuple[Taken, Window]]) -> Round | None:
    """The rounds that go from column to column: a round is an item further."""
    found: set[tuple[Round, Round]] = set()
    for one, group in taken:
        if len(one.rounds) != 2:
            return None
        across = [t for t in one.rounds if factor(group.steps(one, ()), f"{COUNTER}{t.name}")]
        if len(across) != 1:
            return None
        (turn,), (other,) = across, [t for t in one.rounds if t is not across[0]]
        name = f"{COUNTER}{turn.name}"
        by = factor(group.steps(one, ()), name)
        if by != group.apart or any(factor(group.steps(one, s), name) for s in group.strides):
            return None
        found.add((turn, other))
    ((turn, other), *more) = found
    return turn if not more and min(turn.count, other.count) >= _LEAST else None


def _places(decided: Decided, loop: Loop) -> dict[Variable, tuple[Reduction, str]]:
    """What the loops combine, whole numbers in any order, and what a column begins with."""
    reading, found = decided.kernel.reading, dict[Variable, tuple[Reduction, str]]()
    axis, own = decided.kernel.axes()[loop].name, _own(loop)
    for variable in decided.effects.changed(loop):
        if variable.name in own:
            continue
        mine = [r for r in reading.reductions if r.place == variable.name and axis in r.axes]
        if len(mine) != 1 or len(mine[0].axes) != 2 or mine[0].carried:
            return {}
        (one,) = mine
        start = "0" if one.op == "+" else one.start.text if isinstance(one.start, Literal) else ""
        if one.op not in _JOINED or not one.type.integral or not start:
            return {}
        found[variable] = one, start
    return found
