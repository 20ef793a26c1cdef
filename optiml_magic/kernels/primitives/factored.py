"""P13 over sums, factored: what all terms of an inner sum have in common multiplies that sum once.

    sum_i sum_j a(i) b(j) v(i, j) = sum_i a(i) (sum_j b(j) v(i, j))

So the weights of a window that are those of its row times those of its column leave a sum along
each row by itself, which other rules may then share. An exponential of places is taken apart, as
``e^(i + j)`` is ``e^i e^j``; one of what memory holds is not, since its parts may be out of range
where the whole is not.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import reduce

from optiml_magic.kernels.editing import Node, edited, lines, text
from optiml_magic.kernels.expressions import (
    Assign,
    Binary,
    Call,
    Cast,
    Expr,
    Literal,
    Name,
    Step,
    Unary,
    every,
)
from optiml_magic.kernels.functions import bare
from optiml_magic.kernels.primitives.base import Kernel, NotLegal, primitive
from optiml_magic.kernels.primitives.computing import only_computes
from optiml_magic.kernels.primitives.effects import Effects, is_counted, loops_in, names, parted
from optiml_magic.kernels.primitives.staged import hints_of
from optiml_magic.kernels.reading import Axis
from optiml_magic.kernels.tree import (
    Block,
    Declare,
    Evaluate,
    If,
    Loop,
    Statement,
    Variable,
    walk,
)

_INT = 4
_POWERS = frozenset({"expf", "exp", "__expf", "exp2f", "exp2"})


@dataclass(frozen=True)
class _Sum:
    """``place += value`` in each round of an inner loop, as ``outer`` factors times ``inner``."""

    statement: Evaluate
    place: Variable
    outer: tuple[Expr, ...]
    inner: tuple[Expr, ...]


@primitive
def factored(kernel: Kernel) -> Kernel:
    """The first loop in a loop whose terms have something in common, as sums by themselves."""
    why = NotLegal("no sum in two loops has a factor that its inner loop leaves alone")
    effects, axes = Effects(kernel), kernel.axes()
    for outer in loops_in(kernel.function.body):
        for inner in loops_in(outer.body):
            if outer in axes and inner in axes and loops_in(outer.body) == [inner]:
                try:
                    return _Nest(kernel, effects, axes[outer], axes[inner]).made()
                except NotLegal as reason:
                    why = reason if reason.line else why
    raise why


class _Nest:
    """A loop within a loop that does nothing but add up. Raises NotLegal where it does more."""

    def __init__(self, kernel: Kernel, effects: Effects, outer: Axis, inner: Axis) -> None:
        self.kernel, self.effects, self.outer, self.inner = kernel, effects, outer, inner
        self.line = inner.line
        self.touching = {access.own for access in kernel.reading.accesses}
        if not (outer.exact and inner.exact and is_counted(inner, effects)):
            raise NotLegal("its rounds are not counted", self.line)
        self.lets = dict[Variable, Declare]()
        self.added = list[Evaluate]()
        self.tests = list[Expr]()
        self.taken = list[str]()
        self.swaps: dict[Node, Node] = {}
        self._read(inner.node.body)
        assert inner.variable is not None
        self.moving = {inner.variable, *self.lets}
        # In the order of the text: what a local is made of comes before it.
        self.lifted = [v for v in self.lets if self._is_lifted(v)]
        self.sums = tuple(map(self._sum, self.added))
        if not any(one.outer for one in self.sums):
            raise NotLegal("its terms have no factor that its rounds leave alone", self.line)
        places = [one.place for one in self.sums]
        if effects.changed(inner.node.body).keys() - {*places}:
            raise NotLegal("its rounds do more than to add up", self.line)
        asked = [e for e in effects.inside(outer.node) if isinstance(e, Name)]
        if any(places.count(p) > 1 or sum(e.variable is p for e in asked) > 1 for p in places):
            raise NotLegal("what it adds up is asked for meanwhile", self.line)

    def _read(self, body: Statement) -> None:
        for statement in parted(body):
            match statement:
                case Block():
                    self._read(statement)
                case If(before=None, other=None, constant=False, test=test, then=then):
                    self._check_reads(test)
                    self.tests.append(test)
                    self._read(then)
                case Declare(variables=(only,)) if only in self.effects.lasting:
                    if only.array or only.type.depth or only.value is None:
                        raise NotLegal(f"`{only.name}` is not a plain local", only.line)
                    self._check_reads(only.value)
                    self.lets[only] = statement
                case Evaluate(expression=Assign(op="+=", target=Name(variable=Variable()))):
                    self._check_reads(statement.expression.value)  # type: ignore[attr-defined]
                    self.added.append(statement)
                case _:
                    raise NotLegal("its rounds do more than to add up", statement.line)

    def _check_reads(self, value: Expr) -> None:
        for part in every(value):
            if isinstance(part, Call) and not only_computes(self.kernel, part):
                raise NotLegal(f"`{part.function}` may do more than to compute", self.line)
            if isinstance(part, Assign | Step):
                raise NotLegal("its rounds do more than to add up", self.line)

    # -- what does not move with the inner loop

    def _is_lifted(self, variable: Variable) -> bool:
        """Whether a local of its rounds is the same in all of them, and none that is loaded."""
        value = self.lets[variable].variables[0].value
        assert value is not None
        alike = not any(part in self.touching for part in every(value))
        if alike and not self.moving & names([value]):
            self.moving.discard(variable)
            return True
        return False

    def _sum(self, statement: Evaluate) -> _Sum:
        assign = statement.expression
        assert isinstance(assign, Assign)
        assert isinstance(assign.target, Name)
        place = assign.target.variable
        kind = self.kernel.reading.types.get(assign.target)
        plain = kind is not None and kind.floating and kind.lanes == 1 and not kind.depth
        if place is None or not plain or place.array or place.storage != "local":
            raise NotLegal("what it adds up is not a float", statement.line)
        factors = [*self._factors(assign.value)]
        outer = tuple(f for f in factors if self._is_outer(f))
        inner = tuple(f for f in factors if f not in outer)
        return _Sum(statement, place, outer, inner)

    def _is_outer(self, factor: Expr) -> bool:
        if self.moving & names([factor]):
            return False
        loads = any(part in self.touching for part in every(factor))
        return not loads or (not self.tests and self._as_often())

    def _as_often(self) -> bool:
        """Whether the inner loop has rounds wherever the outer one has one."""
        ends = [(axis.start, axis.step, axis.stop) for axis in (self.outer, self.inner)]
        return bool(self.inner.trips) or (ends[0] == ends[1] and None not in ends[0])

    def _factors(self, value: Expr) -> Iterator[Expr]:
        kind = self.kernel.reading.types.get(value)
        match value:
            case Binary(op="*", left=left, right=right) if kind is not None and kind.floating:
                yield from self._factors(left)
                yield from self._factors(right)
            case Binary(op="/", left=left, right=right) if (
                kind is not None and kind.floating and self._is_outer(right)
            ):
                yield from self._factors(left)
                yield Binary(None, "/", Literal(None, "1.0f", 1.0), right)
            case Name(variable=Variable() as variable) if self._means(variable, value):
                yield from self._factors(self._value(variable))
            case Call(function=function, arguments=(power,)) if bare(function) in _POWERS:
                yield from self._powers(value, power)
            case _:
                yield value

    def _value(self, variable: Variable) -> Expr:
        value = self.lets[variable].variables[0].value
        assert value is not None
        return value

    def _means(self, variable: Variable, name: Expr) -> bool:
        """Whether a local of a round stands for what it is declared with, in the same type."""
        types = self.kernel.reading.types
        return variable in self.lets and types.get(name) == types.get(self._value(variable))

    # -- exponentials of places

    def _powers(self, whole: Call, power: Expr) -> Iterator[Expr]:
        terms = [*self._terms(power)]
        outer = [term for term in terms if not self.moving & names([term])]
        inner = [term for term in terms if term not in outer]
        if not outer or not inner or not self._is_place(power):
            yield whole
            return
        for some in (outer, inner):
            yield replace(whole, span=None, arguments=(reduce(_plus, some),))

    def _terms(self, value: Expr) -> Iterator[Expr]:
        """What adds up to a number, each part by itself."""
        kind = self.kernel.reading.types.get(value)
        if kind is None or not (kind.floating or (kind.integral and kind.signed)):
            yield value
            return
        match value:
            case Binary(op="+", left=left, right=right):
                yield from self._terms(left)
                yield from self._terms(right)
            case Binary(op="-", left=left, right=right):
                yield from self._terms(left)
                yield from (Unary(None, "-", term) for term in self._terms(right))
            case Unary(op="-", operand=operand):
                yield from (Unary(None, "-", term) for term in self._terms(operand))
            case Binary(op="/", left=left, right=right) if kind.floating:
                yield from (Binary(None, "/", term, right) for term in self._terms(left))
            case Binary(op="*", left=left, right=right):
                some = [*self._terms(left)]
                if len(some) > 1:
                    yield from (Binary(None, "*", term, right) for term in some)
                else:
                    yield from (Binary(None, "*", left, term) for term in self._terms(right))
            case Cast(operand=operand) if kind.floating:
                yield from (replace(value, span=None, operand=t) for t in self._terms(operand))
            case Name(variable=Variable() as variable) if variable in self.lets:
                terms = [*self._terms(self._value(variable))]
                same = self._means(variable, value)
                yield from terms if len(terms) > 1 and same else [value]
            case _:
                yield value

    def _is_place(self, value: Expr) -> bool:
        """Whether a number is made of indices, counters and scalars alone."""
        todo, seen = [value], set[Variable]()
        while todo:
            expr = todo.pop()
            if expr in self.touching:
                return False
            todo += expr.parts
            variable = expr.variable if isinstance(expr, Name) else None
            if variable is None or variable in seen or variable.storage == "parameter":
                continue
            seen.add(variable)
            if variable in self.effects.lasting and variable.value is not None:
                todo.append(variable.value)
            elif variable not in self._counters:
                return False
        return True

    @property
    def _counters(self) -> set[Variable]:
        return {a.variable for a in self.kernel.axes().values() if a.variable is not None}

    # -- the kernel

    def made(self) -> Kernel:
        """With sums of the inner loop by themselves, each times what its terms share."""
        above, begun, behind = list[Statement](), list[Statement](), list[Statement]()
        alike = [one for one in self.sums if self._is_alike(one)]
        lifted: list[Statement] = [self.lets[v] for v in self.lifted]
        lifted += self._placed([one for one in self.sums if one not in alike])
        kept = dict[Statement, Statement]()
        for one in self.sums:
            part = self._fresh(f"{one.place.name}_part")
            zero = lines(f"{one.place.type.base} {part} = 0;")
            more: dict[Statement, Statement] = {
                one.statement: lines(f"{part} += {self._shown(one.inner) or '1'};")
            }
            if one in alike:
                above += [zero, self._loop(more)]
            else:
                begun.append(zero)
                kept |= more
            share = self._shown((*one.outer, Name(None, part)))
            behind.append(lines(f"{one.place.name} += {share};"))
        swaps = self._hinted(self.inner.node, [self._loop(kept)] if kept else [])
        loop = swaps[self.inner.node]
        assert isinstance(loop, tuple)
        swaps[self.inner.node] = (*lifted, *begun, *loop, *behind)
        around = self._hinted(self.outer.node, [edited(self.outer.node, swaps)])
        whole = around[self.outer.node]
        assert isinstance(whole, tuple)
        around[self.outer.node] = (*above, *whole)
        return self.kernel.rewritten(edited(self.kernel.function.body, around))

    def _fresh(self, name: str) -> str:
        self.taken.append(self.kernel.fresh(name, *self.taken))
        return self.taken[-1]

    def _placed(self, sums: Sequence[_Sum]) -> list[Statement]:
        """Locals for what keeps places within bounds, the same in all rounds of the inner loop."""
        known: dict[str, str] = {}
        asked = [factor for one in sums for factor in one.inner]
        asked += [self._value(variable) for variable in self._needed(sums)]
        for node in (part for top in asked for part in every(top)):
            if self._keeps_within(node):
                words = self._shown([node])
                if words not in known:
                    known[words] = self._fresh("place")
                self.swaps[node] = text(known[words])
        return [lines(f"int {name} = {words};") for words, name in known.items()]

    def _keeps_within(self, node: Expr) -> bool:
        kind = self.kernel.reading.types.get(node)
        clamps = isinstance(node, Call) and bare(node.function) in ("min", "max")
        whole = kind is not None and kind.integral and kind.signed and kind.size == _INT
        still = not self.moving & names([node]) and not self.touching & {*every(node)}
        return clamps and whole and still and node not in self._inside()

    def _inside(self) -> set[Expr]:
        """What stands in an expression that has become a local."""
        return {part for node in self.swaps if isinstance(node, Expr) for part in every(node)}

    def _hinted(
        self, loop: Loop, made: Sequence[Statement]
    ) -> dict[Node, Node | tuple[Statement, ...] | None]:
        """A loop in place of another one, behind what that says to the compiler."""
        hints = hints_of(self.kernel, loop)
        told = [lines(self.kernel.show(hint).strip()) for hint in hints if made]
        swaps: dict[Node, Node | tuple[Statement, ...] | None] = dict.fromkeys(hints)
        swaps[loop] = (*told, *made)
        return swaps

    def _is_alike(self, one: _Sum) -> bool:
        """Whether rounds of the outer loop all find the same sum."""
        node, own = self.inner.node, self._needed([one])
        asked = [*one.inner, *self.tests, *node.expressions]
        asked += node.before.expressions if node.before is not None else ()
        asked += [self._value(variable) for variable in own]
        declared = {v for s in walk(self.outer.node) if isinstance(s, Declare) for v in s.variables}
        moving = declared | {*self.effects.changed(self.outer.node)}
        alike = not (moving - own - {self.inner.variable}) & names(asked)
        return alike and not any(part in self.touching for e in asked for part in every(e))

    def _needed(self, sums: Sequence[_Sum]) -> set[Variable]:
        """The locals of a round that these sums and the tests around them are made of."""
        asked = {*names([*(f for one in sums for f in one.inner), *self.tests])}
        for variable in reversed(self.lets):
            if variable in asked:
                asked |= names([self._value(variable)])
        return {v for v in self.lets if v in asked and v not in self.lifted}

    def _loop(self, added: Mapping[Statement, Statement]) -> Loop:
        """The inner loop with no other sums than these."""
        own = self._needed([one for one in self.sums if one.statement in added])
        body = Block(None, self.line, tuple(self._left(self.inner.node.body, added, own)))
        return replace(self.inner.node, body=body, span=None, lead=None)

    def _left(
        self, body: Statement, added: Mapping[Statement, Statement], own: Collection[Variable]
    ) -> Iterator[Statement]:
        for statement in parted(body):
            match statement:
                case Block():
                    yield from self._left(statement, added, own)
                case If(then=then):
                    inner = Block(None, statement.line, tuple(self._left(then, added, own)))
                    yield replace(statement, then=inner, span=None, lead=None)
                case Declare(variables=(only,)) if only in own:
                    yield edited(statement, self.swaps)
                case Evaluate() if statement in added:
                    yield added[statement]

    def _shown(self, factors: Sequence[Expr]) -> str:
        if not factors:
            return ""
        whole = reduce(_times, factors)
        return self.kernel.show(Evaluate(None, 0, whole), self.swaps).strip().removesuffix(";")


def _plus(left: Expr, right: Expr) -> Expr:
    return Binary(None, "+", left, right)


def _times(left: Expr, right: Expr) -> Expr:
    return Binary(None, "*", left, right)
