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
    every,
)
from optiml_magic.kernels.functions import bare
from optiml_magic.kernels.primitives.base import Kernel, NotLegal, primitive
from optiml_magic.kernels.primitives.computing import only_computes
from optiml_magic.kernels.primitives.effects import Effects, is_counted, loops_in, names, parted
from optiml_magic.kernels.primitives.exponentials import EXPONENTIALS, Exponentials
from optiml_magic.kernels.primitives.loaded_always import in_all_rounds
from optiml_magic.kernels.primitives.powers import of_library
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
from optiml_magic.kernels.types import CType, named
from optiml_magic.source.directives import RequireDirective

_INT = 4
_ONE = Literal(None, "1", 1)


@dataclass(frozen=True)
class _Sum:
    """``place += value`` in each round of an inner loop, as ``outer`` factors times ``inner``.

    What is taken away, by ``-=``, is a sum that is taken away as a whole.
    """

    statement: Evaluate
    place: Variable
    outer: tuple[Expr, ...]
    inner: tuple[Expr, ...]

    @property
    def op(self) -> str:
        """How the sum goes into its place."""
        added = self.statement.expression
        return added.op if isinstance(added, Assign) else "+="


@primitive
def factored(kernel: Kernel, *, plain: bool = False) -> Kernel:
    """The first loop in a loop whose terms have something in common, as sums by themselves.

    Who asks for ``plain`` sums takes those as well whose terms have nothing in common, and sums of
    whole numbers, which are the same in any order.
    """
    why = NotLegal("no sum in two loops has a factor that its inner loop leaves alone")
    effects, axes = Effects(kernel), kernel.axes()
    for outer in loops_in(kernel.function.body):
        for inner in loops_in(outer.body):
            if outer in axes and inner in axes and loops_in(outer.body) == [inner]:
                try:
                    return _Nest(kernel, effects, axes[outer], axes[inner], plain=plain).made()
                except NotLegal as reason:
                    why = reason if reason.line else why
    raise why


