"""What a loop scans into, and which of its scans go on from which."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from optiml_magic.kernels.expressions import Assign, Step
from optiml_magic.kernels.primitives.recurrences import Factors
from optiml_magic.kernels.primitives.systems import System
from optiml_magic.kernels.reading import Reduction
from optiml_magic.kernels.tree import Blank, Loop, Statement, Variable


@dataclass(frozen=True, eq=False)
class Scan:
    """One such local: ``kept`` are the statements that find a part, ``needs`` the scans before.

    Where its ``changes`` are no combination of one kind, they are those of a recurrence; where
    several go on from each other, they are a ``system``, one behind the other. One that is
    ``delayed`` each round gives another value, which is no other round's.
    """

    variable: Variable
    reduction: Reduction
    kept: frozenset[Statement]
    needs: tuple[Variable, ...]
    changes: Mapping[Statement, Assign | Step] = field(default_factory=dict)
    factors: Factors | None = None
    system: System | None = None
    delayed: bool = False


def groups(asked: Mapping[Variable, Collection[Variable]]) -> Iterator[tuple[Variable, ...]]:
    """The locals, those together of which each goes on from what the others were."""
    reached, before = {v: frozenset(own) for v, own in asked.items()}, -1
    while before != sum(map(len, reached.values())):
        before = sum(map(len, reached.values()))
        reached = {v: own.union(*(reached[o] for o in own)) for v, own in reached.items()}
    left = [*asked]
    while left:
        first = left[0]
        group = [first, *(v for v in left[1:] if v in reached[first] and first in reached[v])]
        left = [v for v in left if v not in group]
        yield tuple(group)


def ordered(found: Sequence[Scan]) -> tuple[Scan, ...]:
    """Each behind those that it needs, of which none needs it."""
    left, done = [*found], list[Scan]()
    while left:
        given = {scan.variable for scan in done}
        ready = [scan for scan in left if given.issuperset(scan.needs)]
        done += ready
        left = [scan for scan in left if scan not in ready]
    return tuple(done)


def left_out(kept: Collection[Statement], rest: Sequence[Statement]) -> Iterator[Statement]:
    """The statements of the rest, none in another, that are not kept where a part is found."""
    for statement, behind in zip(rest, (*rest[1:], None), strict=True):
        if isinstance(statement, Blank):
            if not isinstance(behind, Loop) or behind not in kept:
                yield statement
        elif statement not in kept:
            yield statement
        elif not {*kept}.isdisjoint(statement.statements):
            yield from left_out(kept, statement.statements)
