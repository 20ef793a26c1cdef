"""P13, shared rounds: a loop for each element of a row, made once for all of them.

A thread an element of attention's result goes through all keys, and finds each score as all threads
of its row do; what differs is one sum. As a thread a row, what elements have in common is done
once, and what differs is done for each of them in turn, in arrays of the thread's own:
``for (d) { acc = 0; for (k) { p = ...; acc += p * v[k][d]; } out[d] = acc; }`` becomes
``for (k) { p = ...; for (d) acc[d] += p * v[k][d]; }``.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace

from optiml_magic.kernels.editing import Node, edited, lines, text
from optiml_magic.kernels.expressions import Name
from optiml_magic.kernels.primitives.base import Kernel, NotLegal, primitive
from optiml_magic.kernels.primitives.effects import (
    Effects,
    declared_in,
    is_simple,
    loops_in,
    names,
    parted,
)
from optiml_magic.kernels.primitives.naming import declared_type
from optiml_magic.kernels.primitives.passes_values import given_in
from optiml_magic.kernels.tree import (
    Block,
    Declare,
    Evaluate,
    If,
    Leave,
    Loop,
    Statement,
    Variable,
    expressions,
    walk,
)

_MOST = 256  # elements of a row: ours


@primitive
def shared_rounds(kernel: Kernel, at: int) -> Kernel:
    """The rounds within the loop with this number, for all of its elements together."""
    loop = loops_in(kernel.function.body)[at]
    effects, axis = Effects(kernel), kernel.axes().get(loop)
    effects.straightforward()
    if axis is None or not is_simple(axis, effects) or not axis.trips or axis.trips > _MOST:
        raise NotLegal("how many elements a row has is not a small number", loop.line)
    assert axis.variable is not None
    made = _Elements(kernel, effects, loop, axis.variable, axis.trips).made()
    return kernel.rewritten(edited(kernel.function.body, {loop: made}))


@dataclass
class _Elements:
    kernel: Kernel
    effects: Effects
    loop: Loop
    counter: Variable
    count: int
    differing: set[Variable] = field(default_factory=set)
    arrays: dict[Variable, str] = field(default_factory=dict)

    def made(self) -> tuple[Statement, ...]:
        own = [*parted(self.loop.body)]
        self._check()
        self._find(own)
        if not any(self._differs(s) and isinstance(s, Loop) and not self._is_own(s) for s in own):
            raise NotLegal("elements of a row share no rounds", self.loop.line)
        body = tuple(self._list(own, self._kept(own)))
        self._check_names(own)
        return (*self._declared(), *body)

    # -- what makes it legal

    def _check(self) -> None:
        """Raise NotLegal where it matters which element comes first, or how many there are."""
        kernel, effects, loop = self.kernel, self.effects, self.loop
        declared = declared_in(loop)
        inner = {s for one in loops_in(loop.body) for s in walk(one)}
        for statement in walk(loop.body):
            if isinstance(statement, Leave) and (
                statement.kind == "return" or statement not in inner
            ):
                raise NotLegal("an element ends before its rounds", statement.line)
            if isinstance(statement, If) and statement.before is not None:
                raise NotLegal("a branch declares a local", statement.line)
        for variable in given_in(effects, loop) - declared:
            raise NotLegal(f"`{variable.name}` goes from element to element", loop.line)
        if declared & effects.addressed:
            raise NotLegal("an address leads to what an element has", loop.line)
        if self.counter.name in {v.name for v in declared - {self.counter}}:
            raise NotLegal(f"a local hides another one, `{self.counter.name}`", loop.line)
        inside = effects.inside(loop)
        accesses = [a for a in kernel.reading.accesses if a.own in inside]
        axis = kernel.axes()[loop].name
        for store in (a for a in accesses if a.mode != "load"):
            if store.space == "local":
                raise NotLegal(f"an element keeps an array, `{store.array}`", store.line)
            others = [a for a in accesses if a is not store and effects.same(a.array, store.array)]
            if store.mode != "store" or others or store.loops[-1:] != (axis,):
                raise NotLegal("elements store more than one value each", store.line)

    def _check_names(self, own: Sequence[Statement]) -> None:
        """Raise NotLegal where a local that all elements share would hide or meet another one."""
        body = self.kernel.function.body
        names_ = [v.name for s in walk(body) if isinstance(s, Declare) for v in s.variables]
        names_ += [v.name for v in self.kernel.function.parameters]
        for variable in (v for s in own if isinstance(s, Declare) for v in s.variables):
            if variable not in self.differing and names_.count(variable.name) > 1:
                raise NotLegal(f"a local hides another one, `{variable.name}`", variable.line)

    # -- what differs from element to element

    def _find(self, own: Sequence[Statement]) -> None:
        self.differing.add(self.counter)
        while True:
            found = {v for s in own for v in self._given(s)}
            if found <= self.differing:
                return
            self.differing |= found

    def _given(self, statement: Statement) -> Iterator[Variable]:
        """The locals that a statement gives what differs."""
        heads = names(statement.expressions)
        if isinstance(statement, Loop):
            heads |= self.effects.mentions(statement.before) if statement.before else frozenset()
        if isinstance(statement, If | Loop) and heads & self.differing:
            yield from self.effects.given(statement)
            yield from declared_in(statement)
        elif isinstance(statement, If | Loop | Block):
            for inner in statement.statements:
                for part in parted(inner):
                    yield from self._given(part)
        elif self.effects.mentions(statement) & self.differing:
            yield from self.effects.given(statement)

    def _differs(self, statement: Statement) -> bool:
        touched = self.effects.mentions(statement) | {*self.effects.given(statement)}
        touched |= declared_in(statement)
        return bool(touched & self.differing)

    def _is_own(self, statement: Statement) -> bool:
        """Whether how often a statement runs differs, so that each element does it by itself."""
        if not isinstance(statement, If | Loop):
            return not isinstance(statement, Block)
        heads = names(statement.expressions)
        if isinstance(statement, Loop) and statement.before is not None:
            heads |= self.effects.mentions(statement.before)
        return bool(heads & self.differing)

    # -- statements

    def _list(self, own: Sequence[Statement], kept: set[Variable]) -> Iterator[Statement]:
        group: list[Statement] = []
        for statement in own:
            differs = self._differs(statement)
            if differs and self._is_own(statement):
                group.append(statement)
                continue
            yield from self._each(group, kept)
            group = []
            yield self._within(statement, kept) if differs else statement
        yield from self._each(group, kept)

    def _within(self, statement: Statement, kept: set[Variable]) -> Statement:
        """A loop or a branch that all elements make alike, with what differs in it."""
        if isinstance(statement, Block):
            own = [*parted(statement)]
            return Block(None, statement.line, tuple(self._list(own, kept | self._kept(own))))
        inner: dict[Node, Node | tuple[Statement, ...] | None] = {}
        for body in statement.statements:
            if isinstance(statement, Loop) and body is statement.before:
                continue
            own = [*parted(body)]
            made = tuple(self._list(own, kept | self._kept(own)))
            inner[body] = Block(None, body.line, made)
        return edited(statement, inner)

    def _kept(self, own: Sequence[Statement]) -> set[Variable]:
        """The locals of a body that differ, and that more than one group of statements asks for."""
        found, group, apart = set[Variable](), 0, dict[Variable, int]()
        for statement in own:
            together = self._differs(statement) and self._is_own(statement)
            group += not together
            for variable in self.effects.mentions(statement) | declared_in(statement):
                if variable not in self.differing or variable is self.counter:
                    continue
                if apart.setdefault(variable, group) != group or not together:
                    found.add(variable)
            group += not together
        declared = {v for s in own if isinstance(s, Declare) for v in s.variables}
        return found & declared

    def _each(self, group: Sequence[Statement], kept: set[Variable]) -> Iterator[Statement]:
        """Statements that are done for each element."""
        if not group:
            return
        for statement in group:
            for inner in walk(statement):
                if isinstance(inner, Leave) and not any(
                    inner in {*walk(loop)} for loop in loops_in(statement)
                ):
                    raise NotLegal("an element leaves a round that all make", inner.line)
        swaps: dict[Node, Node | tuple[Statement, ...] | None] = {}
        for statement in group:
            for variable in kept & {v for s in (statement,) for v in self._declaring(s)}:
                swaps[statement] = self._begin(variable)
            for expr in expressions(statement):
                if isinstance(expr, Name) and expr.variable in kept:
                    swaps[expr] = text(f"{self._array(expr.variable)}[{self.counter.name}]")
        inside = [new for s in group for new in self._shown(s, swaps)]
        if inside:
            body = Block(None, self.loop.line, tuple(inside))
            yield replace(self.loop, span=None, body=body, head=None, foot=None)

    def _declaring(self, statement: Statement) -> tuple[Variable, ...]:
        return statement.variables if isinstance(statement, Declare) else ()

    def _begin(self, variable: Variable) -> tuple[Statement, ...]:
        """What stands for the declaration of a local that has an array now."""
        if variable.array or variable.type.reference or variable.initial or variable.type.depth:
            raise NotLegal(f"`{variable.name}` is not a plain local", variable.line)
        name = self._array(variable)
        if variable.value is None:
            return ()
        swaps: dict[Node, Node] = {
            e: text(f"{self.arrays[e.variable]}[{self.counter.name}]")
            for e in expressions(Evaluate(None, variable.line, variable.value))
            if isinstance(e, Name) and e.variable in self.arrays
        }
        shown = self.kernel.spelled(variable.value, swaps)
        return (lines(f"{name}[{self.counter.name}] = {shown};"),)

    def _array(self, variable: Variable) -> str:
        name = self.arrays.get(variable)
        if name is None:
            name = self.kernel.fresh(f"{variable.name}_row", *self.arrays.values())
            self.arrays[variable] = name
        return name

    def _shown(
        self, statement: Statement, swaps: dict[Node, Node | tuple[Statement, ...] | None]
    ) -> tuple[Statement, ...]:
        if statement in swaps:
            made = swaps[statement]
            assert isinstance(made, tuple)
            return made
        return (edited(statement, swaps),)

    def _declared(self) -> Iterator[Statement]:
        for variable, name in self.arrays.items():
            yield lines(f"{declared_type(self.kernel, variable)} {name}[{self.count}];")