class _Nest:
    """A loop within a loop that does nothing but add up. Raises NotLegal where it does more."""

    def __init__(
        self, kernel: Kernel, effects: Effects, outer: Axis, inner: Axis, *, plain: bool
    ) -> None:
        self.plain = plain
        self.kernel, self.effects, self.outer, self.inner = kernel, effects, outer, inner
        self.line = inner.line
        self.touching = {access.own for access in kernel.reading.accesses}
        if not (outer.exact and inner.exact and is_counted(inner, effects)):
            raise NotLegal("its rounds are not counted", self.line)
        self.lets = dict[Variable, Declare]()
        self.added = list[Evaluate]()
        self.tests = list[Expr]()
        self.taken = list[str]()
        self.asked: dict[RequireDirective, None] = {}  # what else has to be so
        self.swaps: dict[Node, Node] = {}
        self._read(inner.node.body)
        assert inner.variable is not None
        self.moving = {inner.variable, *self.lets}
        self.exponentials = Exponentials(kernel, effects, self.lets, self.moving, self.touching)
        # In the order of the text: what a local is made of comes before it.
        self.lifted = [v for v in self.lets if self._is_lifted(v)]
        self.sums = tuple(map(self._sum, self.added))
        if not self.sums or not (plain or any(one.outer for one in self.sums)):
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
                case Evaluate(expression=Assign(op="+=" | "-=", target=Name(variable=Variable()))):
                    self._check_reads(statement.expression.value)  # type: ignore[attr-defined]
                    self.added.append(statement)
                case Evaluate(expression=Step(op="++", target=Name(variable=Variable()))):
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
        added = statement.expression
        assert isinstance(added, Assign | Step)
        assert isinstance(added.target, Name)
        place, value = added.target.variable, added.value if isinstance(added, Assign) else _ONE
        assert place is not None
        kind = named(place.type.base, self.kernel.unit.aliases)
        plain = kind.lanes == 1 and not (place.type.depth or place.type.reference)
        if not plain or place.array or place.storage != "local":
            raise NotLegal("what it adds up is not a plain local", statement.line)
        if kind.integral:
            return self._whole_sum(statement, place, value, kind)
        if not kind.floating:
            raise NotLegal("what it adds up is not a float", statement.line)
        factors = [*self._factors(value, place.type.base)]
        outer = tuple(f for f in factors if self._is_outer(f))
        inner = tuple(f for f in factors if f not in outer)
        return _Sum(statement, place, outer, inner)

    def _whole_sum(self, statement: Evaluate, place: Variable, value: Expr, kind: CType) -> _Sum:
        """Of whole numbers, which may be added up in any order as they are."""
        of = self.kernel.reading.types.get(value)
        same = value is _ONE or (of is not None and of.integral and not of.depth)
        if not self.plain or kind.size != _INT or not same:
            raise NotLegal("what it adds up is not a float", statement.line)
        factors = [value] if value is _ONE else [*self._whole_factors(value)]
        outer = tuple(f for f in factors if self._is_outer(f))
        return _Sum(statement, place, outer, tuple(f for f in factors if f not in outer))

    def _whole_factors(self, value: Expr) -> Iterator[Expr]:
        """What a whole number is a product of, which is the same in any order, as it wraps."""
        match value:
            case Binary(op="*", left=left, right=right) if self._is_whole(value):
                yield from self._whole_factors(left)
                yield from self._whole_factors(right)
            case Name(variable=Variable() as variable) if self.exponentials.means(variable, value):
                yield from self._whole_factors(self.exponentials.value(variable))
            case _:
                yield value

    def _is_outer(self, factor: Expr) -> bool:
        if self.moving & names([factor]):
            return False
        loads = [part for part in every(factor) if part in self.touching]
        if not loads or (not self.tests and self._as_often()):
            return True
        asked = in_all_rounds(self.kernel, self.outer, loads) if self.plain else None
        self.asked |= dict.fromkeys(asked or ())
        return asked is not None

    def _as_often(self) -> bool:
        """Whether the inner loop has rounds wherever the outer one has one."""
        ends = [(axis.start, axis.step, axis.stop) for axis in (self.outer, self.inner)]
        return bool(self.inner.trips) or (ends[0] == ends[1] and None not in ends[0])

    def _factors(self, value: Expr, base: str) -> Iterator[Expr]:
        """What a number of the type ``base`` is a product of."""
        kind = self.kernel.reading.types.get(value)
        match value:
            case Binary(op="*", left=left, right=right) if kind is not None and kind.floating:
                yield from self._factors(left, base)
                yield from self._factors(right, base)
            case Binary(op="/", left=left, right=right) if (
                kind is not None and kind.floating and self._is_outer(right)
            ):
                yield from self._factors(left, base)
                yield Binary(None, "/", Literal(None, "1.0f", 1.0), right)
            case Binary(op="/", left=left, right=right) if kind is not None and kind.floating:
                yield from self._divided(value, [*self._factors(left, base)])
            case Binary(op="*", left=left, right=right) if self._is_whole(value, signed=True):
                yield from (Cast(None, base, one) for one in (left, right))
            case Name(variable=Variable() as variable) if self.exponentials.means(variable, value):
                yield from self._factors(self.exponentials.value(variable), base)
            case Call(function=function, arguments=(power,)) if bare(
                function
            ) in EXPONENTIALS and of_library(self.kernel, function):
                yield from self.exponentials.of(value, power)
            case _:
                yield value

    def _divided(self, whole: Binary, above: Sequence[Expr]) -> Iterator[Expr]:
        """A quotient by what moves, of which some factors do not."""
        outer = [one for one in above if self._is_outer(one)]
        inner = [one for one in above if one not in outer]
        if not outer:
            yield whole
            return
        yield from outer
        rest = reduce(_times, inner) if inner else Literal(None, "1.0f", 1.0)
        yield replace(whole, span=None, left=rest)

    def _is_whole(self, value: Expr, *, signed: bool = False) -> bool:
        kind = self.kernel.reading.types.get(value)
        if kind is None or not kind.integral or kind.depth or (signed and not kind.signed):
            return False
        return kind.size == _INT

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
            behind.append(lines(f"{one.place.name} {one.op} {share};"))
        swaps = self._hinted(self.inner.node, [self._loop(kept)] if kept else [])
        loop = swaps[self.inner.node]
        assert isinstance(loop, tuple)
        swaps[self.inner.node] = (*lifted, *begun, *loop, *behind)
        around = self._hinted(self.outer.node, [edited(self.outer.node, swaps)])
        whole = around[self.outer.node]
        assert isinstance(whole, tuple)
        around[self.outer.node] = (*above, *whole)
        return self.kernel.rewritten(
            edited(self.kernel.function.body, around), directives=self.asked
        )

    def _fresh(self, name: str) -> str:
        self.taken.append(self.kernel.fresh(name, *self.taken))
        return self.taken[-1]

    def _placed(self, sums: Sequence[_Sum]) -> list[Statement]:
        """Locals for what keeps places within bounds, the same in all rounds of the inner loop."""
        known: dict[str, str] = {}
        asked = [factor for one in sums for factor in one.inner]
        asked += [self.exponentials.value(variable) for variable in self._needed(sums)]
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
        asked += [self.exponentials.value(variable) for variable in own]
        declared = {v for s in walk(self.outer.node) if isinstance(s, Declare) for v in s.variables}
        moving = declared | {*self.effects.changed(self.outer.node)}
        alike = not (moving - own - {self.inner.variable}) & names(asked)
        return alike and not any(part in self.touching for e in asked for part in every(e))

    def _needed(self, sums: Sequence[_Sum]) -> set[Variable]:
        """The locals of a round that these sums and the tests around them are made of."""
        asked = {*names([*(f for one in sums for f in one.inner), *self.tests])}
        for variable in reversed(self.lets):
            if variable in asked:
                asked |= names([self.exponentials.value(variable)])
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
        return self.kernel.spelled(whole, self.swaps)


def _times(left: Expr, right: Expr) -> Expr:
    return Binary(None, "*", left, right)
