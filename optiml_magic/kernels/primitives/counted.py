"""Every loop as ``for (int k = 0; k < rounds; ++k)``: the shape that the other primitives take.

What moves with the rounds, a counter or a pointer, keeps the value that it began with; where the
body asks for it, the value of that round stands instead, and an element that a moving pointer leads
to is written as an element of its array.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from optiml_magic.kernels.changes import Change
from optiml_magic.kernels.editing import Node, edited, lines, text
from optiml_magic.kernels.expressions import Assign, Expr, Index, Literal, Member, Name, Step, every
from optiml_magic.kernels.loops import test_of
from optiml_magic.kernels.polynomial import Polynomial
from optiml_magic.kernels.primitives.base import Kernel, NotLegal, Refused, primitive, where_legal
from optiml_magic.kernels.primitives.effects import Effects, declared_in, is_counted, loops_in
from optiml_magic.kernels.primitives.flow import ends
from optiml_magic.kernels.primitives.moved_once import goes_along, moved_once, named_by_lambdas
from optiml_magic.kernels.primitives.naming import speller_before
from optiml_magic.kernels.primitives.pointed import Pointed, pointed
from optiml_magic.kernels.primitives.spelled_names import stands
from optiml_magic.kernels.primitives.staged import hints_of
from optiml_magic.kernels.primitives.strides import by, is_steady, is_still
from optiml_magic.kernels.ranges import Ranges
from optiml_magic.kernels.reading import Access, Axis
from optiml_magic.kernels.spelling import Unspelled
from optiml_magic.kernels.symbols import Compare
from optiml_magic.kernels.tree import Block, Declare, Evaluate, Loop, Statement, Variable, walk
from optiml_magic.kernels.types import named

_ONE = Polynomial.constant(1)
_WORD = re.compile(r"[A-Za-z_]\w*")


@primitive
def counted(kernel: Kernel, at: int) -> Kernel:
    """The loop with this number, its rounds counted from 0."""
    return _counted(kernel, at)


@primitive
def all_counted(kernel: Kernel, at: Sequence[int]) -> Kernel:
    """The loops with these numbers, each as it is where its counter alone moves, in its head."""
    for number in at:
        loop = loops_in(kernel.function.body)[number]
        axis = kernel.axes().get(loop)
        if axis is None:
            raise NotLegal("a loop is not read", loop.line)
        if not is_counted(axis, Effects(kernel)):
            kernel = _counted(kernel, number)
        elif goes_along(kernel, axis):
            kernel = where_legal(counted, kernel, number)
    return kernel


def _counted(kernel: Kernel, at: int) -> Kernel:
    kernel = moved_once(kernel, at)
    return _Counting(kernel, loops_in(kernel.function.body)[at]).kernel()


def as_counted(
    kernel: Kernel, at: int, ready: Callable[[Axis, Effects], bool] = is_counted
) -> Kernel | Refused:
    """The kernel with the loop of this number counted, where it is not ``ready`` as it is."""
    axis = kernel.axes().get(loops_in(kernel.function.body)[at])
    if axis is None:
        return Refused("a loop is not read")
    return kernel if ready(axis, Effects(kernel)) else counted(kernel, at)


def upward(kernel: Kernel, at: int) -> Kernel:
    """The kernel with the loop of this number counted from 0, where it goes on in another way.

    It counts by another number than one, or pointers move as its rounds go on.
    """
    loop = loops_in(kernel.function.body)[at]
    axis = kernel.axes().get(loop)
    far = axis is not None and axis.step is not None and axis.step.value not in (None, 1)
    moved = any(v.type.depth for v in Effects(kernel).changed(loop))
    return where_legal(counted, kernel, at) if far or moved else kernel


class _Counting:
    def __init__(self, kernel: Kernel, loop: Loop) -> None:
        self.old = kernel
        self.loop = loop
        self.effects = Effects(kernel)
        axis = kernel.axes().get(loop)
        if axis is None or not (axis.exact or axis.broken):
            reason = f": {axis.reason}" if axis is not None and axis.reason else ""
            raise NotLegal(f"the rounds of the loop are not known{reason}", loop.line)
        self.axis: Axis = axis
        self.name = kernel.fresh("k")
        self.ahead = self._tested_ahead()
        self.moving = self._moving()
        if any(v.type.reference for v in self.moving):
            raise NotLegal("what moves goes by another name as well", loop.line)
        if any(e.variable in self.moving for e in named_by_lambdas(kernel)):
            raise NotLegal("a function within it asks for what moves", loop.line)
        self.left = self._left() if axis.broken else {}

    def _tested_ahead(self) -> set[Variable]:
        """What the test moves, before each round and once more, `i-- > 0`; nobody asks then."""
        loop = self.loop
        test = test_of(loop)[0]
        if test is None:
            return set()
        found = {*self.effects.changed(Evaluate(None, loop.line, test))}
        own = {*loop.before.variables} if isinstance(loop.before, Declare) else set[Variable]()
        if found and (self.axis.first or any(v not in own and self._asked(v) for v in found)):
            raise NotLegal("the test of the loop changes something", loop.line)
        return found

    def _moving(self) -> dict[Variable, tuple[Expr | None, bool]]:
        """What steps by a fixed amount each round, by how much, and whether it counts down."""
        loop = self.loop
        own = self.effects.changed(loop.body)
        reduced = {r.place for r in self.old.reading.reductions if self.axis.name in r.axes}
        head: dict[Variable, list[Change]] = {}
        if loop.update is not None:
            head = self.effects.changed(Evaluate(None, loop.line, loop.update))
        if loop.test is not None and self.ahead:
            head |= self.effects.changed(Evaluate(None, loop.line, loop.test))
        found: dict[Variable, tuple[Expr | None, bool]] = {}
        for variable in {**own, **head}:
            kind = named(variable.type.base, self.old.unit.aliases)
            rounded = kind.floating and not variable.type.depth  # in each round anew
            if (variable.name in reduced or rounded) and variable not in head:
                continue
            every_change = [*own.get(variable, []), *head.get(variable, [])]
            one, counts = every_change[0], variable in head or variable is self.axis.variable
            whole = variable is not self.axis.variable
            regular = is_steady(self.effects, loop, one, whole=whole)
            if len(every_change) != 1 or not regular:
                if counts:
                    raise NotLegal(f"how `{variable.name}` moves is not followed", loop.line)
                continue  # carried from round to round: nobody's business here
            if is_still(self.effects, loop, one.value, own.keys() | head.keys()):
                found[variable] = (one.value, one.op == "-")
            elif variable in head:
                raise NotLegal(f"how far `{variable.name}` moves is not followed", loop.line)
        return found

    def _left(self) -> dict[Variable, str]:
        """Names for what moving locals are behind a loop that is left early."""
        found = dict[Variable, str]()
        for variable in filter(self._leads_out, self.moving):
            if variable.type.depth or variable.type.reference:
                raise NotLegal(f"where `{variable.name}` was left is asked for", self.loop.line)
            found[variable] = self.old.fresh(f"{variable.name}_last", *found.values())
        return found

    def _leads_out(self, variable: Variable) -> bool:
        """Whether somebody asks behind the loop for what moves in it."""
        before = self.loop.before
        own = isinstance(before, Declare) and variable in before.variables
        return not own and self._asked(variable)

    def kernel(self) -> Kernel:
        loop = self.loop
        speller = speller_before(self.old, self.effects, loop)
        speller.names[self.axis.name] = self.name
        self.speller = speller
        rounds = speller.form(speller.local(self._rounds()))
        last: list[Statement] = [*loop.body.body] if isinstance(loop.body, Block) else [loop.body]
        dropped = self._updates(last)
        rest = test_of(loop)[1]
        dropped |= set(last) - set(rest)  # the break that is the test
        dropped |= self._moved_first(rest)
        swaps: dict[Node, Node] = {}
        for statement in last:
            if statement not in dropped:
                self._replace(statement, swaps)
        body = Block(None, loop.line, tuple(s for s in last if s not in dropped))
        noted = [lines(f"{name} = {self._value(v)};") for v, name in self.left.items()]
        left = [way for s in rest for way in ends(s, "break") if noted]
        ways: dict[Node, Node | tuple[Statement, ...] | None] = {
            way: (*noted, lines("break;")) for way in left
        }
        shown = self.old.show(edited(body, {**swaps, **ways}) if swaps or ways else body)
        made: list[Statement] = []
        if isinstance(loop.before, Evaluate):  # in a head it has no semicolon of its own
            if not self._idle():
                made.append(lines(self.old.show(loop.before).rstrip(";") + ";"))
        elif isinstance(before := loop.before, Declare):
            asked = tuple(v for v in before.variables if not self._is_spelled_out(v, shown))
            made += [replace(before, variables=asked, span=None)] if asked else []
        made += self._begun(rounds)
        hints = hints_of(self.old, loop)
        told = "".join(f"{self.old.show(hint).strip()}\n" for hint in hints)
        head = f"for (int {self.name} = 0; {self.name} < {rounds}; ++{self.name})"
        made.append(lines(f"{told}{head} {shown}"))
        made += self._after(rounds)
        if isinstance(loop.before, Declare):
            made = [Block(None, loop.line, tuple(made))] if self._clash(loop.before) else made
        gone: dict[Node, Node | tuple[Statement, ...] | None] = dict.fromkeys(hints)
        return self.old.rewritten(edited(self.old.function.body, {**gone, loop: tuple(made)}))

    def _is_spelled_out(self, variable: Variable, shown: str) -> bool:
        """Whether a number stands wherever a counter of the head was asked for."""
        number = isinstance(variable.value, Literal) and variable in self.moving
        return number and not stands(variable.name, shown)

    def _clash(self, before: Declare) -> bool:
        """Whether a counter of the head would meet another of its name outside of the loop."""
        names = {v.name for v in before.variables}
        inside = self.effects.inside(self.loop)
        return any(
            isinstance(e, Name) and e.name in names and e not in inside
            for e in self.effects.inside(self.old.function.body)
        ) or any(
            isinstance(s, Declare) and s is not before and names & {v.name for v in s.variables}
            for s in walk(self.old.function.body)
        )

    def _rounds(self) -> Polynomial:
        """How many rounds there are; below one is none."""
        again = self._tested()
        if not self.axis.first:
            return again
        return self.old.reading_operations().extreme("max", again + _ONE, _ONE, self.axis.guard)

    def _tested(self) -> Polynomial:
        """How often the test of the loop holds, which in a ``do`` loop comes after a round."""
        parts = [*self.axis.test.conjuncts()]
        test = parts[0] if len(parts) == 1 else None
        form = test.form if isinstance(test, Compare) and test.op == ">=" else None
        by = form.coefficient(self.axis.name) if form is not None else None
        if form is None or by is None or by.value is None or by.value >= 0:
            raise NotLegal("the number of rounds is not known", self.loop.line)
        rest = form.without([self.axis.name])
        if by.value == -1:
            return rest + _ONE
        step = -by.value
        return self.old.reading_operations().operation(
            "/", (rest + Polynomial.constant(step), Polynomial.constant(step))
        )

    def _updates(self, statements: list[Statement]) -> set[Statement]:
        """The statements that only move something, at the end of the body."""
        found: set[Statement] = set()
        for statement in reversed(statements):
            if not isinstance(statement, Evaluate):
                break
            if self._moved(statement) is not None:
                found.add(statement)
            elif self.effects.mentions(statement) & self.moving.keys():
                break
        return found

    def _moved(self, statement: Evaluate) -> Variable | None:
        """What a statement moves that does no more than that."""
        expression = statement.expression
        target = expression.target if isinstance(expression, Assign | Step) else None
        variable = target.variable if isinstance(target, Name) else None
        return variable if variable in self.moving else None

    def _moved_first(self, statements: Sequence[Statement]) -> set[Statement]:
        """The statements that only move something, at the beginning of the body."""
        found: set[Statement] = set()
        for statement in statements:
            if not isinstance(statement, Evaluate):
                break
            variable = self._moved(statement)
            if variable is not None:
                self.ahead.add(variable)
                found.add(statement)
            elif self.effects.mentions(statement) & self.moving.keys():
                break
        return found

    def _replace(self, statement: Statement, swaps: dict[Node, Node]) -> None:
        accesses = {a.node: a for a in self.old.reading.accesses if a.index is not None}
        for top in statement.expressions:
            self._expression(top, accesses, swaps)
        for inner in statement.statements:
            self._replace(inner, swaps)

    def _expression(
        self, expr: Expr, accesses: Mapping[Expr, Access], swaps: dict[Node, Node]
    ) -> None:
        access = accesses.get(expr)
        if isinstance(expr, Assign) and access is not None and access.mode == "store":
            if not self._element(expr.target, access, swaps):
                self._expression(expr.target, accesses, swaps)
            self._expression(expr.value, accesses, swaps)
            return
        loads = access is not None and access.mode == "load" and not isinstance(expr, Assign | Step)
        if access is not None and loads and self._element(expr, access, swaps):
            return
        match expr:
            case Assign(target=Name(variable=v)) | Step(target=Name(variable=v)) if (
                v in self.moving
            ):
                raise NotLegal(f"`{v.name}` moves within the round", self.loop.line)
            case Name(variable=v) if v in self.moving:
                swaps[expr] = text(self._value(v))
                return
        for part in expr.parts:
            self._expression(part, accesses, swaps)

    def _element(self, place: Expr, access: Access, swaps: dict[Node, Node]) -> bool:
        """An element that a moving pointer leads to, as one of its array: whether it now is."""
        names = {e.variable for e in every(place) if isinstance(e, Name)}
        if not names & self.moving.keys():
            return False
        array = self.old.reading.arrays.get(access.array)
        pointers = any(v is not None and v.type.depth for v in names & self.moving.keys())
        if not pointers and isinstance(place, Index | Member):
            return False  # the counter in it is exchanged like any other
        found = pointed(self.old.reading, place, access)
        if array is not None and array.element == access.element and access.index is not None:
            found = Pointed(place, access.index)
        hidden = any(v.name == access.array for v in declared_in(self.loop))
        if found is None or hidden:
            raise NotLegal("what a moving pointer leads to is not followed", access.line)
        try:
            at = self.speller.form(self.speller.local(found.at))
        except Unspelled:  # by rounds inside: what moves is exchanged as it stands
            return False
        swaps[found.node] = found.made(access.array, at)
        return True

    def _value(self, variable: Variable) -> str:
        """What something that moves holds in a round."""
        step, down = self.moving[variable]
        rounds = f"({self.name} + 1)" if variable in self.ahead else self.name
        far = by(self.old, variable, step, rounds)
        start = self._started(variable)
        if start == "0" and not down:
            return far
        return f"{start} {'-' if down else '+'} {far}"

    def _started(self, variable: Variable) -> str:
        before = self.loop.before
        own = isinstance(before, Declare) and variable in before.variables
        first = variable.value if own else None
        match before:
            case Evaluate(expression=Assign(op="=", target=Name(variable=given), value=value)):
                first = value if given is variable else None
        return first.text if isinstance(first, Literal) else variable.name

    def _idle(self) -> bool:
        """Whether the head only gives a number to what nobody asks for after the loop."""
        match self.loop.before:
            case Evaluate(expression=Assign(op="=", target=Name(variable=given), value=Literal())):
                return given in self.moving and not self._asked(given)
        return False

    def _asked(self, variable: Variable) -> bool:
        """Whether something outside of the loop asks for a local, or the loop itself once more."""
        inside, before = self.effects.inside(self.loop), self.loop.before
        begun = isinstance(before, Evaluate) and variable in self.effects.changed(before)
        again = (s.body for s in walk(self.old.function.body)
                 if isinstance(s, Loop) and self.loop in {*walk(s.body)})  # fmt: skip
        if not begun and any(variable not in declared_in(body) for body in again):
            return True
        return any(
            isinstance(e, Name) and e.variable is variable and e not in inside
            for e in self.effects.inside(self.old.function.body)
        )

    def _after(self, rounds: str) -> list[Statement]:
        """What moved, where somebody asks for it after the loop."""
        found: list[Statement] = []
        for variable in filter(self._leads_out, self.moving):
            sign, far = self._way(variable, rounds)
            last = self.left.get(variable)
            words = f"{sign}= {far};" if last is None else f"= {last};"
            found.append(lines(f"{variable.name} {words}"))
        return found

    def _begun(self, rounds: str) -> list[Statement]:
        """What moves where the loop is left at its end, for those that note where else it is."""
        return [
            lines(f"{v.type.base} {name} = {v.name} {' '.join(self._way(v, rounds))};")
            for v, name in self.left.items()
        ]

    def _way(self, variable: Variable, rounds: str) -> tuple[str, str]:
        """How far something moves in all rounds, and in which direction."""
        step, down = self.moving[variable]
        start, stop = self.axis.start, self.axis.stop
        ranges = Ranges(self.axis.guard, self.old.reading.symbols)
        some = start is not None and stop is not None and ranges.nonnegative(stop - start)
        count = f"({rounds})" if self.axis.first or some else self._or_none(rounds)
        return "-" if down else "+", by(self.old, variable, step, count)

    def _or_none(self, rounds: str) -> str:
        """A number of rounds that may be below zero, where there is none."""
        body = (s for s in walk(self.old.function.body) if isinstance(s, Declare))
        known = [*self.old.function.parameters, *(v for s in body for v in s.variables)]
        asked = {v.name: v for v in known if v.name in set(_WORD.findall(rounds))}
        if "long long" not in rounds and all(v.type.base == "int" for v in asked.values()):
            return f"max({rounds}, 0)"
        return f"max((long long)({rounds}), 0LL)"  # of one type, which C++ asks of both
