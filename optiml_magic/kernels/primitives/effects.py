"""What the statements of a kernel touch and change: what legality is asked of."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator
from dataclasses import replace
from functools import cached_property

from optiml_magic.kernels.changes import Change, changes
from optiml_magic.kernels.expressions import (
    Assign,
    Binary,
    Call,
    Expr,
    Index,
    Lambda,
    Member,
    Name,
    Unary,
    Unread,
    every,
)
from optiml_magic.kernels.functions import LANES
from optiml_magic.kernels.loops import test_of
from optiml_magic.kernels.methods import OBJECT, changes_its_object
from optiml_magic.kernels.objects import made_of, without_name
from optiml_magic.kernels.polynomial import Polynomial
from optiml_magic.kernels.primitives.base import Kernel, NotLegal
from optiml_magic.kernels.primitives.flow import ends
from optiml_magic.kernels.reading import Access, Axis
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
    expressions,
    walk,
)

_WORD = re.compile(r"[A-Za-z_]\w*")


class Effects:
    """The accesses of each statement of one kernel; arrays that are one buffer are one.

    What is found is found once a kernel, however many of these it has.
    """

    def __init__(self, kernel: Kernel) -> None:
        self.__dict__ = kernel.known.setdefault(Effects, {})
        self.kernel = kernel
        self.reading = kernel.reading

    @cached_property
    def _inside(self) -> dict[Statement, frozenset[Expr]]:
        return {}

    @cached_property
    def _own(self) -> frozenset[Expr]:
        return frozenset(expressions(self.kernel.function.body))

    def straightforward(self, *, lanes: bool = False, alone: bool = True) -> None:
        """Raise NotLegal where a kernel does what nothing may be moved across.

        Its ``lanes`` may exchange values where warps stay as they are. Its threads need not work
        ``alone`` where whoever asks looks at what they share.
        """
        reading = self.reading
        for barrier in reading.barriers if alone else ():
            raise NotLegal("its threads wait for each other", barrier.line)
        for access in reading.accesses:
            if access.space == "shared" and alone:
                raise NotLegal("its threads share memory", access.line)
            lost = not access.array or (access.index is None and access.offset is None)
            if lost and access.mode != "load":
                raise NotLegal("where it stores is not followed", access.line)
        for name in sorted(reading.calls):
            if LANES.fullmatch(name) and not lanes:
                raise NotLegal(f"its lanes exchange values by `{name}`")
        for leaf in reading.verbatim:
            raise NotLegal(f"{leaf.reason} is not read", leaf.line)
        if without_name(self.kernel.unit, self.kernel.function):
            raise NotLegal("an object without a name may change what it is made of")
        if reading.unclear:
            name = min(reading.unclear)
            raise NotLegal(f"what it does with `{name}` is not followed")

    def nobody_waits(self) -> None:
        """Raise NotLegal where the kernel uses what an atomic operation returns."""
        for access in self.reading.accesses:
            if access.mode == "atomic" and access.node not in self.unasked:
                reason = "threads may wait for what an atomic operation says"
                raise NotLegal(reason, access.line)

    @cached_property
    def unasked(self) -> frozenset[Expr]:
        """The expressions whose values nobody asks for: each is a statement."""
        body = self.kernel.function.body
        return frozenset(s.expression for s in walk(body) if isinstance(s, Evaluate))

    @cached_property
    def moved(self) -> frozenset[str]:
        """The parameters whose names stand for other values somewhere in the kernel."""
        body = self.kernel.function.body
        given = {parameter.name for parameter in self.kernel.function.parameters}
        hidden = {v.name for s in walk(body) if isinstance(s, Declare) for v in s.variables}
        return frozenset(v.name for v in self.changed(body)) & given | given & hidden

    @cached_property
    def changing(self) -> frozenset[Variable]:
        """The locals that get another value than they begin with, some time."""
        own = [*walk(self.kernel.function.body)]
        leaves = [s for s in own if not s.statements]
        heads = [Evaluate(None, s.line, e) for s in own if s.statements for e in s.expressions]
        changed = frozenset(v for part in (*leaves, *heads) for v in self.changed(part))
        declared = [v for s in own if isinstance(s, Declare) for v in s.variables]
        # In the order of their use: what changes a reference changes what it is bound to.
        for reference in (v for v in reversed(declared) if v.type.reference and v.value):
            if reference in changed and reference.value is not None:
                changed |= names([reference.value])
        return changed | self._kept_by_objects

    @cached_property
    def lasting(self) -> frozenset[Variable]:
        """The locals that keep the value that they are declared with."""
        return frozenset(
            v for s in walk(self.kernel.function.body) if isinstance(s, Declare)
            for v in s.variables
            if v.value is not None and v not in self.changing and not v.type.reference
        )  # fmt: skip

    @cached_property
    def lent(self) -> frozenset[Variable]:
        """The locals that an address, a reference, a lambda or a part not read leads to as well."""
        return lent_in(self.kernel.function.body) | self._kept_by_objects

    @cached_property
    def _kept_by_objects(self) -> frozenset[Variable]:
        """The locals that objects which are made of them may refer to, and change by that."""
        return names(made_of(self.kernel.unit, self.kernel.function))

    @cached_property
    def addressed(self) -> frozenset[Variable]:
        """Those of ``lent`` themselves: of ``&v[i]`` that is ``v``, not the place in it."""
        body = self.kernel.function.body
        declared = (v for s in walk(body) if isinstance(s, Declare) for v in s.variables)
        bound = [v.value for v in declared if v.type.reference and v.value is not None]
        found = {*names([*bound, *(e for e in self._own if isinstance(e, Lambda | Unread))])}
        for e in self._own:
            if isinstance(e, Unary) and e.op == "&":
                place = e.operand
                while isinstance(place, Index | Member):
                    place = place.base
                found |= names([place])
        return frozenset(found) | self._kept_by_objects

    def inside(self, statement: Statement) -> frozenset[Expr]:
        """All expressions of a statement and of those in it."""
        found = self._inside.get(statement)
        if found is None:
            found = self._inside[statement] = frozenset(expressions(statement))
        return found

    def accesses(self, statement: Statement) -> list[Access]:
        """Those to global memory in a statement, and by the functions that it calls."""
        inside = self.inside(statement)
        return [a for a in self.reading.accesses if a.own in inside and a.space == "global"]

    def hidden(self) -> Iterator[Access]:
        """The accesses that functions make for the kernel."""
        return (a for a in self.reading.accesses if a.call is not None)

    def taken(self, access: Access) -> Expr | None:
        """What stands in the kernel's own text for a load: it, or the call that returns it."""
        call = access.call
        if not isinstance(call, Call):
            return access.node
        returned = (
            function.body.body[0].value
            for function in self.kernel.unit.called(call.function, len(call.arguments))
            if len(function.body.body) == 1 and isinstance(function.body.body[0], Leave)
        )
        same = self.reading.types.get(call) == access.element
        return call if same and access.node in returned else None

    def changed(self, *statements: Statement) -> dict[Variable, list[Change]]:
        """The locals of outside that these change."""
        return changes(statements, self._may_change)

    def stays(self, loop: Loop, words: str) -> bool:
        """Whether each round may ask for this: nothing in it changes, and nothing is loaded."""
        changed = {variable.name for variable in self.changed(loop.body)}
        return "[" not in words and not changed & set(_WORD.findall(words))

    def given(self, statement: Statement) -> set[Variable]:
        """The locals that a statement declares, and those of outside that it changes."""
        own = statement.variables if isinstance(statement, Declare) else ()
        return {*self.changed(statement), *own}

    def kept(self, statement: Statement, but: Collection[str] = ()) -> str:
        """A local array of outside that a statement stores to; empty where there is no other."""
        inside = self.inside(statement)
        own = {v.name for s in walk(statement) if isinstance(s, Declare) for v in s.variables}
        stored = (a.array for a in self.reading.accesses
                  if a.space == "local" and a.mode != "load" and a.own in inside)  # fmt: skip
        return next((name for name in stored if name not in own and name not in but), "")

    def computes(
        self, statement: Statement, written: Collection[str], filled: Collection[str] = ()
    ) -> bool:
        """Whether a statement leaves nothing behind but locals, nor reads what is ``written``.

        Local arrays are as good where they are among those that it may have ``filled``.
        """
        if self.kept(statement, filled) or any(ends(statement)):
            return False
        return not any(
            a.mode != "load" or not a.array or any(self.same(a.array, w) for w in written)
            for a in self.accesses(statement)
        )

    def begun_anew(self, variable: Variable, loop: Loop) -> bool:
        """Whether each round gives a local a value before it asks for one, and nobody later does.

        Then every lane may have one of its own. Other loops may begin it anew as well.
        """
        whole = self.inside(loop)
        if variable.storage != "local" or variable.array or not self._begins(variable, loop.body):
            return False
        apart = set(self.inside(loop.body))
        for other in loops_in(self.kernel.function.body):
            if not whole <= self.inside(other) and self._begins(variable, other.body):
                apart |= self.inside(other.body)
        return all(
            e in apart or not isinstance(e, Name) or e.variable is not variable for e in self._own
        )

    def _begins(self, variable: Variable, body: Statement) -> bool:
        """Whether the first that is done with a local in a body is to give it a value."""
        own = [s for s in (body.body if isinstance(body, Block) else (body,))
               if variable in self.mentions(s)]  # fmt: skip
        match own:
            case [Evaluate(expression=Assign(op="=", target=Name(variable=v), value=value)), *_]:
                return v is variable and variable not in names([value])
            case [Block() as only]:
                return self._begins(variable, only)
            case [Loop() as only]:  # of which there may be no round, so nobody asks after it
                head = (only.test, only.update, *(only.before.expressions if only.before else ()))
                asked = names(e for e in head if e is not None)
                return variable not in asked and self._begins(variable, only.body)
        return False

    def mentions(self, statement: Statement) -> frozenset[Variable]:
        """The locals that a statement names."""
        return frozenset(
            e.variable for e in self.inside(statement) if isinstance(e, Name) and e.variable
        )

    def same(self, one: str, other: str) -> bool:
        """Whether two arrays may be one."""
        facts = self.kernel.facts
        if one == other:
            return True
        if facts is None or one not in facts.arrays or other not in facts.arrays:
            return False
        return facts.aliased(one, other)

    def _may_change(self, call: Call, at: int) -> bool:
        if at == OBJECT:
            return changes_its_object(self.kernel.unit, call)
        for function in self.kernel.unit.called(call.function, len(call.arguments)):
            if at < len(function.parameters):
                kind = function.parameters[at].type
                if kind.reference and not kind.const:
                    return True
        return False


