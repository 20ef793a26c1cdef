"""Follows what a loop over items does in one round, into the values that it stores.

Loops within are written out, and of branches both ways are followed and joined.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from optiml_magic.kernels.expressions import (
    Assign,
    Binary,
    Braces,
    Call,
    Cast,
    Choice,
    Expr,
    Index,
    Literal,
    Member,
    Name,
    Step,
    Unary,
    every,
)
from optiml_magic.kernels.primitives import pair_values as values
from optiml_magic.kernels.primitives.base import NotLegal
from optiml_magic.kernels.primitives.pair_places import Left, Places, Stored, chain
from optiml_magic.kernels.primitives.pair_values import Test, Value
from optiml_magic.kernels.tree import (
    Blank,
    Block,
    Declare,
    Evaluate,
    Function,
    If,
    Leave,
    Loop,
    Statement,
    Variable,
    walk,
)
from optiml_magic.kernels.types import CType, named

_STATEMENTS = 2000  # that a round may run to, written out: ours
_DEEPEST = 4  # functions within each other: ours
_PLACES = (Binary, Literal, Name)  # what places are made of
_COMPARED = ("<", ">", "<=", ">=", "==", "!=")
_Place = tuple[Variable, tuple[int, ...]]


@dataclass(eq=False)
class Items(Places):
    """One round of a loop over items."""

    known: dict[_Place, Value] = field(default_factory=dict)
    stored: dict[Stored, Value] = field(default_factory=dict)
    loaded: set[Variable] = field(default_factory=set)
    _left: int = _STATEMENTS
    _loops: int = 0  # that a statement may leave
    _within: list[Function] = field(default_factory=list)

    def run(self, statement: Statement) -> None:
        self._left -= 1
        if self._left < 0:
            raise NotLegal("an item is too long to be written out", statement.line)
        match statement:
            case Blank():
                pass
            case Block(body=body):
                for inner in body:
                    self.run(inner)
            case Declare(variables=found):
                for variable in found:
                    self._declare(variable)
            case Evaluate(expression=expression):
                self._do(expression, statement.line)
            case If(before=None, constant=False):
                self._branch(statement)
            case Loop(kind="for" | "while"):
                self._loop(statement)
            case Leave(kind="continue" | "break" as kind) if self._loops:
                raise Left(kind)
            case _:
                raise NotLegal("an item does what is not done in pairs", statement.line)

    def _declare(self, variable: Variable) -> None:
        self.own.add(variable)
        plain = not variable.type.depth and not variable.type.reference
        if not plain or variable.storage != "local" or variable.type.volatile:
            raise NotLegal(f"`{variable.name}` is no plain local", variable.line)
        if variable.array and variable.initial:
            self._table(variable, (), variable.initial)
        elif isinstance(variable.value, Braces):
            self._table(variable, (), variable.value.members)
        elif variable.value is not None:
            try:
                self._begin(variable, self._parts(variable.value, self.kind(variable)))
            except NotLegal:  # as of a place, for which nobody may ask any more
                if not all(isinstance(part, _PLACES) for part in every(variable.value)):
                    raise
                self.known = {p: v for p, v in self.known.items() if p[0] is not variable}

    def _begin(self, variable: Variable, parts: tuple[Value, ...]) -> None:
        """A variable that is no array has a number, or those of its lanes."""
        for lane, part in enumerate(parts):
            self._assign((variable, (lane,) if len(parts) > 1 else ()), part)

    def _table(self, variable: Variable, at: tuple[int, ...], given: tuple[Expr, ...]) -> None:
        for place, member in enumerate(given):
            if isinstance(member, Braces):
                self._table(variable, (*at, place), member.members)
            else:
                self._assign((variable, (*at, place)), self.value(member))

    def _do(self, expression: Expr, line: int) -> None:
        match expression:
            case Step():
                self._step(expression, line)
            case Call(receiver=None, callee=None):
                self._lend(expression)
            case Assign(op="=", target=target, value=value):
                variable, _, lane = chain(target)
                if variable is None or lane:
                    self._set(target, self.value(value), line)
                    return
                parts = self._parts(value, self.kind(variable))
                for one, part in zip(self.numbers(target), parts, strict=True):
                    self._set(one, part, line)
            case Assign(op=op, target=target, value=value) if not any(
                isinstance(part, Step) for part in every(target)
            ):
                changed = Binary(None, op[:-1], target, value)
                self._set(target, self._binary(changed), line)
            case _:
                raise NotLegal("an item does what is not done in pairs", line)

    def _step(self, step: Step, line: int) -> Value:
        before = self.value(step.target)
        after = values.combined(before, values.number(1 if step.op == "++" else -1))
        self._set(step.target, after, line)
        return after if step.prefix else before

    def _set(self, target: Expr, value: Value, line: int) -> None:
        variable, indices, part = self.chained(target)
        if variable is None:
            raise NotLegal("an item stores elsewhere", line)
        if variable in self.arrays and variable not in self.own:
            place = Stored(variable, *self.place(variable, indices, part))
            if place in self.stored:
                raise NotLegal("an item stores twice", line)
            values.fits(value, self.kind(variable).lane, line)
            self.stored[place] = value
            return
        if variable not in self.own:
            raise NotLegal(f"`{variable.name}` goes from item to item", line)
        self._assign((variable, self.constants(indices, part)), value)

    def _assign(self, place: _Place, value: Value) -> None:
        values.fits(value, self.kind(place[0]).lane, place[0].line)
        self.known[place] = value

    def _branch(self, branch: If) -> None:
        test = self.test(branch.test)
        ways = [branch.then, *([branch.other] if branch.other is not None else [])]
        if isinstance(test, bool):
            if test or branch.other is not None:
                self.run(ways[0] if test else ways[1])
            return
        before, stored = dict(self.known), dict(self.stored)
        loops, self._loops = self._loops, 0  # one of two items would go on without the other
        ends = []
        for way in (branch.then, branch.other):
            self.known = dict(before)
            if way is not None:
                self.run(way)
            ends.append(self.known)
        self._loops = loops
        if self.stored != stored:
            raise NotLegal("some items store and others do not", branch.line)
        then, other = ends
        self.known = {
            place: values.chosen(test, then[place], other[place])
            for place in then if place in other
        }  # fmt: skip

    def _loop(self, loop: Loop) -> None:
        if loop.before is not None:
            self.run(loop.before)
        while loop.test is None or (test := self.test(loop.test)) is not False:
            if loop.test is not None and test is not True:
                raise NotLegal("an item makes rounds that its bytes say", loop.line)
            self._loops += 1
            try:
                self.run(loop.body)
            except Left as left:
                if left.kind == "break":
                    break
            finally:
                self._loops -= 1
            if loop.update is not None:
                self._do(loop.update, loop.line)
            if loop.test is None:
                raise NotLegal("a loop has no end", loop.line)

    def test(self, expr: Expr) -> Test | bool:
        match expr:
            case Unary(op="!", operand=operand):
                test = self.test(operand)
                if isinstance(test, bool):
                    return not test
            case Binary(op=op, left=left, right=right) if op in _COMPARED:
                found = values.test(op, *self._sides(left, right))
                return found if found.decided is None else found.decided
            case Binary(op="&&" | "||" as op, left=left, right=right):
                one = self.test(left)
                if isinstance(one, bool):
                    return self.test(right) if one == (op == "&&") else one
        raise NotLegal("a test is not one comparison")

    def _sides(self, left: Expr, right: Expr) -> tuple[Value, Value]:
        """Both sides of a comparison, which one without a sign would change below zero."""
        found = self.value(left), self.value(right)
        kinds = [self.kernel.reading.types.get(side) for side in (left, right)]
        if (
            not all(k and (k.signed or (k.size or 0) < 4) for k in kinds)
            and min(v.low for v in found) < 0
        ):
            raise NotLegal("a number below zero may be taken for one without a sign")
        return found

    def value(self, expr: Expr) -> Value:
        self._plain(expr)
        match expr:
            case Literal(value=int() as known):
                return values.number(known)
            case Name() | Index() | Member():
                return self._read(expr)
            case Step(target=Name()):
                return self._step(expr, 0)
            case Unary(op="+", operand=operand):
                return self.value(operand)
            case Unary(op="-", operand=operand):
                return self._typed(expr, values.combined(values.number(0), self.value(operand), -1))
            case Binary():
                return self._typed(expr, self._binary(expr))
            case Choice(test=test, then=then, other=other):
                given = self.test(test)
                if isinstance(given, bool):
                    return self.value(then if given else other)
                return self._typed(expr, values.chosen(given, *self._sides(then, other)))
            case Cast(type=spelled, operand=operand):
                value, kind = self.value(operand), named(spelled, self.kernel.unit.aliases)
                values.fits(value, kind, 0)
                return value
            case Call(function=name, arguments=given, receiver=None, callee=None):
                return self._call(name.removeprefix("std::").removeprefix("::"), given)
        raise NotLegal("an item computes what is not done in pairs")

    def _plain(self, expr: Expr) -> None:
        kind = self.kernel.reading.types.get(expr)
        if kind is not None and not kind.integral:
            raise NotLegal("an item computes with other numbers than whole ones")

    def _typed(self, expr: Expr, value: Value) -> Value:
        kind = self.kernel.reading.types.get(expr)
        if kind is None:
            raise NotLegal("the type of a number is not known")
        values.fits(value, kind, 0)
        return value

    def _call(self, name: str, given: tuple[Expr, ...]) -> Value:
        own = {f.name for f in self.kernel.unit.functions if not f.kernel}
        if name in ("min", "max") and len(given) == 2 and name not in own:
            return values.extreme(name, *self._sides(*given))
        if name == "abs" and len(given) == 1 and name not in own:
            return values.magnitude(self.value(given[0]))
        parts = self._answered(name, given)
        if len(parts) > 1:
            raise NotLegal(f"`{name}` returns a vector")
        return parts[0]

    def _answered(self, name: str, given: tuple[Expr, ...]) -> tuple[Value, ...]:
        """What a function of the text returns, which changes nothing else."""
        called, lent = self._entered(name, given)
        if not all(parameter.type.const for parameter, _ in lent.values()):
            raise NotLegal(f"`{name}` may change what it is given")
        kind = self._result(called)
        made = self._returned(called.body.body, kind)
        self._within.pop()
        for part in made:
            values.fits(part, kind.lane, called.line)
        return made

    def _lend(self, call: Call) -> None:
        """A function that gives nothing back but by references, which lead to locals."""
        called, lent = self._entered(call.function, call.arguments)
        if called.result.base != "void" or called.result.depth:
            raise NotLegal(f"nobody asks for what `{call.function}` returns")
        self.run(called.body)
        self._within.pop()
        for place, own in lent.items():
            self._assign(place, self.known[own])

    def _entered(self, name: str, given: tuple[Expr, ...]) -> tuple[Function, dict[_Place, _Place]]:
        """A function whose parameters have what they are given, and the locals lent to these."""
        found = self.kernel.unit.called(name, len(given))
        if len(found) != 1 or found[0].template or found[0].kernel or found[0] in self._within:
            raise NotLegal(f"`{name}` is not done in pairs")
        lent: dict[_Place, _Place] = {}
        parameters = found[0].parameters[: len(given)]
        known = [self._parts(one, self.kind(p)) for p, one in zip(parameters, given, strict=True)]
        for parameter, one, parts in zip(parameters, given, known, strict=True):
            if parameter.type.depth or parameter.array or len(self._within) > _DEEPEST:
                raise NotLegal(f"`{name}` is not done in pairs")
            self._begin(parameter, parts)
            for lane, number in enumerate(self.numbers(one) if parameter.type.reference else ()):
                variable, indices, part = self.chained(number)
                if variable is None or variable not in self.own:
                    if parameter.type.const:
                        continue
                    raise NotLegal(f"`{name}` may change what is not a local of its own")
                place = variable, self.constants(indices, part)
                if place in lent:
                    raise NotLegal(f"`{name}` may change what is not a local of its own")
                lent[place] = parameter, (lane,) if len(parts) > 1 else ()
        self.own |= {*found[0].parameters}
        self._within.append(found[0])
        return found[0], lent

    def _result(self, called: Function) -> CType:
        if called.result.depth or called.result.reference:
            raise NotLegal(f"what `{called.name}` returns is not a number")
        return named(called.result.base, self.kernel.unit.aliases)

    def _returned(self, body: tuple[Statement, ...], kind: CType) -> tuple[Value, ...]:
        """What a function returns, whose ways each end with that."""
        for place, statement in enumerate(body):
            match statement:
                case Leave(kind="return", value=Expr() as value):
                    return self._parts(value, kind)
                case Block(body=inner):
                    return self._returned((*inner, *body[place + 1 :]), kind)
                case If(before=None, constant=False) if any(
                    isinstance(inner, Leave) for inner in walk(statement)
                ):
                    test, rest = self.test(statement.test), body[place + 1 :]
                    then = (statement.then, *rest)
                    other = (*((statement.other,) if statement.other else ()), *rest)
                    if isinstance(test, bool):
                        return self._returned(then if test else other, kind)
                    before = dict(self.known)
                    first = self._returned(then, kind)
                    self.known = before
                    ways = zip(first, self._returned(other, kind), strict=True)
                    return tuple(values.chosen(test, *way) for way in ways)
                case _:
                    self.run(statement)
        raise NotLegal("a function may return nothing")

    def _binary(self, expr: Binary) -> Value:
        return values.operation(expr.op, self.value(expr.left), self.value(expr.right))

    def _read(self, expr: Expr) -> Value:
        variable, indices, part = self.chained(expr)
        if variable is None:
            raise NotLegal("an item asks for what is not its own")
        if variable in self.own:
            place = variable, self.constants(indices, part)
            if place not in self.known:
                raise NotLegal(f"`{variable.name}` may not be set", variable.line)
            return self.known[place]
        if variable in self.arrays and indices:
            row, at, step = self.place(variable, indices, part)
            self.loaded.add(variable)
            return values.element(variable.name, row, at, step, self.kind(variable).lane)
        raise NotLegal(f"how great `{variable.name}` is is not known", variable.line)

    def _parts(self, expr: Expr, kind: CType) -> tuple[Value, ...]:
        """The number that something of a type is set to, or those of its lanes."""
        if kind.kind != "vector":
            return (self.value(expr),)
        match expr:
            case Name() | Index():
                variable, *_ = chain(expr)
                if variable is not None and self.kind(variable) == kind:
                    return tuple(self._read(number) for number in self.numbers(expr))
            case Call(function=name, arguments=given, receiver=None, callee=None):
                own = self.kernel.unit.called(name, len(given))
                if own and self._result(own[0]) == kind:
                    return self._answered(name, given)
                plain = name.removeprefix("::") == f"make_{kind.name}" and not own
                if plain and len(given) == kind.lanes:
                    made = tuple(self.value(one) for one in given)
                    for value in made:
                        values.fits(value, kind.lane, 0)
                    return made
        raise NotLegal("a vector is made of what is not done in pairs")
