"""Two loops, or nests of loops, side by side that make the same rounds over the same counters.

What the second does in a round may be done in the first, where it needs nothing that comes after
the first has begun.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from optiml_magic.kernels.editing import Node, text
from optiml_magic.kernels.expressions import Call, Expr, Name, every
from optiml_magic.kernels.functions import LANES
from optiml_magic.kernels.primitives.base import Kernel, NotLegal
from optiml_magic.kernels.primitives.collapsed import nested
from optiml_magic.kernels.primitives.effects import Effects, is_simple, names
from optiml_magic.kernels.primitives.naming import speller_before
from optiml_magic.kernels.reading import Axis
from optiml_magic.kernels.tree import (
    Block,
    Declare,
    Leave,
    Loop,
    Statement,
    Variable,
    body_of,
    walk,
)


@dataclass(frozen=True, eq=False)
class Beside:
    """``first`` and ``second`` are the loops of both, outermost first; ``between`` stands there."""

    kernel: Kernel
    effects: Effects
    block: Block
    first: tuple[Axis, ...]
    second: tuple[Axis, ...]

    @cached_property
    def between(self) -> tuple[Statement, ...]:
        body = self.block.body
        return body[body.index(self.first[0].node) + 1 : body.index(self.second[0].node)]

    @property
    def leaves(self) -> tuple[tuple[Statement, ...], tuple[Statement, ...]]:
        """What each does in its innermost rounds."""
        one, other = (nest[-1].node.body for nest in (self.first, self.second))
        return body_of(one), body_of(other)

    @cached_property
    def counters(self) -> Mapping[Variable | None, str]:
        """What the counters of the second are called in the first."""
        pairs = zip(self.second, self.first, strict=True)
        return {b.variable: a.variable.name for b, a in pairs if a.variable is not None}

    @cached_property
    def late(self) -> frozenset[Variable]:
        """The locals that have other values, or are not there yet, as the first begins."""
        steps = (self.first[0].node, *self.between)
        own = {v for s in self.between for d in walk(s) if isinstance(d, Declare)
               for v in d.variables}  # fmt: skip
        return frozenset({*self.effects.changed(*steps), *own})

    def swaps(self, nodes: Iterable[Expr]) -> dict[Node, Node]:
        """The counters of the second by their names in the first."""
        return {e: text(self.counters[e.variable]) for e in nodes
                if isinstance(e, Name) and e.variable in self.counters}  # fmt: skip

    def spelled(self, expr: Expr) -> str:
        """An expression of the second's rounds, in a round of the first."""
        return self._shown(expr, self.swaps(every(expr)))

    def at_start(self, expr: Expr) -> str:
        """An expression of the second's rounds in the first of them."""
        begin = {e: text("0") for e in self.swaps(every(expr))}
        return self._shown(expr, dict(begin))

    @property
    def some(self) -> str:
        """Whether there are any rounds."""
        tests = [self.at_start(axis.node.test) for axis in self.second if axis.node.test]
        return " && ".join(tests if len(tests) == 1 else (f"({one})" for one in tests))

    def count(self, kind: str) -> str:
        """How many rounds there are, of this type, where there are some."""
        speller = speller_before(self.kernel, self.effects, self.first[0].node)
        sizes = [speller.factor(axis.stop) for axis in self.second if axis.stop is not None]
        return " * ".join(f"({kind}){size}" for size in sizes)

    def check(self) -> None:
        """Raise NotLegal where nothing may be moved from the second into the first."""
        effects, second = self.effects, self.second[0].node
        effects.straightforward()
        for statement in (self.first[0].node, *self.between, second):
            for inner in walk(statement):
                if isinstance(inner, Leave):
                    raise NotLegal("a round is left before its end", inner.line)
        for access in effects.accesses(second):
            if access.mode != "load":
                raise NotLegal("the second loop stores", access.line)

    def check_early(self, found: Iterable[Expr], own: frozenset[Variable] = frozenset()) -> None:
        """Raise NotLegal where these mean something else as the first runs, but for ``own``."""
        found = [*found]
        line = self.second[0].line
        for variable in sorted(names(found), key=lambda v: v.name):
            if variable in self.late and variable not in own:
                raise NotLegal(f"`{variable.name}` comes from the loop before", line)
        parts = {part for expr in found for part in every(expr)}
        earlier = (self.first[0].node, *self.between)
        done = {e for statement in earlier for e in self.effects.inside(statement)}
        before = [a for a in self.kernel.reading.accesses if a.own in done]
        for access in self.kernel.reading.accesses:
            if access.own not in parts:
                continue
            if access.space == "local":
                raise NotLegal("it reads an array of its own", access.line)
            if any(a.mode != "load" and self.effects.same(a.array, access.array) for a in before):
                raise NotLegal(f"`{access.array}` is written before it is read again", access.line)
        for call in parts:
            if isinstance(call, Call) and (
                LANES.fullmatch(call.function)
                or self.kernel.unit.called(call.function, len(call.arguments))
            ):
                raise NotLegal(f"it calls `{call.function}`", line)

    def check_names(self, found: Iterable[Expr], own: Iterable[Variable] = ()) -> None:
        """Raise NotLegal where the first calls something else by a name that is moved there."""
        inner = {v.name for axis in self.first for s in walk(axis.node)
                 if isinstance(s, Declare) for v in s.variables}  # fmt: skip
        asked = {v.name for v in names(found) if v not in self.counters} | {v.name for v in own}
        for name in sorted(inner & asked):
            raise NotLegal(f"both loops call something `{name}`", self.second[0].line)

    def _shown(self, expr: Expr, swaps: Mapping[Node, Node]) -> str:
        return self.kernel.spelled(expr, swaps)


def beside(kernel: Kernel) -> Iterator[Beside]:
    """The pairs of loops of a kernel that make the same rounds, the outermost ones."""
    effects, known = Effects(kernel), kernel.axes()
    for block in (s for s in walk(kernel.function.body) if isinstance(s, Block)):
        loops = [s for s in block.body if isinstance(s, Loop)]
        nests = [[known.get(x) for x in (loop, *nested(loop))] for loop in loops]
        for at, first in enumerate(nests):
            for second in nests[at + 1 :]:
                one, other = _read(first, effects), _read(second, effects)
                if one and other and _same(one, other):
                    yield Beside(kernel, effects, block, one, other)


def _read(nest: Sequence[Axis | None], effects: Effects) -> tuple[Axis, ...]:
    """The loops of a nest, where all of them count from 0 and none by the counter of another."""
    axes = [a for a in nest if a is not None and a.exact and is_simple(a, effects)]
    own = {a.name for a in axes}
    free = all(a.stop is not None and not own & a.stop.symbols for a in axes)
    return tuple(axes) if free and len(axes) == len(nest) else ()


def _same(one: Sequence[Axis], other: Sequence[Axis]) -> bool:
    return [a.stop for a in one] == [b.stop for b in other] and one[0].guard == other[0].guard
