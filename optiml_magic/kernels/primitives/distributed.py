"""P4, loop distribution: what a loop sums up for all threads alike goes to a loop of its own.

The mean of a filter's weights, found in the loop that also sums up the pixels of a thread, can then
be computed where its own indices change.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, replace

from optiml_magic.kernels.editing import Node, edited, lines
from optiml_magic.kernels.expressions import Assign, Expr, Name, every
from optiml_magic.kernels.primitives.base import Kernel, NotLegal, primitive
from optiml_magic.kernels.primitives.beforehand import works
from optiml_magic.kernels.primitives.effects import loops_in
from optiml_magic.kernels.primitives.works import Finder
from optiml_magic.kernels.tree import (
    Blank,
    Block,
    Declare,
    Evaluate,
    If,
    Leave,
    Loop,
    Statement,
    Variable,
    Written,
    walk,
)


@primitive
def distributed(kernel: Kernel) -> Kernel:
    """Loops whose sums are alike for all threads in part are two loops, that part first."""
    finder, _ = works(kernel)
    swaps: dict[Node, Node | None] = {}
    for block in walk(kernel.function.body):
        swaps |= _in_block(finder, block) if isinstance(block, Block) else {}
    if not swaps:
        raise NotLegal("no loop sums up what is alike for all threads beside what is not")
    return kernel.rewritten(edited(kernel.function.body, swaps))


def _in_block(finder: Finder, block: Block) -> Iterator[tuple[Loop, Written]]:
    """The loops of a block that become two, with these."""
    known = set[Variable]()  # what is alike for all threads, though it changes
    for statement in block.body:
        if isinstance(statement, Loop):
            nest = _Nest(finder, statement, known)
            if nest.alike and nest.others and nest.is_apart():
                both = (nest.shown(nest.alike), nest.shown(nest.others))
                yield statement, lines("\n".join(both))
            known = (known - nest.left) | (known & nest.own)
            continue
        for unit in _units(finder, statement):
            own = known | unit.given if _is_begun(statement) else known
            alike = not isinstance(statement, If) and _are_alike(finder, [unit], own)
            known = known | unit.given if alike else known - unit.given


def _is_begun(statement: Statement) -> bool:
    """Whether what a statement gives has nothing of what it was before."""
    expr = statement.expression if isinstance(statement, Evaluate) else None
    return isinstance(statement, Declare) or (isinstance(expr, Assign) and expr.op == "=")


@dataclass(frozen=True, eq=False)
class _Unit:
    """A statement that is taken whole, or one of the locals that it declares."""

    statement: Statement
    given: frozenset[Variable]
    asked: frozenset[Variable]
    expressions: tuple[Expr, ...]


def _units(finder: Finder, statement: Statement) -> Iterator[_Unit]:
    effects = finder.effects
    if isinstance(statement, Block | Loop):
        for inner in statement.statements:
            yield from _units(finder, inner)
    elif isinstance(statement, Declare):
        for variable in statement.variables:
            given = (variable.value,) if variable.value is not None else ()
            asked = {e.variable for top in given for e in every(top) if isinstance(e, Name)}
            asked_of = frozenset(v for v in asked if v is not None)
            yield _Unit(statement, frozenset({variable}), asked_of, given)
    elif not isinstance(statement, Blank):
        changed, asked_of = frozenset(effects.given(statement)), effects.mentions(statement)
        yield _Unit(statement, changed, asked_of, tuple(effects.inside(statement)))


def _are_alike(finder: Finder, units: Sequence[_Unit], own: Collection[Variable]) -> bool:
    """Whether these are the same for all threads, and touch nothing that is written."""
    try:
        for unit in units:
            finder.check_pure(unit.statement)
    except NotLegal:
        return False
    return _depend_alike(finder, [e for unit in units for e in unit.expressions], own)


def _depend_alike(finder: Finder, found: Sequence[Expr], own: Collection[Variable]) -> bool:
    try:
        return not finder.asked(found, own) & {*finder.launched}
    except NotLegal:
        return False


class _Nest:
    """A loop, with loops in it, and what it leaves behind."""

    def __init__(self, finder: Finder, nest: Loop, known: Collection[Variable]) -> None:
        self.finder, self.nest = finder, nest
        self.units = [*_units(finder, nest.body)]
        self.left = frozenset(finder.effects.changed(nest))
        self.heads = [top for loop in loops_in(nest) for top in loop.expressions]
        inside = {v for s in walk(nest) if isinstance(s, Declare) for v in s.variables}
        inside |= {*known, *self.left}
        ready = self._is_ready() and _depend_alike(finder, self.heads, inside)
        self.own = {
            v for v in self.left if ready and _are_alike(finder, self._closed({v}), inside)
        }  # fmt: skip
        self.alike = self._closed(self.own)
        self.others = self._closed(self.left - self.own)

    def is_apart(self) -> bool:
        """Whether neither of both changes or asks for what the other leaves behind."""
        rest = self.left - self.own
        return not any(u.given & self.own or u.asked & self.own for u in self.others) and not any(
            u.given & rest or u.asked & rest for u in self.alike
        )

    def shown(self, units: Collection[_Unit]) -> str:
        """The loops with these alone."""
        kept: dict[Statement, set[Variable]] = {}
        for unit in units:
            kept.setdefault(unit.statement, set()).update(unit.given)
        swaps: dict[Node, Node | None] = {}
        for statement in {unit.statement: None for unit in self.units}:
            if statement not in kept:
                swaps[statement] = None
            elif isinstance(statement, Declare):
                own = tuple(v for v in statement.variables if v in kept[statement])
                if len(own) < len(statement.variables):
                    swaps[statement] = replace(statement, variables=own, span=None)
        return self.finder.kernel.show(self.nest, swaps)

    def _is_ready(self) -> bool:
        """Whether all rounds of all loops are made, whatever their sums come to, and count."""
        axes, effects = self.finder.axes, self.finder.effects
        asked = {e.variable for top in self.heads for e in every(top) if isinstance(e, Name)}
        return (
            not any(isinstance(inner, Leave) for inner in walk(self.nest))
            and all(loop in axes and axes[loop].exact for loop in loops_in(self.nest))
            and not asked & self.left
            and not any(effects.changed(loop.before) for loop in loops_in(self.nest) if loop.before)
        )

    def _closed(self, variables: Collection[Variable]) -> list[_Unit]:
        """What gives these, and what these ask for within a round."""
        asked, chosen = {*variables}, set[_Unit]()
        while more := {u for u in self.units if u.given & asked} - chosen:
            chosen |= more
            asked |= {v for u in more for v in u.asked}
        return [unit for unit in self.units if unit in chosen]