def names(expressions_: Iterable[Expr]) -> frozenset[Variable]:
    """The locals that expressions name."""
    return frozenset(
        part.variable
        for expression in expressions_
        for part in every(expression)
        if isinstance(part, Name) and part.variable is not None
    )


def lent_in(body: Statement) -> frozenset[Variable]:
    """The locals that an address, a reference, a lambda or a part not read leads to as well."""
    declared = (v for s in walk(body) if isinstance(s, Declare) for v in s.variables)
    bound = [v.value for v in declared if v.type.reference and v.value is not None]
    taken = (e for e in expressions(body) if isinstance(e, Lambda | Unary | Unread))
    return names([*bound, *(e for e in taken if not isinstance(e, Unary) or e.op == "&")])


def parted(body: Statement) -> Iterator[Statement]:
    """The statements of a body, each local by itself."""
    for statement in body.body if isinstance(body, Block) else (body,):
        if isinstance(statement, Declare):
            for at, variable in enumerate(statement.variables):
                lead = None if at else statement.lead
                yield replace(statement, variables=(variable,), span=None, lead=lead)
        elif not isinstance(statement, Blank):
            yield statement


def declared_in(statement: Statement) -> set[Variable]:
    """The locals that are declared within a statement."""
    return {v for s in walk(statement) if isinstance(s, Declare) for v in s.variables}


