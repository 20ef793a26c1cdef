"""What one thread does: values of nodes at places, each as far out of loops as it can be."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from types import MappingProxyType
from typing import Any

import numpy as np

from optiml_magic.kernels.expressions import Expr, Literal, Name
from optiml_magic.kernels.polynomial import Polynomial
from optiml_magic.kernels.tree import Statement
from optiml_magic.synthesis.graph import (
    Constant,
    Index,
    Input,
    Map,
    Node,
    Place,
    Position,
    ordered,
)
from optiml_magic.synthesis.lowering import indices
from optiml_magic.synthesis.lowering import spelling as c
from optiml_magic.synthesis.lowering.choices import Choices
from optiml_magic.synthesis.lowering.spelling import Value
from optiml_magic.synthesis.refusals import RefusalError
from optiml_magic.synthesis.sizes import Extents, Quotient, substituted, symbols_of, valued

At = tuple[Polynomial, ...]
_MOST_CONSTANTS = 4096  # numbers of a table in the text
_DEEP = 40  # nodes that are computed for each other
_SHORT = 2  # factors of a sum's terms, from which on it is written row by row
_COUNTERS = ("i", "j", "k", "l", "p", "q", "r", "s")


class TooMuchError(Exception):
    """A kernel that computes all in place asks for too many values; ``visits`` has which."""

    def __init__(self, visits: Mapping[Node, list[Visit]]) -> None:
        super().__init__()
        self.visits = visits


@dataclass(frozen=True)
class Visit:
    """A node computed at a place: how often in the whole launch, and at what cost together."""

    at: At
    times: float
    cost: float


@dataclass
class _Scope:
    """Statements that run together; ``fenced`` where what is in them may not be done before."""

    names: set[str]
    times: float
    fenced: bool = False
    statements: list[Statement] = field(default_factory=list)
    values: dict[Any, Any] = field(default_factory=dict)


class Body:
    """The work of a thread, written down as it is asked for."""

    def __init__(
        self,
        choices: Choices,
        parallel: Mapping[str, Polynomial],
        wholes: Mapping[Polynomial, Polynomial] = MappingProxyType({}),
        most: float = math.inf,
    ) -> None:
        """``parallel`` has the extents of a thread's indices, ``wholes`` shorter forms of sums.

        More than ``most`` values raise TooMuchError.
        """
        self.choices = choices
        self.ranges = dict(parallel)
        self._wholes = wholes
        threads = float(np.prod([self.extent(e) for e in parallel.values()] or [1.0]))
        self._scopes = [_Scope(set(parallel), threads)]
        self._taken = {*choices.taken, *parallel}
        self.asked: Counter[Any] = Counter()
        self.visits: dict[Node, list[Visit]] = {}
        self.functions: dict[str, None] = {}
        self.tables = dict(choices.tables)
        self.read: dict[Node, None] = {}
        self.cost = 0.0
        self.divisions = 0
        self._visited = 0
        self._most = most
        self._nesting = 0

    @property
    def statements(self) -> list[Statement]:
        return self._scopes[0].statements

    def extent(self, expression: Polynomial) -> float:
        """At the sizes at hand, one at least."""
        return float(max(1, valued(expression, self.choices.sizes)))

    def fresh(self, stem: str) -> str:
        """A name that is not taken yet."""
        name, number = stem, 1
        while name in self._taken or c.reserved(name):
            number += 1
            name = f"{stem}{number}"
        self._taken.add(name)
        return name

    def emit(self, statement: Statement) -> None:
        self._scopes[-1].statements.append(statement)

    def spend(self, operations: float) -> None:
        """Operations done each time that the present scope runs."""
        self.cost += operations * self._scopes[-1].times

    def local(self, stem: str, kind: str, value: Expr | None) -> Expr:
        """A new local of the present scope."""
        name = self.fresh(stem)
        self.emit(c.declare(kind, name, value))
        return c.name(name)

    @contextmanager
    def loops(
        self, extents: Sequence[Polynomial], before: Sequence[Statement] = ()
    ) -> Iterator[list[Polynomial]]:
        """Loops in each other; what is emitted meanwhile is inside. Extents of 1 need none.

        ``before`` stands in front of all of them: totals as they begin.
        """
        counters: list[Polynomial] = []
        opened: list[tuple[str, Polynomial]] = []
        start = len(self._scopes[-1].statements)
        for extent in extents:
            if extent.value == 1:
                counters.append(Polynomial.constant(0))
                continue
            name = self.counter(extent)
            opened.append((name, extent))
            counters.append(Polynomial.symbol(name))
        yield counters
        if not opened:  # then what they begin with has to come first
            mine = self._scopes[-1].statements
            mine[start:start] = before
        for name, extent in reversed(opened):
            first = before if name == opened[0][0] else ()
            self.close(name, c.integer(0), self.index(extent), first)

    def named(self, local: Expr) -> str:
        """The name of a local of the present scope, as one that indices may be made of."""
        assert isinstance(local, Name)
        self._scopes[-1].names.add(local.name)
        return local.name

    @contextmanager
    def repeated(self, test: Expr, times: float) -> Iterator[None]:
        """What is emitted meanwhile is done while the test holds, about so many times."""
        inside = _Scope(set(), self._scopes[-1].times * times, fenced=True)
        self._scopes.append(inside)
        yield
        self._scopes.pop()
        self.emit(c.repeat(test, inside.statements))

    def counter(self, extent: Polynomial, times: float | None = None) -> str:
        """Opens a loop over an index of that extent."""
        name = next((n for n in _COUNTERS if n not in self._taken), None) or self.fresh("i")
        self._taken.add(name)
        self.ranges[name] = extent
        rounds = self.extent(extent) if times is None else times
        self._scopes.append(_Scope({name}, self._scopes[-1].times * rounds))
        return name

    def close(
        self, counter: str, start: Expr, stop: Expr, before: Sequence[Statement] = ()
    ) -> None:
        """Ends the innermost loop."""
        scope = self._scopes.pop()
        assert counter in scope.names
        for statement in before:
            self.emit(statement)
        self.emit(c.loop(counter, start, stop, scope.statements))

    def chosen(
        self, test: Expr, then: Callable[[], Value], other: Callable[[], Value], kind: str
    ) -> Value:
        """One of two values, of which only that is computed."""
        sides: list[tuple[list[Statement], Expr]] = []
        for side in (then, other):
            self._scopes.append(_Scope(set(), self._scopes[-1].times, fenced=True))
            value = c.converted(side(), kind)
            sides.append((self._scopes.pop().statements, value))
        (before, one), (after, two) = sides
        if not before and not after:
            return Value(c.choice(test, one, two), kind)
        result = self.local("chosen", kind, None)
        self.emit(c.branch(test, [*before, c.assign(result, one)], [*after, c.assign(result, two)]))
        return Value(result, kind)

    def guarded(self, test: Expr, work: Callable[[], None]) -> None:
        """What ``work`` emits, only where the test holds."""
        self._scopes.append(_Scope(set(), self._scopes[-1].times, fenced=True))
        work()
        self.emit(c.branch(test, self._scopes.pop().statements))

    def value(self, node: Node, at: At) -> Value:
        """A node's element: computed where what it depends on is known, or loaded."""
        self._nesting += 1
        if self._nesting > _DEEP and isinstance(node, Map):
            self._level(node, at)
        found = self._remembered((node, at), at, partial(self._computed, node, at), node)
        self._nesting -= 1
        return found

    def _level(self, node: Map, at: At) -> None:
        """Computes what a long chain of maps begins with first: Python's own stack is short."""
        chain: set[Node] = set()
        stack: list[Node] = [*node.arguments]
        while stack:
            one = stack.pop()
            if one not in chain:
                chain.add(one)
                if isinstance(one, Map) and one not in self.choices.arrays:
                    stack += one.arguments
        nesting, self._nesting = self._nesting, 0
        for one in ordered(iter((node,))):
            if one in chain:
                self._remembered((one, at), at, partial(self._computed, one, at), one)
        self._nesting = nesting

    def _remembered(
        self, key: Any, at: At, compute: Callable[[], Value], node: Node | None = None
    ) -> Value:
        """What is known under the key in any scope around, or is computed as far out as it can."""
        self.asked[key] += 1
        for scope in self._scopes:
            if key in scope.values:
                known: Value = scope.values[key]
                return known
        inner = self._scopes
        depth = self._depth(at)
        self._scopes = inner[: depth + 1]
        before = self.cost
        try:
            value = compute()
            hoisted = len(self._scopes) < len(inner) and self.cost > before
            named = hoisted or self.choices.counts.get(key, 0) > 1
            if (named and c.is_work(value.expression)) or c.is_high(value.expression):
                value = Value(self.local(_stem(node), value.type, value.expression), value.type)
            scope = self._scopes[-1]
            scope.values[key] = value
        finally:
            self._scopes = inner
        if node is not None:
            self._visited += 1
            visit = Visit(at, scope.times, self.cost - before)
            self.visits.setdefault(node, []).append(visit)
            if self._visited > self._most:
                raise TooMuchError(self.visits)
        return value

    def _depth(self, at: At) -> int:
        wanted = frozenset().union(*(symbols_of(place) for place in at))
        depth = 0
        for k, scope in enumerate(self._scopes):
            if scope.fenced or scope.names & wanted:
                depth = k
        return depth

    def _computed(self, node: Node, at: At) -> Value:
        from optiml_magic.synthesis.lowering.nodes import LOWERINGS

        name = self.choices.arrays.get(node)
        if name is not None:
            self.read.setdefault(node)
            return self.loaded(name, node, at)
        try:
            return LOWERINGS[type(node)](self, node, at)
        except RefusalError as error:
            error.line = error.line or node.line
            raise

    def loaded(self, array: str, node: Node, at: At) -> Value:
        """An element of an array."""
        self.spend(1)
        found: Expr = c.element(array, self.subscript(at, node.shape))
        if c.computed(node.dtype) != c.type_of(node.dtype):
            found = c.cast(c.computed(node.dtype), found)
        return Value(found, c.computed(node.dtype))

    def put(self, array: str, node: Node, at: At, value: Value) -> None:
        """Stores an element of an array."""
        self.spend(1)
        place = self.subscript(at, node.shape)
        self.emit(c.assign(c.element(array, place), c.stored(value, node.dtype)))

    def place(self, place: Place, at: At, extent: Polynomial) -> Polynomial:
        """Where a source is read along an axis of that extent."""
        if isinstance(place, Polynomial):
            return self.moved(place, at)
        if isinstance(place, Position):
            return self.moved(place.expression, at)

        def compute() -> Value:
            from optiml_magic.synthesis.lowering.nodes import narrow

            value = c.converted(narrow(self, place, at), "int")
            local = self.local("at", "int", value)
            self.ranges[self.named(local)] = extent
            return Value(local, "int")

        found = self._remembered(("place", place, at), at, compute).expression
        assert isinstance(found, Name)
        return Polynomial.symbol(found.name)

    def moved(self, expression: Polynomial, at: At) -> Polynomial:
        """An expression of a node's indices at a place."""
        return substituted(expression, {f"${k}": place for k, place in enumerate(at)})

    def index(self, expression: Polynomial) -> Expr:
        """A sum of indices and sizes."""
        expression = self._wholes.get(expression, expression)
        return indices.spelled(expression, self._divided)

    def subscript(self, at: At, shape: Extents) -> Expr:
        """The place in memory of an element: one sum where that is short, else row by row."""
        whole = indices.linear(at, shape)
        divided = any(isinstance(s, Quotient) for place in at for s in place.symbols)
        short = len(whole.terms) <= len(shape) and all(len(m) <= _SHORT for m, _ in whole.terms)
        if divided or short or whole in self._wholes:
            return self.index(whole)
        total: Expr | None = None
        for place, extent in zip(at, shape, strict=True):
            if total is not None:
                total = c.binary("*", total, self.index(extent))
            if place.terms:
                own = self.index(place)
                total = own if total is None else c.sum_of(total, own)
        assert total is not None
        return total

    def _divided(self, quotient: Quotient) -> Expr:
        key = ("quotient", quotient)
        at = (quotient.dividend, quotient.divisor)

        def compute() -> Value:
            self.divisions += 1
            self.spend(2)
            above, below = self.index(quotient.dividend), self.index(quotient.divisor)
            if indices.not_negative(quotient.dividend, self.ranges):
                found = c.binary("/", above, below)
            else:
                found = self.function("floor_divided", above, below)
            if isinstance(below, Literal) and not symbols_of(quotient.dividend):
                return Value(found, "int")
            return Value(self.local("whole", "int", found), "int")

        return self._remembered(key, at, compute).expression

    def function(self, name: str, *arguments: Expr) -> Expr:
        """A call of a function that stands above the kernels."""
        self.functions.setdefault(name)
        return c.call(name, *arguments)

    def table(self, node: Constant) -> str:
        """The name of an array of constants in the text."""
        if node.value.size > _MOST_CONSTANTS:
            raise RefusalError(
                f"it brings {node.value.size} numbers along", "give them as an input"
            )
        if node not in self.tables:
            self.tables[node] = self.fresh("table")
        return self.tables[node]


def _stem(node: Node | None) -> str:
    if isinstance(node, (Input, Index)):
        return "x"
    return "t"
