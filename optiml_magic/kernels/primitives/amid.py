"""Items of which tests that only the last few fail, or the first, are known to hold.

``i + 1 < n ? in[i + 1] : 0`` holds for all items of a tile where it does for the last of them. So a
tile is told by one comparison a test; what its items do otherwise is left to those at the ends. A
test of other sizes, ``i + first < width``, is one as well where few items fail it as measured.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from optiml_magic.kernels.combining import same
from optiml_magic.kernels.editing import Node, Swaps, edited, spread
from optiml_magic.kernels.expressions import (
    Assign,
    Call,
    Choice,
    Expr,
    Name,
    Step,
    every,
    is_logical,
)
from optiml_magic.kernels.polynomial import Polynomial
from optiml_magic.kernels.primitives.base import Kernel
from optiml_magic.kernels.primitives.effects import Effects
from optiml_magic.kernels.primitives.mapped import Mapped
from optiml_magic.kernels.primitives.sizes import value
from optiml_magic.kernels.ranges import Ranges
from optiml_magic.kernels.symbols import Compare, Condition
from optiml_magic.kernels.tree import If, Statement, expressions, walk

_EDGE = Polynomial.constant(32)  # items at most that fail a test: ours
_SELDOM = 1 / 8  # of the items that a test of other sizes fails: ours
_THREAD = "threadIdx.x"
_OURS = frozenset({_THREAD, "blockIdx.x"})
_FIXED = ("scalar", "operation")


@dataclass(frozen=True)
class Amid:
    """What holds for the items that are far enough from the ends.

    Attributes:
        ends: comparisons that hold for all items of a tile where they do for its last, or its first
            if they grow with the items.
        held: the conditions that hold then.
        ways: what is left of branches and choices then, those inside others first.
        dead: the expressions that nobody evaluates then.
    """

    ends: tuple[Compare, ...]
    held: frozenset[Condition]
    ways: Mapping[Node, Node | None]
    dead: frozenset[Expr]

    def settled(self, swaps: Swaps) -> dict[Node, Node | tuple[Statement, ...] | None]:
        """The swaps, and with them those of what is decided."""
        found = {**swaps}
        for node, way in self.ways.items():
            left = edited(way, found) if way is not None else None
            found[node] = spread(left) if isinstance(left, Statement) or left is None else left
        return found


def last(end: Compare) -> bool:
    """Whether a comparison holds for all items of a tile where it does for the last."""
    by = end.form.coefficient(_THREAD)
    return by is not None and (by.value or 0) < 0


def amid(kernel: Kernel, items: Mapped, effects: Effects) -> Amid:
    """What the tests in what is done for each item come to, away from the ends."""
    tests = _Tests(kernel, items, effects)
    ends, held = dict[Compare, None](), set[Condition]()
    ways, dead = dict[Node, Node | None](), set[Expr]()
    for node in (n for s in items.inside for n in _deepest_first(s)):
        condition = tests.condition(node)
        if condition is None:
            continue
        for holds, own in ((True, condition), (False, ~condition)):
            parts = [*own.conjuncts()]
            ours = [part for part in parts if tests.is_end(part)]
            if not ours or not all(p in ours or tests.is_aside(p) for p in parts):
                continue
            ends |= dict.fromkeys(p for p in parts if isinstance(p, Compare))
            held |= {own, *parts}
            taken, left = (node.then, node.other) if holds else (node.other, node.then)
            ways[node] = taken
            dead |= {*every(node.test)} | _inside(left)
            break
    return Amid(tuple(ends), frozenset(held), ways, frozenset(dead))


class _Tests:
    def __init__(self, kernel: Kernel, items: Mapped, effects: Effects) -> None:
        self.kernel = kernel
        self.items = items
        self.lasting = effects.lasting
        self.ranges = Ranges(items.held, kernel.reading.symbols)
        self.told: dict[Expr, Condition] = {}
        for statement in items.inside:
            for node in _deepest_first(statement):
                condition = self._told(node)
                if condition is not None:
                    self.told[node.test] = condition

    def condition(self, node: If | Choice) -> Condition | None:
        """What a test says; one that is written as another, of what lasts, says the same."""
        if any(isinstance(e, Assign | Step | Call) for e in every(node.test)):
            return None
        if node.test in self.told:
            return self.told[node.test]
        lasts = all(
            e.variable in self.lasting for e in every(node.test)
            if isinstance(e, Name) and e.variable is not None and e.variable.storage != "parameter"
        )  # fmt: skip
        alike = (c for test, c in self.told.items() if same(test, node.test))
        return next(alike, None) if lasts else None

    def _told(self, node: If | Choice) -> Condition | None:
        reading = self.kernel.reading
        if isinstance(node, If):
            found = [g for g in reading.guards if g.test is node.test]
            if len(found) != 1 or node.before is not None:
                return None
            return ~found[0].condition if found[0].exits else found[0].condition
        for way, expr in ((True, node.then), (False, node.other)):
            inside = set(every(expr))
            if any(isinstance(e, Choice | Call) or is_logical(e) for e in inside):
                continue
            for access in reading.accesses:
                if access.own in inside and access.call is None and access.guard:
                    return access.guard[-1] if way else ~access.guard[-1]
        return None

    def is_end(self, part: Condition) -> bool:
        """Whether a few items at one end fail it, and no others."""
        if not isinstance(part, Compare) or part.op != ">=":
            return False
        by = part.form.coefficient(_THREAD)
        if by is None or not by.value:
            return False
        rest = part.form - by * self.items.index
        symbols = self.kernel.reading.symbols
        names = symbols.inside(rest)
        if names & _OURS or not all(symbols[n].kind in _FIXED for n in names):
            return False
        return self.ranges.nonnegative(part.form + _EDGE) or self._seldom(rest, by.value)

    def is_aside(self, part: Condition) -> bool:
        """Whether all items of a thread's neighbours fail it, or none does."""
        if not isinstance(part, Compare) or part.op != ">=":
            return False
        symbols = self.kernel.reading.symbols
        names = symbols.inside(part.form)
        return not names & _OURS and all(symbols[n].kind in (*_FIXED, "builtin") for n in names)

    def _seldom(self, rest: Polynomial, by: int) -> bool:
        """Whether few items fail ``rest + by * item >= 0`` at the measured sizes."""
        count, base = value(self.kernel, self.items.bound), value(self.kernel, rest)
        if count is None or base is None:
            return False
        failing = count - (base // -by + 1) if by < 0 else -(base // by)
        return failing <= count * _SELDOM


def _deepest_first(statement: Statement) -> Iterator[If | Choice]:
    for inner in [*walk(statement)][::-1]:
        for top in inner.expressions:
            yield from (e for e in [*every(top)][::-1] if isinstance(e, Choice))
        if isinstance(inner, If):
            yield inner


def _inside(way: Expr | Statement | None) -> set[Expr]:
    if way is None:
        return set()
    return {*(expressions(way) if isinstance(way, Statement) else every(way))}