def loops_in(statement: Statement) -> list[Loop]:
    return [s for s in walk(statement) if isinstance(s, Loop)]


def leaves(branch: If, kind: str = "") -> bool:
    """Whether a branch ends with a way out, or with one of this kind."""
    then = branch.then.body if isinstance(branch.then, Block) else (branch.then,)
    return bool(then) and isinstance(then[-1], Leave) and kind in ("", then[-1].kind)


def outermost(statement: Statement) -> Iterator[Loop]:
    """The loops of a statement, it included, that are in no other of it."""
    if isinstance(statement, Loop):
        yield statement
        return
    for inner in statement.statements:
        yield from outermost(inner)


def is_counted(axis: Axis, effects: Effects) -> bool:
    """Whether a loop counts in its head alone, by one variable of its own."""
    loop = axis.node
    variable = axis.variable
    declared = isinstance(loop.before, Declare) and loop.before.variables == (variable,)
    if loop.kind != "for" or variable is None or not declared or variable.type.depth:
        return False
    if loop.update is None or loop.test is None or test_of(loop)[0] is not loop.test:
        return False
    if not _ordered(loop.test, variable) or effects.changed(Evaluate(None, loop.line, loop.test)):
        return False
    head = effects.changed(Evaluate(None, loop.line, loop.update)).keys()
    moving, inside = names([loop.update]), effects.changed(loop.body).keys()
    steady = axis.step is not None and effects.reading.symbols.known(axis.step)
    return head == {variable} and steady and not moving & inside


def _ordered(test: Expr, variable: Variable) -> bool:
    """Whether a test says which of two is less, or that the variable itself is not another one.

    It holds so for a greater stride as well, or is easily made to; any other is written anew.
    """
    denied = False
    while isinstance(test, Unary) and test.op == "!":
        test, denied = test.operand, True
    if not isinstance(test, Binary) or test.op not in ("<", "<=", ">", ">=", "!="):
        return False
    if test.op != "!=":
        return True
    for own, other in ((test.left, test.right), (test.right, test.left)):
        if isinstance(own, Name) and own.variable is variable and variable not in names([other]):
            return not denied
    return False


def is_simple(axis: Axis, effects: Effects) -> bool:
    """Whether a loop counts its rounds from 0, in its head alone."""
    starts = axis.start is not None and axis.start.value == 0
    return starts and axis.step == Polynomial.constant(1) and is_counted(axis, effects)


def moves_within(axis: Axis, effects: Effects) -> bool:
    """Whether a counter is another number in a round than where that begins: `t-- > 0`."""
    loop = axis.node
    tested = () if loop.test is None else (Evaluate(None, loop.line, loop.test),)
    return axis.variable in effects.changed(loop.body, *tested)


def counts_up(axis: Axis, effects: Effects) -> bool:
    """Whether a loop counts up by one in its head alone, to an end that is the only way out."""
    up = axis.step == Polynomial.constant(1) and by_ones(axis, effects)
    return up and axis.exact and not axis.scaled and axis.stop is not None


def by_ones(axis: Axis, effects: Effects) -> bool:
    """Whether a loop counts up or down by one in its head alone, from where is known."""
    apart = axis.step.value if axis.step is not None else None
    return axis.start is not None and apart in (1, -1) and is_counted(axis, effects)
