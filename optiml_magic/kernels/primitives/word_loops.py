"""Loops that go through packed symbols one by one, and count some or look for the first of some.

A round asks of the symbols at its place, and of bounds that a step of several rounds can be held
against at once; it adds to locals, or leaves the loop. It does nothing else.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Literal as Word

from optiml_magic.kernels.expressions import (
    Assign,
    Binary,
    Call,
    Expr,
    Literal,
    Name,
    Step,
    every,
)
from optiml_magic.kernels.primitives.base import Kernel, NotLegal
from optiml_magic.kernels.primitives.effects import Effects, loops_in, names
from optiml_magic.kernels.primitives.packed import Round
from optiml_magic.kernels.primitives.packed_places import Symbol, leaves
from optiml_magic.kernels.primitives.word_tests import (
    added_to,
    conjuncts,
    flat,
    loads,
    opposite,
    way_out,
)
from optiml_magic.kernels.reading import Axis
from optiml_magic.kernels.tree import (
    Blank,
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
from optiml_magic.kernels.types import CType, arithmetic, named

_MIRRORED = {"<": ">", "<=": ">=", ">": "<", ">=": "<=", "!=": "!="}


@dataclass(frozen=True, eq=False)
class Bound:
    """A comparison that a loop goes on by: ``low op high``, of which ``low`` goes up by one.

    ``kind`` is the type in which they are compared.
    """

    low: Expr
    high: Expr
    op: Word["<", "<=", "!="]
    kind: CType


@dataclass(frozen=True, eq=False)
class Count:
    """``variable op= value`` where all of ``tests`` hold, which may each be denied."""

    variable: Variable
    op: str
    value: Expr
    tests: tuple[tuple[Expr, bool], ...]


@dataclass(eq=False)
class WordLoop:
    """What a loop over symbols does; ``then`` is done before it is left at one of ``stops``.

    It may ask for what ``lets`` name. ``going`` are all comparisons that it goes on by, ``bounds``
    those that end it some time. A stop is what a round is left by, or, where it is denied, what it
    goes on by.
    """

    axis: Axis
    round: Round
    going: list[Expr] = field(default_factory=list)
    bounds: list[Bound] = field(default_factory=list)
    stops: list[tuple[Expr, bool]] = field(default_factory=list)
    then: tuple[Statement, ...] = ()
    counts: list[Count] = field(default_factory=list)
    lets: tuple[Declare, ...] = ()

    @property
    def loop(self) -> Loop:
        return self.axis.node

    @property
    def asked(self) -> Iterator[Expr]:
        """What it asks of symbols."""
        yield from (test for test, _ in self.stops)
        for count in self.counts:
            yield count.value
            yield from (test for test, _ in count.tests)

    @property
    def symbols(self) -> list[Symbol]:
        found = (self.round.symbol(e) or self.round.tested(e)
                 for top in self.asked for e in every(top))  # fmt: skip
        return [one for packed in found if packed is not None for one in leaves(packed)]


def word_loops(kernel: Kernel) -> Iterator[WordLoop | NotLegal]:
    """The loops of a kernel over packed symbols, and why not where one nearly is."""
    effects = Effects(kernel)
    for loop, axis in kernel.axes().items():
        if not any(isinstance(e, Binary) and e.op in (">>", "<<") for e in _reached(kernel, loop)):
            continue
        try:
            found = _read(kernel, effects, axis)
        except NotLegal as reason:
            yield reason
            continue
        if found is not None:
            yield found


def _reached(kernel: Kernel, loop: Loop) -> Iterator[Expr]:
    """The expressions of a loop without loops in it, and of the functions that it calls."""
    if len(loops_in(loop)) > 1:
        return
    yield from Effects(kernel).inside(loop)
    if any(isinstance(e, Call) for e in Effects(kernel).inside(loop)):
        for function in kernel.unit.functions:
            yield from expressions(function.body) if not function.kernel else ()


def _read(kernel: Kernel, effects: Effects, axis: Axis) -> WordLoop | None:
    """What a loop over symbols does; None for any other. Raises NotLegal where it nearly is one."""
    refused: NotLegal | None = None
    for counter in _counters(kernel, effects, axis):
        try:
            found = _Reader(kernel, effects, axis, counter).read()
        except NotLegal as reason:
            if refused is None and _has_symbols(kernel, axis.node, counter):
                refused = reason
            continue
        if found.symbols:
            return found
    if refused is not None:
        raise refused
    return None


def _counters(kernel: Kernel, effects: Effects, axis: Axis) -> Iterator[Variable]:
    """The locals that may count the rounds of a loop, the one that does so for the reading first.

    That knows none where a round that goes on is a branch.
    """
    loop = axis.node
    if loop.kind == "do" or len(loops_in(loop)) > 1 or axis.scaled:
        return
    tops = (e for s in walk(loop) for top in s.expressions for e in every(top))
    moved = [e.target.variable for e in tops
             if isinstance(e, Assign | Step) and isinstance(e.target, Name)]  # fmt: skip
    for counter in dict.fromkeys([axis.variable] if axis.variable is not None else moved):
        if counter is None or counter in effects.addressed or counter.type.volatile:
            continue
        kind = named(counter.type.base, kernel.unit.aliases)
        plain = not (counter.type.depth or counter.type.reference or counter.array)
        if plain and kind.integral and (kind.size or 0) >= 4:
            yield counter


def _has_symbols(kernel: Kernel, loop: Loop, counter: Variable) -> bool:
    """Whether a loop that does something else as well asks for a packed symbol."""
    lets = [s for s in walk(loop.body) if isinstance(s, Declare)]
    meant = {v: v.value for s in lets for v in s.variables if v.value is not None}
    own = Round(kernel, loop, counter, frozenset(), meant)
    tops = [own.whole(e) for s in walk(loop) for e in s.expressions]
    return any(own.symbol(e) or own.tested(e) for top in tops for e in every(top))


class _Reader:
    def __init__(self, kernel: Kernel, effects: Effects, axis: Axis, counter: Variable) -> None:
        self.kernel, self.effects, self.counter = kernel, effects, counter
        moving = frozenset(effects.changed(axis.node.body)) - {counter}
        self.meant = dict[Variable, Expr]()
        start, stop = (form.value if form is not None and axis.variable is counter else None
                       for form in (axis.start, axis.stop))  # fmt: skip
        places = range(start, stop) if start is not None and stop is not None else None
        own = Round(kernel, axis.node, counter, moving, self.meant, places)
        self.found = WordLoop(axis, own)
        self.stepped = False
        self.lets = list[Declare]()

    def read(self) -> WordLoop:
        loop, found = self.found.loop, self.found
        if isinstance(loop.before, Declare) and loop.before.variables != (self.counter,):
            raise NotLegal("its head declares more than a counter", loop.line)
        if loop.update is not None:
            if not self._steps(loop.update):
                raise NotLegal("its head does more than to count", loop.line)
            self.stepped = True
        if loop.test is not None:
            self._goes_on(loop.test)
        self._statements(flat(loop.body), ())
        if not self.stepped:
            raise NotLegal("its counter does not move once a round, at its end", loop.line)
        if found.stops and found.counts:
            raise NotLegal("it counts, and may be left early", loop.line)
        if not found.bounds:
            raise NotLegal("no bound says where it ends", loop.line)
        accumulators = {count.variable for count in found.counts}
        asked = names([*found.asked, *found.going])
        if accumulators & asked:
            raise NotLegal("what it counts decides on its rounds", loop.line)
        return found

    def _statements(
        self, statements: list[Statement], tests: tuple[tuple[Expr, bool], ...]
    ) -> None:
        for at, statement in enumerate(statements):
            last = at == len(statements) - 1 and not tests
            match statement:
                case Blank():
                    pass
                case Declare(variables=variables):
                    self._let(statement, variables)
                case If(before=None, constant=False) if self._leaves(statement, tests):
                    other = statement.then if way_out(statement.other) else statement.other
                    rest = [*(flat(other) if other else ()), *statements[at + 1 :]]
                    self._statements(rest, tests)
                    return
                case If(before=None, constant=False, then=then) if way_out(then) == "continue":
                    if self.found.loop.update is None or statement.other or len(flat(then)) > 1:
                        raise NotLegal("a round goes on early", statement.line)
                    test = self.found.round.whole(statement.test)
                    self._statements(statements[at + 1 :], (*tests, (test, True)))
                    return
                case If(before=None, constant=False, test=test, then=then, other=other):
                    test = self.found.round.whole(test)
                    self._statements(flat(then), (*tests, (test, False)))
                    if other is not None:
                        self._statements(flat(other), (*tests, (test, True)))
                case Evaluate(expression=expr) if last and not self.stepped and self._steps(expr):
                    self.stepped = True
                case Evaluate(expression=expr):
                    self.found.counts.append(self._count(expr, tests))
                case _:
                    raise NotLegal("it does more than to ask for symbols", statement.line)

    def _let(self, statement: Declare, variables: tuple[Variable, ...]) -> None:
        for variable in variables:
            plain = not (variable.array or variable.type.reference or variable.type.depth)
            kept = variable not in self.effects.changing and variable not in self.effects.addressed
            if variable.value is None or not plain or not kept:
                raise NotLegal(f"`{variable.name}` is not a value of a round", statement.line)
            own = self.found.round
            value = own.whole(variable.value)
            if not own.only_asks(value):
                raise NotLegal("it does more than to ask for symbols", statement.line)
            kind = named(variable.type.base, self.kernel.unit.aliases).kind
            if kind not in ("int", "bool") and variable.type.base != "auto":
                raise NotLegal(f"`{variable.name}` is not a whole number", statement.line)
            self.meant[variable] = own.held_as(value, variable)
        self.lets.append(statement)

    def _leaves(self, statement: If, tests: tuple[tuple[Expr, bool], ...]) -> bool:
        """Whether a branch leaves the loop, which is then taken down."""
        for way, denied in ((statement.then, False), (statement.other, True)):
            if way_out(way) not in ("break", "return") or (denied and way_out(statement.then)):
                continue
            assert way is not None
            if tests:
                raise NotLegal("it is left where several tests hold", statement.line)
            only = flat(way)
            test = self.found.round.whole(statement.test)
            if len(only) == 1 and isinstance(only[0], Leave) and only[0].kind == "break":
                self._goes_on(test, denied=not denied)
                return True
            if self.found.stops or any(isinstance(s, Loop) or (
                    isinstance(s, Leave) and s is not only[-1]) for s in walk(way)):  # fmt: skip
                raise NotLegal("it is left in several ways", statement.line)
            self.found.stops.append((test, denied))
            self.found.then = tuple(only)
            self.found.lets = tuple(self.lets)
            return True
        return False

    def _goes_on(self, test: Expr, *, denied: bool = False) -> None:
        """Take down what a loop goes on by: bounds, and symbols."""
        for part, no in conjuncts(self.found.round.whole(test), denied=denied):
            compared = opposite(part) if no else part
            bound = self._bound(compared) if compared is not None else None
            if bound is not None or (compared is not None and self._stays(compared)):
                assert compared is not None
                if self.found.stops and loads(compared):
                    raise NotLegal("a bound is loaded behind a test", self.found.loop.line)
                self.found.going.append(compared)
                self.found.bounds += [bound] if isinstance(bound, Bound) else []
                continue
            if self.found.then:
                raise NotLegal("it is left in several ways", self.found.loop.line)
            self.found.stops.append((part, not no))

    def _stays(self, test: Expr) -> bool:
        """Whether a test says the same in all rounds."""
        return self.found.round.slope(test) == 0

    def _bound(self, test: Expr) -> Bound | bool | None:
        """A comparison that ends the loop some time; True for one that, once it holds, goes on."""
        own = self.found.round
        if not isinstance(test, Binary) or test.op not in _MIRRORED:
            return None
        kind = arithmetic(own.kind(test.left), own.kind(test.right))
        slopes = own.slope(test.left), own.slope(test.right)
        if not kind.integral or None in slopes:
            return None
        match slopes:
            case (1, 0):
                low, high, op = test.left, test.right, test.op
            case (0, 1):
                low, high, op = test.right, test.left, _MIRRORED[test.op]
            case (-1, 0) if kind.signed and test.op in ("<", "<="):
                return True
            case (0, -1) if kind.signed and test.op in (">", ">="):
                return True
            case _:
                return None
        if op in (">", ">="):
            return True if kind.signed else None
        return Bound(low, high, op, kind)  # type: ignore[arg-type]

    def _steps(self, expr: Expr) -> bool:
        """Whether this moves the counter by one, and does nothing else."""
        match expr:
            case Step(op="++", target=Name(variable=own)):
                return own is self.counter
            case Assign(op="+=", target=Name(variable=own), value=Literal(value=1)):
                return own is self.counter
            case Assign(
                op="=",
                target=Name(variable=own) as target,
                value=Binary(op="+", left=left, right=right),
            ):
                one = added_to(target, "+", left, right)
                return own is self.counter and isinstance(one, Literal) and one.value == 1
        return False

    def _added(self, expr: Expr) -> tuple[Variable, str, Expr]:
        """The local that a statement adds to, how, and what."""
        match expr:
            case Step(op=step, target=Name(variable=Variable() as own)):
                return own, f"{step[0]}=", Literal(None, "1", 1)
            case Assign(op="+=" | "-=" | "^=" as op, target=Name(variable=Variable() as own)):
                return own, op, expr.value
            case Assign(
                op="=",
                target=Name(variable=Variable() as own) as target,
                value=Binary(op="+" | "-" | "^" as sign, left=left, right=right),
            ):
                value = added_to(target, sign, left, right)
                if value is not None:
                    return own, f"{sign}=", value
        raise NotLegal("it does more than to ask for symbols", self.found.loop.line)

    def _count(self, expr: Expr, tests: tuple[tuple[Expr, bool], ...]) -> Count:
        own, op, value = self._added(expr)
        kind = named(own.type.base, self.kernel.unit.aliases)
        plain = not (own.type.depth or own.type.reference or own.array or own.type.volatile)
        if not plain or not kind.integral or kind.kind == "bool" or own in self.effects.addressed:
            raise NotLegal(f"`{own.name}` is not a whole number of its own", self.found.loop.line)
        if own is self.counter or own.storage not in ("local", "parameter"):
            raise NotLegal("its counter moves within a round", self.found.loop.line)
        value = self.found.round.whole(value)
        added = self.found.round.kind(value)
        wraps = added.kind == "int" and not added.signed and (added.size or 0) >= 4
        longer = (kind.size or 0) > (added.size or 0) and wraps
        if longer and self.found.round.held(value) is None:
            raise NotLegal("it adds up what wraps before it is added", self.found.loop.line)
        return Count(own, op, value, tests)
