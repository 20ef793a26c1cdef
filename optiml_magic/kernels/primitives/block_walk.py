"""A block's way through its kernel, with whole numbers for all of its threads at once.

What depends on memory is not known: both ways of such a test are gone by threads that ``may`` come
there, and a loop that it ends is gone through once, with whatever its rounds change unknown.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

from optiml_magic.kernels.expressions import (
    Assign,
    Binary,
    Call,
    Cast,
    Expr,
    Literal,
    Name,
    Step,
    every,
)
from optiml_magic.kernels.primitives.base import Kernel, NotLegal
from optiml_magic.kernels.primitives.grids import said_alike
from optiml_magic.kernels.primitives.lane_expressions import (
    OWN,
    LaneExpressions,
    Leads,
    Value,
)
from optiml_magic.kernels.primitives.lane_values import Flags, Whole, extreme
from optiml_magic.kernels.primitives.launch_blocks import LaunchBlocks
from optiml_magic.kernels.primitives.touched import Touched
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
    expressions,
)
from optiml_magic.kernels.types import BOOL, INT, LONG, CType, named

_EXTREMES = frozenset({"min", "max", "umin", "umax", "std::min", "std::max"})
_ROUNDS = 8  # of a loop of which nothing is known: ours


@dataclass
class _Rounds:
    """Threads that may have left a loop, or gone on to its next round."""

    out: Flags
    onward: Flags


class BlockWalk(LaneExpressions):
    """What is asked of the arrays of a launch stands in ``touched`` behind it.

    ``given`` are the sizes that are known; others are followed in sums alone. Of threads that each
    go ``alone`` it is what those do that a guard lets through, and nothing is asked of the launch.
    """

    def __init__(self, kernel: Kernel, given: Mapping[str, int], *, alone: bool = False) -> None:
        self.kernel, self.alone = kernel, alone
        super().__init__(kernel, LaunchBlocks(kernel, given, asking=not alone))
        self.loops: list[_Rounds] = []
        self.calls: list[str] = []
        self.returned, self.gone = self.flags(False), self.flags(False)
        for variable in kernel.function.parameters:
            kind = named(variable.type.base, self.unit.aliases)
            if variable.type.depth == 1 and not variable.type.reference:
                self.touched[variable.name] = Touched()
                self.env[variable] = Leads(variable.name, self.number(0, LONG))
            elif kind.integral and not variable.type.depth:
                self.env[variable] = self._size(variable.name, kind, given)
        for name, expr in self._constants():
            found = self.value(expr)
            self.builtins[name] = found if isinstance(found, Whole) else None
        self._run(kernel.function.body)

    def _size(self, name: str, kind: CType, given: Mapping[str, int]) -> Whole:
        if name in given:
            return self.number(given[name], kind)
        if kind == INT and said_alike(self.kernel, [name]):
            return replace(self.number(0, kind), by=((name, 1),))
        return replace(self.number(0, kind), known=self.flags(False))

    def _constants(self) -> Iterator[tuple[str, Expr]]:
        """Whole numbers of the text that have a name."""
        last: Expr = Literal(None, "-1", -1)
        for name, expr in self.unit.enumerators:
            last = expr or Binary(None, "+", last, Literal(None, "1", 1))
            yield name, last
        for variable in (v for one in self.unit.declarations for v in one.variables):
            plain = not variable.array and variable.value is not None
            if variable.type.depth:
                yield variable.name, Literal(None, "nullptr", None)
            elif plain and variable.type.const and variable.value is not None:
                yield variable.name, Cast(None, variable.type.base, variable.value)

    def _run(self, statement: Statement) -> None:
        if not self.may.any():
            return
        self.line = statement.line or self.line
        match statement:
            case Block(body=body):
                own = self.alone and statement is self.kernel.function.body
                for inner in body:
                    self._run(self._guarded(inner) if own and inner is body[-1] else inner)
            case Declare(variables=variables):
                for variable in variables:
                    self._declare(variable)
            case Evaluate(expression=expression):
                self.value(expression)
            case If(before=None):
                self._branch(statement)
            case Loop():
                self._loop(statement)
            case Leave(kind=kind, value=value):
                if value is not None:
                    self.value(value)
                self._leave(kind)
            case Blank():
                pass
            case _:
                raise NotLegal("a statement is not followed", self.line)

    def _declare(self, variable: Variable) -> None:
        given = [*variable.initial, *([variable.value] if variable.value is not None else [])]
        self.lent.discard(variable)
        if variable.type.reference:
            for expr in given:
                self.lend(expr)
            self.lent.add(variable)
            return
        found = [self.value(expr) for expr in given]
        if variable.array or variable.storage in ("shared", "dynamic", "static"):
            if variable.type.depth:
                raise NotLegal(f"`{variable.name}` holds pointers", variable.line)
            self.env[variable] = OWN
            return
        self.env[variable] = self.held(found[0], variable) if len(found) == 1 else None
        self.led(variable, self.env[variable])

    def _guarded(self, statement: Statement) -> Statement:
        """What threads do that pass a guard behind which nothing stands."""
        if isinstance(statement, If) and statement.other is None and statement.before is None:
            self.value(statement.test)
            return statement.then
        return statement

    def _branch(self, statement: If) -> None:
        ways, before = self.ways(self.truth(statement.test)), self.must
        gone, self.gone = self.gone, self.flags(False)
        ends, env, found = self.flags(False), self.env, list[dict[Variable, Value]]()
        for side, way in zip((statement.then, statement.other), ways, strict=True):
            (self.may, self.must), self.env = way, {**env}
            if side is not None:
                self._run(side)
            ends = ends | self.may
            found.append(self.env)
        (then, _), (other, _) = ways
        self.env = found[1]
        for variable, new in found[0].items():
            old = found[1].get(variable)
            self.env[variable] = self.joined(new, old, then, then & ~other)
        for variable in found[1].keys() - found[0].keys():
            self.env[variable] = None
        self.may, self.must = ends, before & ends & ~self.gone
        self.gone = self.gone | gone

    def _loop(self, statement: Loop) -> None:
        if statement.before is not None:
            self._run(statement.before)
        entered, ends, gone, unsure = self.must, self.flags(False), self.gone, self.unsure
        asks = statement.kind != "do"
        while self.may.any():
            test = self.number(1, BOOL)
            if statement.test is not None and asks:
                told = self.truth(statement.test)
                if told is None or not told.known[self.may].all():
                    self._any_round(statement)
                    ends = ends | self.may
                    break
                test = told
            (on, must), (done, _) = self.ways(test)
            ends, asks = ends | done, True
            self.may, self.must = on, must
            if self.may.any():
                ends = ends | self._round(statement)
        self.may, self.must = ends, entered & ends & ~self.returned
        self.gone, self.unsure = gone | self.returned, unsure | self.returned

    def _round(self, statement: Loop) -> Flags:
        """One round and the step to the next; the threads that may have left the loop."""
        must, own = self.must, _Rounds(self.flags(False), self.flags(False))
        self.loops.append(own)
        self._run(statement.body)
        self.loops.pop()
        self.may = self.may | own.onward
        self.must = must & self.may & ~own.out & ~self.returned
        if statement.update is not None and self.may.any():
            self.value(statement.update)
        return own.out

    def _any_round(self, statement: Loop) -> None:
        """A round of which only is known that threads may make it."""
        may, self.must = self.may, self.flags(False)
        self.often *= _ROUNDS
        self._forget(statement)
        if statement.test is not None:
            self.value(statement.test)
        self._round(statement)
        self._forget(statement)
        self.often //= _ROUNDS
        self.may = may

    def _forget(self, statement: Loop) -> None:
        heads = [head for head in (statement.test, statement.update) if head is not None]
        parts = [*expressions(statement.body), *(part for head in heads for part in every(head))]
        for part in parts:
            target = part.target if isinstance(part, Assign | Step) else None
            if isinstance(target, Name) and target.variable is not None:
                self.env.pop(target.variable, None)

    def _leave(self, kind: str) -> None:
        if kind == "return" and self.alone and not self.calls:
            self.may = self.must = self.flags(False)
            return
        if kind == "return":
            self.returned = self.returned | self.may
        elif not self.loops:
            raise NotLegal("a way out of a `switch` is not followed", self.line)
        elif kind == "break":
            self.loops[-1].out |= self.may
        else:
            self.loops[-1].onward |= self.may
        self.gone, self.unsure = self.gone | self.may, self.unsure | self.may
        self.may = self.must = self.flags(False)

    def called(self, expr: Call) -> Value:
        if expr.receiver is not None or expr.callee is not None:
            raise NotLegal(f"`{expr.function}` is not followed", self.line)
        functions = self.unit.called(expr.function, len(expr.arguments))
        if functions:
            whole = len(functions[0].parameters) == len(expr.arguments)
            again = functions[0].name in self.calls or functions[0].template
            if len(functions) > 1 or not whole or again:
                raise NotLegal(f"`{expr.function}` is not followed", self.line)
            return self._within(functions[0], expr)
        given = [self.value(argument) for argument in expr.arguments]
        for found in given:
            if isinstance(found, Leads) and found.array is not None:
                if not expr.function.startswith("atomic") or found is not given[0]:
                    known = self.touched[found.array]
                    known.refuse(f"`{expr.function}` is given a part of it", self.line)
                    continue
                self.ask(found, load=True, store=True)
        one, other = given if len(given) == 2 else (None, None)
        if isinstance(one, Whole) and isinstance(other, Whole) and expr.function in _EXTREMES:
            return extreme(expr.function, one, other)
        return None

    def _within(self, function: Function, expr: Call) -> Value:
        """A function of the text, as its call does it; of what it returns nothing is known."""
        for parameter, argument in zip(function.parameters, expr.arguments, strict=False):
            if parameter.type.reference:
                self.lend(argument)
                self.lent.add(parameter)
            else:
                self.lent.discard(parameter)
                self.env[parameter] = self.held(self.value(argument), parameter)
        kept = self.may, self.must, self.gone, self.returned, self.loops, self.unsure
        self.gone = self.returned = self.flags(False)
        self.loops = []
        self.calls.append(function.name)
        body = function.body.body
        if len(body) == 1 and isinstance(body[0], Leave) and body[0].value is not None:
            found = self.value(body[0].value)
        else:
            self._run(function.body)
            found = None
        self.calls.pop()
        self.may, self.must, self.gone, self.returned, self.loops, self.unsure = kept
        if function.result.depth or function.result.reference:
            raise NotLegal(f"`{function.name}` returns a pointer", self.line)
        return self.typed(found, function.result)
