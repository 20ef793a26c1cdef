"""What several threads of a block compute alike, in a loop in front of which they may meet.

It is the same for threads that differ in some indices of the block alone: an expression that takes
long, of one round and of the others, or what a round finds by a loop of its own.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass

from optiml_magic.kernels.expressions import (
    Assign,
    Binary,
    Call,
    Expr,
    Literal,
    Name,
    builtin,
    every,
)
from optiml_magic.kernels.primitives.axes import every_place_read, without_warps
from optiml_magic.kernels.primitives.base import Kernel, NotLegal
from optiml_magic.kernels.primitives.costs import is_long
from optiml_magic.kernels.primitives.cutting import check_unfixed
from optiml_magic.kernels.primitives.effects import (
    Effects,
    declared_in,
    is_simple,
    loops_in,
    names,
    parted,
)
from optiml_magic.kernels.primitives.flow import Flow, ends
from optiml_magic.kernels.primitives.grids import needed, needed_form, room
from optiml_magic.kernels.primitives.naming import declared_type
from optiml_magic.kernels.primitives.places import reached
from optiml_magic.kernels.primitives.tabulated import is_value, named_after
from optiml_magic.kernels.symbols import VARYING, Compare, Condition
from optiml_magic.kernels.tree import (
    Block,
    Declare,
    If,
    Loop,
    Statement,
    Variable,
    expressions,
    only_leaves,
    walk,
)
from optiml_magic.kernels.types import named
from optiml_magic.source.directives import RequireDirective
from optiml_magic.source.expressions import parse_expression

LONGEST = 64  # rounds whose results a block keeps: ours
_ROOM = 16 * 1024  # bytes of shared memory that they may take, so that blocks stay many: ours
_SIZES = (4, 8)
One = str | Loop  # an axis of the block, or a loop


@dataclass(frozen=True, eq=False)
class Alike:
    """What rounds of a loop compute, and threads along the ``missing`` axes of a block alike.

    Attributes:
        around: the loop in front of which the block computes it.
        loop: the one whose rounds it depends on.
        axes: those of the block that it depends on.
        node: the expression that it is; None for ``chosen`` statements of the loop.
        made_of: declarations that these ask for, and others as well.
        results: the names of what it finds, with their types.
    """

    around: Loop
    loop: Loop
    rounds: int
    axes: tuple[str, ...]
    missing: tuple[str, ...]
    node: Expr | None
    chosen: tuple[int, ...]
    made_of: tuple[Declare, ...]
    results: tuple[tuple[str, str, int], ...]


def alike(kernel: Kernel) -> tuple[list[Alike], tuple[RequireDirective, ...]]:
    """What threads of a block compute alike, and what of the sizes makes its blocks whole.

    Raises NotLegal where nothing may be shared.
    """
    finder = _Finder(kernel)
    return finder.all(), tuple(finder.requires)


def meant(kernel: Kernel, expr: Expr) -> tuple[str, frozenset[Variable]]:
    """What tells an expression from others: its words, and what its names mean where it stands."""
    return kernel.spelled(expr), names([expr])


class _Finder:
    def __init__(self, kernel: Kernel) -> None:
        if None in kernel.block:
            raise NotLegal("how many threads its blocks have is not known")
        self.kernel, self.effects = kernel, Effects(kernel)
        self.effects.straightforward(alone=False)
        check_unfixed(kernel, alone=False)
        without_warps(kernel)
        every_place_read(kernel)
        self.block = {a: n or 1 for a, n in zip("xyz", kernel.block, strict=True)}
        self.outside = set[Variable]()  # what counts the loops around one, alike for all threads
        self.requires: dict[RequireDirective, None] = {}
        self.written = {a.array for a in kernel.reading.accesses if a.mode != "load"}
        self.touching = {a.own for a in kernel.reading.accesses}
        self.rounds: dict[Variable, tuple[Loop, int]] = {
            axis.variable: (loop, axis.trips)
            for loop, axis in kernel.axes().items()
            if axis.variable is not None and axis.exact and is_simple(axis, self.effects)
            and axis.trips is not None and 1 < axis.trips <= LONGEST
        }  # fmt: skip
        self.counters = {loop: variable for variable, (loop, _) in self.rounds.items()}

    def all(self) -> list[Alike]:
        flow, found = Flow(self.kernel), list[Alike]()
        refused: NotLegal | None = None
        for loop in self.kernel.function.body.body:
            if not isinstance(loop, Loop):
                continue
            for here, meet in (
                ([*self._expressions(loop), *self._sums(loop)], self._meet),
                *(([*self._sums(inner)], self._meet_again) for inner in loops_in(loop.body)),
            ):
                try:
                    if here:
                        meet(flow, here[0].around)
                        found += here
                except NotLegal as reason:
                    refused = reason
        if not found and refused is not None:
            raise refused
        size = sum(
            one.rounds * bytes_ * math.prod(self.block[a] for a in one.axes)
            for one in found for _, _, bytes_ in one.results
        )  # fmt: skip
        if size > _ROOM:
            raise NotLegal("what threads compute alike takes too much shared memory")
        return found

    def _meet(self, flow: Flow, loop: Loop) -> None:
        """Raise NotLegal where not all threads of whole blocks come to a loop together."""
        flow.together(loop)
        asked = list[RequireDirective]()
        for statement in self.kernel.function.body.body:
            if statement is loop:
                break
            if not any(ends(statement)):
                continue
            alone = isinstance(statement, If) and only_leaves(statement.then, "return")
            if not isinstance(statement, If) or not alone or statement.other is not None:
                raise NotLegal("threads of a block diverge before the loop", statement.line)
            guards = [g for g in self.kernel.reading.guards if g.test is statement.test]
            if len(guards) != 1 or not guards[0].exits:
                raise NotLegal("threads of a block diverge before the loop", statement.line)
            for part in guards[0].condition.conjuncts():
                if part.depends & VARYING:
                    asked.append(self._whole(part, statement.line))
        self.requires.update(dict.fromkeys(asked))

    def _meet_again(self, flow: Flow, loop: Loop) -> None:
        """The same for a loop in others, of which every round brings all threads there."""
        if flow.flag(loop) is not None:
            raise NotLegal("not all threads of a block come to the loop", loop.line)

    def _whole(self, part: Condition, line: int) -> RequireDirective:
        """What makes a bound of the items leave no thread of a block out alone."""
        for axis, width in self.block.items():
            count = needed(self.kernel, axis)
            bound = needed_form(self.kernel, axis)
            if count is None or bound is None or not isinstance(part, Compare):
                continue
            if part.op == ">=" and part.form == room(axis, width, bound):
                words = str(count) if str(count).isidentifier() else f"({count})"
                return RequireDirective(parse_expression(f"{words} % {width} == 0"))
        raise NotLegal("threads of a block diverge before the loop", line)

    # -- expressions that take long

    def _expressions(self, around: Loop) -> Iterator[Alike]:
        seen = set[tuple[str, frozenset[Variable]]]()
        for statement in walk(around.body):
            for top in statement.expressions:
                for node in self._largest(top):
                    one = self._expression(around, statement, node)
                    said = meant(self.kernel, node)
                    if one is not None and said not in seen:
                        seen.add(said)
                        yield one

    def _largest(self, expr: Expr) -> Iterator[Expr]:
        if is_long(self.kernel, expr) and self._is_shared(expr):
            yield expr
        elif not isinstance(expr, Assign) or not builtin(expr):
            for part in expr.parts:
                yield from self._largest(part)

    def _is_shared(self, expr: Expr) -> bool:
        types = self.kernel.reading.types
        if not is_value(self.kernel, expr, self.touching) or any(
            isinstance(e, Binary) and e.op in ("/", "%") and not isinstance(e.right, Literal)
            and not ((kind := types.get(e)) and kind.floating)
            for e in every(expr)
        ):  # fmt: skip
            return False
        unit = self.kernel.unit
        called = [f for e in every(expr) if isinstance(e, Call)
                  for own in unit.called(e.function, len(e.arguments))
                  for f in (own, *reached(unit, own))]  # fmt: skip
        if any(loops_in(function.body) for function in called):
            return False  # which may have no end where no thread asks
        try:
            asked = self.asked([expr], ())
        except NotLegal:
            return False
        return sum(isinstance(one, Loop) for one in asked) == 1 and bool(self._missing(asked))

    def _expression(self, around: Loop, statement: Statement, node: Expr) -> Alike | None:
        asked = self.asked([node], ())
        (loop,) = (one for one in asked if isinstance(one, Loop))
        kind = self.kernel.reading.types.get(node)
        plain = kind is not None and kind.kind in ("int", "float") and kind.lanes == 1
        if kind is None or not plain or kind.depth or kind.size not in _SIZES:
            return None
        heads = {loop.before for loop in loops_in(around)}
        inner = [s for s in walk(around.body) if isinstance(s, Declare) and s not in heads]
        wanted, made_of = {*names([node])}, list[Declare]()
        for declared in reversed(inner):
            if {*declared.variables} & wanted:
                if len(declared.variables) > 1:
                    return None
                made_of.insert(0, declared)
                wanted |= names(declared.expressions)
        told = [self.counters[loop].name, *(v.name for s in made_of for v in s.variables)]
        if len({*told}) < len(told):
            return None  # they stand among the same statements
        hint = named_after(statement, node)
        return Alike(
            around, loop, self.rounds[self.counters[loop]][1], self._axes(asked),
            self._missing(asked), node, (), tuple(made_of), ((hint, kind.name, kind.size or 4),),
        )  # fmt: skip

    # -- sums along another loop

    def _sums(self, loop: Loop) -> Iterator[Alike]:
        """What a round of a loop finds by a loop of its own."""
        if loop not in self.counters or not isinstance(loop.body, Block):
            return
        own = [*parted(loop.body)]
        around = (s for s in Flow(self.kernel).around(loop) if isinstance(s, Loop))
        counters = (self.kernel.axes()[s].variable for s in around if s in self.kernel.axes())
        self.outside = {v for v in counters if v is not None} - {self.counters[loop]}
        for at, statement in enumerate(own):
            if isinstance(statement, Loop):
                with suppress(NotLegal):
                    yield self._sum(loop, own, at)
                    break
        self.outside = set()

    def _sum(self, loop: Loop, own: Sequence[Statement], at: int) -> Alike:
        effects, inside = self.effects, declared_in(loop.body)
        chosen = {at}
        while True:
            asked = {v for n in chosen for v in effects.mentions(own[n]) | effects.given(own[n])}
            more = {n for n in range(max(chosen)) if effects.given(own[n]) & asked & inside}
            if more <= chosen:
                break
            chosen |= more
        again = {n for n in chosen if self._is_context(own[n])}  # each thread as soon finds it
        told = {v for n in chosen for v in declared_in(own[n])}
        for n in chosen:
            self._check_pure(own[n])
            if not effects.given(own[n]) <= told:
                raise NotLegal("what it changes is declared elsewhere", own[n].line)
        every_one, chosen = chosen, chosen - again
        declared = {v for n in chosen if isinstance(s := own[n], Declare) for v in s.variables}
        rest = [s for n, s in enumerate(own) if n not in chosen]
        for n in range(max(chosen)):
            if n not in chosen and (effects.mentions(own[n]) & declared or any(ends(own[n]))):
                raise NotLegal("what stands before asks for it, or leaves", own[n].line)
        results = [v for v in declared if any(v in effects.mentions(s) for s in rest)]
        found = self.asked((e for n in every_one for e in expressions(own[n])), told)
        if (
            not results
            or loop not in found
            or any(isinstance(one, Loop) and one is not loop for one in found)
            or not self._missing(found)
        ):
            raise NotLegal("each thread computes a value of its own", loop.line)
        typed = [self._typed(v) for v in sorted(results, key=lambda v: (v.line, v.name))]
        return Alike(
            loop, loop, self.rounds[self.counters[loop]][1], self._axes(found),
            self._missing(found), None, tuple(sorted(chosen)),
            tuple(s for n in sorted(again) if isinstance(s := own[n], Declare)), tuple(typed),
        )  # fmt: skip

    def _is_context(self, statement: Statement) -> bool:
        """Whether a statement declares an index of a round, or what else is soon found again."""
        match statement:
            case Declare(variables=(variable,)) if not is_long(self.kernel, *statement.expressions):
                try:
                    self._depends(variable)
                except NotLegal:
                    return False
                return True
        return False

    def _typed(self, variable: Variable) -> tuple[str, str, int]:
        words = declared_type(self.kernel, variable)
        kind = named(words, self.kernel.unit.aliases)
        plain = kind.kind in ("int", "float") and kind.lanes == 1 and kind.size in _SIZES
        if not plain or kind.depth or variable.array or variable.type.reference:
            raise NotLegal(f"`{variable.name}` is not a plain number", variable.line)
        return variable.name, words, kind.size or 4

    def _check_pure(self, statement: Statement) -> None:
        """Raise NotLegal where a statement does more than to find locals from what stays."""
        effects = self.effects
        if effects.kept(statement) or any(ends(statement)):
            raise NotLegal("it stores in a local array, or leaves", statement.line)
        for access in effects.accesses(statement):
            plain = access.mode == "load" and access.array and access.space != "local"
            if not plain or any(effects.same(access.array, one) for one in self.written):
                raise NotLegal("it touches what the kernel writes", access.line)

    # -- what it depends on

    def asked(self, found: Iterable[Expr], own: Iterable[Variable]) -> frozenset[One]:
        """The axes of the block and the loops that expressions depend on, but for ``own``."""
        return frozenset().union(*(self._of(expr, {*own}) for expr in found))

    def _of(self, expr: Expr, own: set[Variable]) -> frozenset[One]:
        name, _, axis = builtin(expr).partition(".")
        if name:
            if name not in ("threadIdx", "blockIdx", "blockDim", "gridDim") or not axis:
                raise NotLegal(f"`{name}` tells more than an index")
            return frozenset({axis}) if name == "threadIdx" else frozenset()
        if isinstance(expr, Name) and expr.variable is not None and expr.variable not in own:
            return self._depends(expr.variable)
        return frozenset().union(*(self._of(part, own) for part in expr.parts))

    def _depends(self, variable: Variable) -> frozenset[One]:
        if variable in self.outside:
            return frozenset()
        if variable in self.rounds:
            return frozenset({self.rounds[variable][0]})
        if variable.storage == "parameter" and variable.name not in self.effects.moved:
            return frozenset()
        lasts = variable.value is not None and variable in self.effects.lasting
        if not lasts or variable.array or variable.value is None:
            raise NotLegal(f"`{variable.name}` changes")
        if {*every(variable.value)} & self.touching:
            raise NotLegal(f"`{variable.name}` is loaded")
        return self._of(variable.value, set())

    def _axes(self, asked: frozenset[One]) -> tuple[str, ...]:
        return tuple(a for a in "zyx" if a in asked and self.block[a] > 1)

    def _missing(self, asked: frozenset[One]) -> tuple[str, ...]:
        return tuple(a for a in "zyx" if a not in asked and self.block[a] > 1)
