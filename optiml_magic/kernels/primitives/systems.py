"""Linear recurrences of several states: by what matrix a round multiplies what it finds of them.

``y = b * x[t] + z1; z1 = c * x[t] - a * y + z2; z2 = ...`` is one, as filters, oscillators and
trackers with constant gains have. Rounds in a row are one of the same kind, so where all rounds
have the same matrix its powers are made once, and lanes hand on the states alone.
Source: Blelloch, Prefix sums and their applications (1990), section 1.4.1, over matrices.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from optiml_magic.kernels.editing import Node, lines
from optiml_magic.kernels.expressions import (
    Assign,
    Binary,
    Call,
    Cast,
    Expr,
    Index,
    Literal,
    Member,
    Name,
    Step,
    Unary,
    builtin,
    every,
)
from optiml_magic.kernels.functions import FUSED, bare
from optiml_magic.kernels.primitives.base import Kernel, NotLegal
from optiml_magic.kernels.primitives.effects import Effects, declared_in, names
from optiml_magic.kernels.primitives.recurrences import grown
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
    walk,
)
from optiml_magic.kernels.types import CType, named

_MOST = 4  # states; each power of their matrix is in registers: ours
_FLOATS = ("float", "double")
_STEADY = Literal | Name | Unary | Binary | Cast | Index | Member

Show = Callable[[Expr], str]


@dataclass(frozen=True, eq=False)
class System:
    """Such states; ``depending`` are they and the locals of a round that are made of them.

    ``kept`` are the statements of a round that change these, ``steady`` those of the locals by
    which they multiply, which are the same in all rounds.
    """

    states: tuple[Variable, ...]
    kind: CType
    depending: frozenset[Variable]
    kept: frozenset[Statement]
    steady: frozenset[Statement]


def system(
    kernel: Kernel, loop: Loop, effects: Effects, states: Sequence[Variable], kind: CType,
    kept: Iterable[Statement],
) -> System:  # fmt: skip
    """The states as a system; raises NotLegal where a round does not change them as one."""
    return _Mixing(kernel, loop, effects, states, kind, kept).system()


class _Mixing:
    def __init__(
        self, kernel: Kernel, loop: Loop, effects: Effects, states: Sequence[Variable],
        kind: CType, kept: Iterable[Statement],
    ) -> None:  # fmt: skip
        self.kernel = kernel
        self.loop = loop
        self.effects = effects
        self.states = tuple(states)
        self.kind = kind
        self.kept = frozenset(kept)
        self.changed = effects.changed(loop).keys()
        self.own = declared_in(loop)
        bound = (v.value for v in declared_in(kernel.function.body) if v.type.reference)
        self.aliased = names([e for e in bound if e is not None])
        self.aliased |= effects.lent | effects.addressed
        self.depending = self._depending()
        self.steady: dict[Variable, Statement] = {}

    def system(self) -> System:
        line = self.loop.line
        if len(self.states) > _MOST:
            raise NotLegal(f"{len(self.states)} states go from round to round together", line)
        if self.kind.name not in _FLOATS or self.kind.depth:
            raise NotLegal("whole numbers go from round to round together", line)
        needed = set[Statement]()
        for statement in (s for s in walk(self.loop.body) if s in self.kept):
            self._check(statement)
            for expr in self._values(statement):
                Derived(self.kernel, self.depending, self.kernel.spelled).of(expr)
                for factor in _factors(self.kernel, expr, self.depending):
                    needed |= self._steady(factor)
        return System(self.states, self.kind, self.depending, self.kept, frozenset(needed))

    def _depending(self) -> frozenset[Variable]:
        """The states, and what their old values go into."""
        found, before = {*self.states}, 0
        while before != len(found):
            before = len(found)
            for statement in self.kept:
                if not statement.statements and found & names(statement.expressions):
                    found |= {*self.effects.changed(statement)}
                if isinstance(statement, Declare):
                    found |= {v for v in statement.variables
                              if v.value is not None and found & names([v.value])}  # fmt: skip
        return frozenset(found)

    def _check(self, statement: Statement) -> None:
        """Raise NotLegal where a statement does more with what depends on the states."""
        if isinstance(statement, Blank | Block):
            return
        mixed = self.depending & names(statement.expressions)
        changed = self.depending & self.effects.changed(statement).keys()
        declared = self.depending & declared_in(statement)
        if isinstance(statement, Leave):
            raise NotLegal("a round of the scan may end early", statement.line)
        if isinstance(statement, Loop | If):
            if mixed:
                raise NotLegal("a branch depends on a state", statement.line)
            if changed and isinstance(statement, If):
                raise NotLegal("states are changed together in a branch", statement.line)
            if changed and isinstance(statement, Loop):
                heads = [e for e in statement.expressions if e is not None]
                own = declared_in(statement.before) if statement.before is not None else set()
                if (names(heads) - own) & (self.changed | self.own):
                    raise NotLegal("not all rounds change the states alike", statement.line)
            return
        if not (mixed or changed or declared):
            return
        match statement:
            case Declare(variables=variables):
                for variable in (v for v in variables if v in self.depending):
                    self._plain(variable)
            case Evaluate(expression=Assign() | Step() as changing) if (
                target := _target(changing)
            ) is not None:
                if target not in self.states and target not in self.own:
                    raise NotLegal(f"`{target.name}` goes beyond the round", statement.line)
                self._plain(target)
            case _:
                raise NotLegal("a state is used where it is not followed", statement.line)

    def _plain(self, variable: Variable) -> None:
        kind = named(variable.type.base, self.kernel.unit.aliases)
        loose = variable.type.depth or variable.type.reference or variable.array
        if loose or variable.initial or kind.name not in _FLOATS or variable in self.aliased:
            raise NotLegal(f"`{variable.name}` is not a plain float", variable.line)

    def _values(self, statement: Statement) -> list[Expr]:
        """What a statement gives to that which depends on the states."""
        return [value for _, value in given(statement, self.depending, self.loop.line)]

    def _steady(self, expr: Expr) -> set[Statement]:
        """The statements that a factor needs; raises NotLegal where it changes with the round."""
        found = set[Statement]()
        for part in every(expr):
            if not isinstance(part, _STEADY) or (isinstance(part, Unary) and part.op not in "+-"):
                raise NotLegal("a factor of its states may change", self.loop.line)
            if not isinstance(part, Name):
                continue
            own = part.variable
            if own is None and not builtin(part):
                raise NotLegal(f"what `{part.name}` is is not known", self.loop.line)
            if own is not None and (own in self.own or own in self.changed):
                found |= self._declared(own)
            elif own in self.aliased:
                raise NotLegal(f"`{part.name}` has another name", self.loop.line)
        inside = {*every(expr)}
        stored = [a.array for a in self.kernel.reading.accesses if a.mode != "load"]
        for access in self.kernel.reading.accesses:
            if access.own in inside and any(self.effects.same(access.array, s) for s in stored):
                raise NotLegal("a factor of its states is written", access.line)
        return found

    def _declared(self, variable: Variable) -> set[Statement]:
        """For a local of the round that is the same in all of them, its declaration."""
        home = next((s for s in walk(self.loop.body) if isinstance(s, Declare)
                     and s.variables == (variable,)), None)  # fmt: skip
        value = variable.value
        own = self.loop.body.body if isinstance(self.loop.body, Block) else ()
        there = (home in self.kept or home in own) and variable in self.effects.lasting
        if home is None or value is None or not there:
            raise NotLegal(f"`{variable.name}` changes from round to round", self.loop.line)
        return {home, *self._steady(value)}


def given(
    statement: Statement, depending: frozenset[Variable], line: int
) -> list[tuple[Variable, Expr]]:
    """The new values of what depends on the states, of its old ones."""
    match statement:
        case Declare(variables=variables):
            return [(v, v.value) for v in variables if v in depending and v.value is not None]
        case Evaluate(expression=Assign() | Step() as changing):
            target = _target(changing)
            if target is not None and target in depending:
                return [(target, grown(changing, target, line))]
    return []


def _target(changing: Assign | Step) -> Variable | None:
    return changing.target.variable if isinstance(changing.target, Name) else None


class Derived:
    """By what an expression multiplies the states, in the names of one column of the matrix."""

    def __init__(
        self, kernel: Kernel, depending: frozenset[Variable], show: Show,
        called: dict[Variable, str] | None = None,
    ) -> None:  # fmt: skip
        self.kernel = kernel
        self.depending = depending
        self.show = show
        self.called = called or {}

    def of(self, expr: Expr) -> str | None:
        """None where it does not ask for them."""
        if not self.depending & names([expr]):
            return None
        match expr:
            case Name(variable=own, name=name) if own is not None:
                return self.called.get(own, name)
            case Unary(op="+" | "-" as op, operand=operand):
                return f"({op}{self.of(operand)})"
            case Binary(op="+" | "-" as op, left=left, right=right):
                return self._added(op, self.of(left), self.of(right))
            case Binary(op="*", left=left, right=right):
                return self._times(left, right)
            case Binary(op="/", left=left, right=right) if not self.depending & names([right]):
                return f"({self.of(left)} / ({self.show(right)}))"
            case Call(function=called, arguments=(left, right, rest)) if self._fused(called):
                product = self.depending & names([left, right])
                return self._added("+", self._times(left, right) if product else None,
                                   self.of(rest))  # fmt: skip
            case Cast(type=spelled, operand=operand):
                kind = named(spelled, self.kernel.unit.aliases)
                if kind.name in _FLOATS and not kind.depth:
                    return f"(({kind.name}){self.of(operand)})"
        raise NotLegal("states go from round to round by more than sums and products")

    def _fused(self, function: str) -> bool:
        return bare(function) in FUSED and not self.kernel.unit.called(function, 3)

    def _times(self, left: Expr, right: Expr) -> str:
        own, other = (left, right) if self.depending & names([left]) else (right, left)
        if self.depending & names([other]):
            raise NotLegal("states are multiplied by each other")
        return f"({self.of(own)} * ({self.show(other)}))"

    def _added(self, op: str, left: str | None, right: str | None) -> str | None:
        if left is None:
            return right if op == "+" or right is None else f"(-{right})"
        return left if right is None else f"({left} {op} {right})"


def _factors(kernel: Kernel, expr: Expr, depending: frozenset[Variable]) -> list[Expr]:
    """The expressions that the states are multiplied or divided by."""
    found = list[Expr]()

    def shown(factor: Expr) -> str:
        found.append(factor)
        return "1"

    Derived(kernel, depending, shown).of(expr)
    return found


def column(
    kernel: Kernel, found: System, called: dict[Variable, str], show: Show
) -> dict[Node, Node | tuple[Statement, ...] | None]:
    """What statements are where they find by what a round multiplies one of the states.

    The states are ``called`` otherwise there; the other statements of ``live`` stay as they are.
    """
    swaps: dict[Node, Node | tuple[Statement, ...] | None] = {}
    derived = Derived(kernel, found.depending, show, called)
    for statement in found.kept - found.steady:
        made = list[str]()
        for variable in statement.variables if isinstance(statement, Declare) else ():
            if variable in found.depending:
                kind = named(variable.type.base, kernel.unit.aliases).name
                by = derived.of(variable.value) if variable.value is not None else None
                made.append(f"{kind} {variable.name} = {by or 0};")
        if isinstance(statement, Evaluate):
            for own, value in given(statement, found.depending, statement.line):
                made.append(f"{called.get(own, own.name)} = {derived.of(value) or 0};")
        if made:
            swaps[statement] = tuple(map(lines, made))
    return swaps


def live(found: System, rest: Sequence[Statement]) -> frozenset[Statement]:
    """The statements of a round that a column of the matrix needs, and those around them."""
    leaves = {
        s for s in found.kept
        if s in found.steady or (isinstance(s, Declare) and found.depending & {*s.variables})
        or (isinstance(s, Evaluate) and given(s, found.depending, s.line))
    }  # fmt: skip
    around = {s for top in rest for s in walk(top) if s.statements and leaves & {*walk(s)}}
    heads = {s.before for s in around if isinstance(s, Loop) and s.before is not None}
    return frozenset(leaves | around | heads)


def reaching(found: System, rest: Sequence[Statement]) -> list[list[bool]]:
    """For each state, which of them a round may leave something of in it."""
    own = {state: {state} for state in found.states}
    _follow(found, rest, own)
    return [[other in own[state] for other in found.states] for state in found.states]


def _follow(found: System, body: Sequence[Statement], own: dict[Variable, set[Variable]]) -> None:
    for statement in body:
        if isinstance(statement, Loop):  # of which nobody knows how many rounds it makes
            before = -1
            while before != (count := sum(map(len, own.values()))):
                before, old = count, {v: {*states} for v, states in own.items()}
                _follow(found, (statement.body,), own)
                for variable, states in old.items():
                    own[variable] |= states
        elif statement.statements:
            _follow(found, statement.statements, own)
        for variable, value in given(statement, found.depending, statement.line):
            asked = found.depending & names([value])
            own[variable] = set[Variable]().union(*(own.get(v, set()) for v in asked))
