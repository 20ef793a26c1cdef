"""Loops that sum up anew, in each round of a loop around them, all that the round before had.

Their ranges grow with a counter of that loop, so that each round adds a rim to the one before.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property

from optiml_magic.kernels.expressions import Call, Expr, Lambda, Literal, Name, Unread, every
from optiml_magic.kernels.functions import READERS, bare
from optiml_magic.kernels.polynomial import Polynomial
from optiml_magic.kernels.primitives.base import Kernel, NotLegal, once
from optiml_magic.kernels.primitives.begun_anew import BegunAnew, Kept, is_steady
from optiml_magic.kernels.primitives.computing import only_computes
from optiml_magic.kernels.primitives.effects import (
    Effects,
    declared_in,
    is_counted,
    loops_in,
    names,
)
from optiml_magic.kernels.primitives.flow import ends
from optiml_magic.kernels.primitives.moving_ends import Ends, Range, range_of
from optiml_magic.kernels.primitives.naming import type_of
from optiml_magic.kernels.primitives.stepwise import plain
from optiml_magic.kernels.tree import (
    Declare,
    Evaluate,
    Loop,
    Statement,
    Variable,
    body_of,
)

DEPENDS = "what is summed depends on"
SHRINKS = "a range does not hold the one before"


@dataclass(frozen=True, eq=False)
class Growing:
    """A ``nest`` of loops in each round of ``outer``; ``ranges`` are those of it that grow.

    The ``counter`` moves by ``step`` once a round, in ``move``, or in the head where that is None.
    """

    kernel: Kernel
    outer: Loop
    nest: Loop
    counter: Variable
    step: int
    move: Statement | None
    ranges: tuple[Range, ...]
    kept: tuple[Kept, ...]
    ends: Ends = field(repr=False)
    unsteady: frozenset[Variable] = field(repr=False)

    @cached_property
    def innermost(self) -> tuple[Range, ...]:
        """The ranges that no other one is in."""
        loops = {one.loop for one in self.ranges}
        return tuple(r for r in self.ranges if not loops & {*loops_in(r.loop.body)})

    def around(self, one: Range) -> tuple[Range, ...]:
        """The ranges that a range is in, outermost first."""
        return tuple(r for r in self.ranges if one.loop in {*loops_in(r.loop.body)})

    def steady(self, expr: Expr) -> bool:
        """Whether an expression is the same before the outer loop and in all of its rounds."""
        return is_steady(self.kernel, expr, self.unsteady)

    @property
    def moved_ahead(self) -> bool:
        """Whether the counter has moved in a round before the nest looks at it."""
        body = body_of(self.outer.body)
        return self.move is not None and body.index(self.move) < body.index(self.nest)

    def sizes(self, at: Polynomial) -> list[int | None]:
        """How many rounds each innermost range has with those around it, where that is a number."""
        return [self._size(one, at) for one in self.innermost]

    def _size(self, one: Range, at: Polynomial) -> int | None:
        lengths = [self.length(r, at) for r in (*self.around(one), one)]
        return None if None in lengths else math.prod(max(0, n or 0) for n in lengths)

    def length(self, one: Range, at: Polynomial) -> int | None:
        """How many values a range has with this counter, below zero where its ends have passed."""
        return (self.ends.high(one, at) - self.ends.low(one, at)).value

    @property
    def in_order(self) -> bool:
        """Whether all is combined in the order in which it was: a rim comes behind the rest."""
        (one, *others) = self.ranges
        if others or one.loop is not self.nest:
            return False
        at = Polynomial.symbol(self.counter.name)
        before = at - Polynomial.constant(self.step)
        end = self.ends.high if one.down else self.ends.low
        return end(one, at) == end(one, before)


@once
def growing(kernel: Kernel) -> tuple[Growing, ...]:
    """The loops of a kernel that can keep what they sum; raises NotLegal where there are none."""
    found, why = list[Growing](), NotLegal("no loop sums up anew what the round before had")
    for outer in loops_in(kernel.function.body):
        for nest in body_of(outer.body):
            if not isinstance(nest, Loop):
                continue
            try:
                found += Nest(kernel, outer, nest).found()
            except NotLegal as reason:
                why = NotLegal(reason.reason, reason.line or nest.line)
    if not found:
        raise why
    return tuple(found)


class Nest:
    """A nest of loops that is one of the statements of a loop's body."""

    def __init__(self, kernel: Kernel, outer: Loop, nest: Loop) -> None:
        self.kernel, self.outer, self.nest = kernel, outer, nest
        self.effects = Effects(kernel)
        self.body = body_of(outer.body)
        self.axes = kernel.axes()
        self.changed = self.effects.changed(outer.body, *_moves(outer))
        self.own = declared_in(nest)
        self.beside = declared_in(outer) - self.own
        self.least = 0  # statements of the body behind which the counter stays

    def found(self) -> Iterator[Growing]:
        """The nest, where its ranges move at all. Raises NotLegal where that is not enough."""
        counter = self.moving()
        if counter is None:
            return
        step, move = self.step(counter)
        ends_ = Ends(self.kernel, counter, self.meaning)
        ranges = tuple(self._ranges(ends_, counter, step))
        if not ranges:
            return
        unsteady = frozenset({*self.changed, *self.beside})
        kept = tuple(BegunAnew(self.kernel, self.body, self.nest, unsteady, self.hidden).found())
        if not kept:
            raise NotLegal("a nest of loops sums up nothing", self.nest.line)
        made = Growing(
            self.kernel, self.outer, self.nest, counter, step, move, ranges, kept, ends_, unsteady
        )
        self._check(made)
        yield made

    def moving(self) -> Variable | None:
        """What the heads of loops are made of, and each round of the outer loop changes."""
        asked = {v for loop in loops_in(self.nest) for v in self.asked(head_of(loop))}
        moving = [
            v for v in asked
            if v in {*self.changed} or (v in self.beside and v not in self.effects.lasting)
        ]  # fmt: skip
        if len(moving) > 1:
            raise NotLegal("the ends of its loops move with more than one counter", self.nest.line)
        return moving[0] if moving else None

    def asked(self, parts: Sequence[Expr]) -> Iterator[Variable]:
        """The names that expressions come down to, what locals of a round stand for included."""
        todo, seen = [*names(parts)], set[Variable]()
        while todo:
            one = todo.pop()
            if one not in seen:
                seen.add(one)
                yield one
                if one in self.beside | self.own and one.value is not None:
                    todo += names([one.value]) if one in self.effects.lasting else ()

    def step(self, counter: Variable) -> tuple[int, Statement | None]:
        """How far the counter moves in each round, and where."""
        kind, line = type_of(self.kernel, counter), self.outer.line
        odd = counter.type.reference or counter.array or counter in self.effects.lent
        if odd or counter.storage not in ("local", "parameter"):
            raise NotLegal(f"`{counter.name}` has more than one name", line)
        if not (kind.integral and kind.signed and kind.size in (4, 8)):
            raise NotLegal(f"`{counter.name}` may wrap around", line)
        head = self.outer.update
        heads = [] if head is None else [Evaluate(None, line, head)]
        places = [*heads, *(s for s in self.body if isinstance(s, Evaluate))]
        moves = [(s, c) for s in places for c in self.effects.changed(s).get(counter, ())]
        once_ = len(self.changed.get(counter, ())) == 1 and len(moves) == 1
        if not once_ or counter in self.beside - declared_in_head(self.outer):
            raise NotLegal(f"`{counter.name}` does not move once a round", line)
        ((move, change),) = moves
        value = Literal(None, "1", 1) if change.value is None else change.value
        by = value.value if isinstance(value, Literal) else None
        if not change.always or change.op not in ("+", "-") or not isinstance(by, int) or by <= 0:
            raise NotLegal(f"how far `{counter.name}` moves is not known", line)
        inside = move not in heads
        if inside:
            at = self.body.index(move)
            self.least = at + 1 if at < self.body.index(self.nest) else 0
            later = self.body[self.body.index(self.nest) :]
            if not self.least and any(leave for s in later for leave in ends(s, "continue")):
                raise NotLegal(f"`{counter.name}` may stay in a round", line)
        return by if change.op == "+" else -by, move if inside else None

    def meaning(self, local: Variable) -> Expr | Variable | None:
        """What stands for a local in the ends of the loops."""
        if local in {*self.changed} or local.type.reference or local.array or local.type.volatile:
            return None
        if local in self.own:
            inner = any(local in declared_in_head(loop) for loop in loops_in(self.nest))
            if inner:
                return local
        elif local not in self.beside:
            return None if local in self.effects.lent else local
        declared = [n for n, s in enumerate(self.body)
                    if isinstance(s, Declare) and local in s.variables]  # fmt: skip
        late = local in self.own or (declared and declared[0] >= self.least)
        return local.value if late and local in self.effects.lasting else None

    def _ranges(self, ends_: Ends, counter: Variable, step: int) -> Iterator[Range]:
        for loop in loops_in(self.nest):
            if counter not in {*self.asked(head_of(loop))}:
                continue
            axis = self.axes.get(loop)
            by = axis.step.value if axis is not None and axis.step is not None else None
            if axis is None or axis.variable is None or not is_counted(axis, self.effects):
                raise NotLegal("a loop does not count in its head alone", loop.line)
            if not axis.exact or by not in (1, -1):
                raise NotLegal("a loop does not make all rounds of a range", loop.line)
            kind, one = type_of(self.kernel, axis.variable), range_of(loop, axis.variable, by)
            if one is None or not (kind.integral and kind.signed and kind.size in (4, 8)):
                raise NotLegal("where a loop ends is not followed", loop.line)
            if axis.variable in self.effects.changed(loop.body):
                raise NotLegal("a loop does not count in its head alone", loop.line)
            kinds = [self.kernel.reading.types.get(end) for end in (one.first, one.end)]
            if any(k is None or not (k.integral and k.signed) for k in kinds):
                raise NotLegal("an end of a loop may be unsigned", loop.line)
            up = 1 if step > 0 else -1
            first, end = ends_.way(one.first), ends_.way(one.end)
            if first is None or end is None:
                raise NotLegal("how the ends of a loop move is not known", loop.line)
            if first * up > 0 or end * up < 0:
                raise NotLegal(SHRINKS, loop.line)
            yield one

    def hidden(self, local: Variable) -> bool:
        """Whether another variable has the name of this one, where this one may be asked for."""
        scope = self.own | self.beside
        for loop in loops_in(self.nest):  # the innermost one comes last
            if local in declared_in(loop):
                scope = declared_in(loop)
        return any(v.name == local.name and v is not local for v in scope)

    def _check(self, made: Growing) -> None:
        """Raise NotLegal where what is combined may be another the next time."""
        self.effects.straightforward()
        line = self.nest.line
        at = self.body.index(self.nest)
        begun = min((self.body.index(one.begin) for one in made.kept), default=at)
        ways = [w for s in self.body[:begun] for w in ends(s, "continue")]
        ways += [w for s in self.body[begun : at + 1] for w in ends(s)]
        if ways:
            raise NotLegal("a round may end before it sums up", ways[0].line)
        inner = [one.loop for one in made.innermost]
        kept, changes = {one.local for one in made.kept}, self.effects.changed(self.nest)
        within = [self.effects.changed(loop.body) for loop in inner]
        for local in kept:
            if sum(len(w.get(local, ())) for w in within) != len(changes[local]):
                raise NotLegal(f"`{local.name}` changes outside of what grows", line)
        for loop, changed in zip(inner, within, strict=True):
            if others := [v for v in changed if v not in kept]:
                raise NotLegal(f"`{others[0].name}` goes from round to round", loop.line)
        for one in {*self.asked([e for r in made.ranges for e in head_of(r.loop)])}:
            if self.hidden(one):
                raise NotLegal(f"`{one.name}` is the name of several locals", line)
        heads = {e for one in made.ranges for top in head_of(one.loop) for e in every(top)}
        asked = [e for e in self.effects.inside(self.nest) if e not in heads]
        for part in asked:
            if isinstance(part, Lambda | Unread):
                raise NotLegal("a part of it is not read", line)
            if isinstance(part, Name) and part.variable is not None:
                self._check_name(part.variable, kept)
            if isinstance(part, Name) and part.variable is None and part.name in self._globals:
                reason = f"{DEPENDS} `{part.name}`, which may change"
                raise NotLegal(reason, line)
            reads = isinstance(part, Call) and READERS.fullmatch(bare(part.function))
            if isinstance(part, Call) and not reads and not only_computes(self.kernel, part):
                raise NotLegal(f"what `{part.function}` does is not known", line)
        self._check_memory()

    @cached_property
    def _globals(self) -> set[str]:
        """The numbers of the program that a kernel may change."""
        declared = (v for s in self.kernel.unit.declarations for v in s.variables)
        return {v.name for v in declared if not (v.type.const or v.type.depth or v.array)}

    def _check_name(self, one: Variable, kept: set[Variable]) -> None:
        """A name that the rounds of the nest ask for means the same in all of them."""
        if one in kept or one in self.own:
            return
        todo, seen = [one], set[Variable]()
        while todo:
            local = todo.pop()
            moved = local in {*self.changed} or local.type.volatile or local.type.reference
            if local in self.beside and local not in self.effects.lasting:
                moved = True
            lent = local in self.effects.lent and not local.array and not local.type.depth
            if moved or lent:
                reason = f"{DEPENDS} `{local.name}`, which changes"
                raise NotLegal(reason, self.nest.line)
            if local in self.beside and local not in seen and local.value is not None:
                if not plain(local.value, self.effects):
                    reason = f"{DEPENDS} `{local.name}`, which may change"
                    raise NotLegal(reason, self.nest.line)
                seen.add(local)
                todo += names([local.value])

    def _check_memory(self) -> None:
        reading, inside = self.kernel.reading, self.effects.inside(self.nest)
        around = self.effects.inside(self.outer)
        local = {v.name for v in self.own}
        for access in reading.accesses:
            if access.own not in inside:
                continue
            if access.array in local and access.space == "local":
                continue
            if access.mode != "load" or not access.array:
                raise NotLegal("it does more than to load and to sum up", access.line)
            stored = (a for a in reading.accesses if a.mode != "load"
                      and (a.space == "global" or a.own in around)
                      and self.effects.same(a.array, access.array))  # fmt: skip
            if any(stored):
                raise NotLegal(f"`{access.array}` is written as well", access.line)


def declared_in_head(loop: Loop) -> set[Variable]:
    """The counters that the head of a loop declares."""
    return {*loop.before.variables} if isinstance(loop.before, Declare) else set()


def _moves(loop: Loop) -> list[Statement]:
    """What the head of a loop does in each round."""
    return [Evaluate(None, loop.line, e) for e in (loop.test, loop.update) if e is not None]


def head_of(loop: Loop) -> tuple[Expr, ...]:
    """The expressions of a loop's head."""
    before = loop.before.expressions if loop.before is not None else ()
    return (*before, *(e for e in (loop.test, loop.update) if e is not None))
