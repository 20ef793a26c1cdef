"""P3, unnest: loops in each other that go on where the one before ended become one loop.

Where a sum has the two counters as ``i * w + j`` alone, and the inner loop makes ``w`` rounds, it
counts the rounds of both: so the outer counter stands still in it, and the inner one is the round.
No index is divided; what asks for a counter by itself has it as a quotient or a rest. The rounds
and their order stay. Where the inner loop walks along the parts of what is loaded once for all of
them, both stay as they are. A number of rounds that is a product of sizes is taken to be none below
0, as an extent of an array is.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from optiml_magic.kernels.editing import Node, edited, lines, text
from optiml_magic.kernels.expressions import (
    Assign,
    Binary,
    Call,
    Cast,
    Expr,
    Index,
    Literal,
    Name,
    Step,
    Unary,
    every,
)
from optiml_magic.kernels.polynomial import Polynomial
from optiml_magic.kernels.primitives.base import Kernel, NotLegal, primitive, where_legal
from optiml_magic.kernels.primitives.collapsed import nested
from optiml_magic.kernels.primitives.counted import upward
from optiml_magic.kernels.primitives.effects import Effects, is_counted, is_simple, loops_in, names
from optiml_magic.kernels.primitives.heads import Heads
from optiml_magic.kernels.primitives.naming import speller_before
from optiml_magic.kernels.primitives.perfect import perfect
from optiml_magic.kernels.reading import Access, Axis
from optiml_magic.kernels.tree import Block, Evaluate, Leave, Loop, Variable, walk
from optiml_magic.kernels.types import named

_ONE = Polynomial.constant(1)
_WORD = 4  # bytes of an index that holds all of a run
_WARP = 32


@primitive
def unnested(kernel: Kernel, *, whole: bool = False) -> Kernel:
    """The kernel where every such pair of loops is one.

    Of those whose counters nobody asks for by themselves, where it has to be the ``whole`` of them.
    """
    made = _once(kernel, whole=whole)
    if made is None:
        raise NotLegal("no loop goes on where the one inside of it has ended")
    while (more := _once(made, whole=whole)) is not None:
        made = more
    return made


def _once(kernel: Kernel, *, whole: bool) -> Kernel | None:
    for at in reversed(range(len(loops_in(kernel.function.body)))):
        ready = where_legal(perfect, kernel, at)
        if next(nested(loops_in(ready.function.body)[at]), None) is not None:
            ready = where_legal(perfect, upward(ready, at + 1), at)
        outer, known = loops_in(ready.function.body)[at], ready.axes()
        inner = next(nested(outer), None)
        axes = known.get(outer), known.get(inner) if inner is not None else None
        if axes[0] is None or axes[1] is None:
            continue
        found = _pair(ready, Effects(ready), axes[0], axes[1])
        if found is not None and not (whole and found.alone):
            return found.made()
    return None


@dataclass(frozen=True)
class _Pair:
    """A loop and the one that is all it does; in ``joined`` both counters are one run."""

    kernel: Kernel
    effects: Effects
    outer: Axis
    inner: Axis
    own: tuple[Variable, Variable]
    joined: tuple[Expr, ...]

    @property
    def alone(self) -> frozenset[Variable]:
        """The counters that are asked for by themselves."""
        within = {e for unit in self.joined for e in every(unit)}
        return frozenset(
            part.variable
            for part in self.effects.inside(self.inner.node.body)
            if isinstance(part, Name) and part.variable in self.own and part not in within
        )

    def made(self) -> Kernel:
        kernel, (first, second) = self.kernel, self.own
        speller = speller_before(kernel, self.effects, self.outer.node)
        assert self.outer.start is not None
        assert self.outer.stop is not None
        assert self.inner.stop is not None
        across = speller.factor(self.inner.stop)
        down = speller.factor(self.outer.stop - self.outer.start)
        _, begin = Heads(kernel, [self.outer.node], self.effects).start(self.outer.node, {})
        kind, run = self._kind(), kernel.fresh("run")
        swaps: dict[Node, Node] = {}
        alone = self.alone
        for unit in self.joined:
            self._join(unit, run, begin, swaps)
        lets = []
        by = f"({across})" if " " in across and not across.startswith("(") else across
        if first in alone:
            more = "" if begin == "0" else f"{begin} + "
            lets.append(f"const {first.type.base} {first.name} = {more}{run} / {by};")
        if second in alone:
            lets.append(f"const {second.type.base} {second.name} = {run} % {by};")
        inside = kernel.show_inside(self.inner.node.body, swaps)
        made = lines(
            f"for ({kind} {run} = 0; {run} < {down} * {across}; ++{run}) {{\n"
            + "\n".join([*lets, inside]) + "\n}"
        )  # fmt: skip
        return kernel.rewritten(edited(kernel.function.body, {self.outer.node: made}))

    def _join(self, unit: Expr, run: str, begin: str, swaps: dict[Node, Node]) -> None:
        """The run in the place of the second counter, the first one stands still."""
        first, second = self.own
        still = begin if first.type.base == "int" else f"({first.type.base})({begin})"
        for part in every(unit):
            if not isinstance(part, Name) or part.variable is None:
                continue
            if part.variable in self.own:
                swaps[part] = text(run if part.variable is second else still)
            elif (value := self._moving(part.variable)) is not None:
                inner: dict[Node, Node] = {}
                self._join(value, run, begin, inner)
                swaps[part] = inner.get(value) or edited(value, inner)
        if begin == "0":
            self._without_nothing(unit, swaps)

    def _moving(self, variable: Variable) -> Expr | None:
        """What a local is made of, where a counter is in it."""
        value = variable.value if variable in self.effects.lasting else None
        inside = names([value]) if value is not None else frozenset()
        moves = any(v in self.own or self._moving(v) is not None for v in inside)
        return value if moves else None

    def _without_nothing(self, unit: Expr, swaps: dict[Node, Node]) -> None:
        """Leave out what the first counter, which stands still at 0, is multiplied with."""
        types = self.kernel.reading.types
        for part in reversed([*every(unit)]):
            match part:
                case Binary(op="+", left=left, right=right):
                    for nothing, other in ((left, right), (right, left)):
                        if self._is_nothing(nothing) and types.get(part) == types.get(other):
                            swaps[part] = swaps.get(other) or edited(other, swaps)
                            break

    def _is_nothing(self, expr: Expr) -> bool:
        match expr:
            case Name(variable=variable):
                return variable is self.own[0]
            case Binary(op="*", left=left, right=right):
                return self._is_nothing(left) or self._is_nothing(right)
        return False

    def _kind(self) -> str:
        """An index of 4 bytes that every round computes holds the number of all rounds.

        So does an ``int`` where their number is computed in one: were that too large, a longer
        counter would meet the same wrong end, and divide for nothing by instructions for 8 bytes.
        """
        ends = (self.outer.start, self.outer.stop, self.inner.stop)
        asked = {name for form in ends if form is not None for name in form.symbols}
        given = self.kernel.function.parameters
        ints = {p.name for p in given if p.type.base == "int" and not p.type.depth}
        if asked <= ints - self.effects.moved:
            return "int"
        body = self.inner.node.body
        steps = body.body if isinstance(body, Block) else (body,)
        sure = {e for s in steps if not s.statements for top in s.expressions for e in every(top)}
        for unit in self.joined:
            kind = self.kernel.reading.types.get(unit)
            if unit in sure and kind is not None and kind.size == _WORD and kind.signed:
                return "int"
        return "long long"


def _pair(kernel: Kernel, effects: Effects, outer: Axis, inner: Axis) -> _Pair | None:
    """Both loops, where they are one run; None where they are not."""
    first, second = outer.variable, inner.variable
    if first is None or second is None or not (outer.exact and inner.exact):
        return None
    if not is_counted(outer, effects) or not is_simple(inner, effects) or outer.step != _ONE:
        return None
    if outer.start is None or outer.stop is None or inner.stop is None:
        return None
    if any(isinstance(s, Leave) and s.kind == "break" for s in walk(inner.node.body)):
        return None
    heads = [e for e in (outer.node.test, inner.node.test, first.value) if e is not None]
    changed = {*effects.changed(outer.node)}
    if changed & (names(heads) - {first, second}) or first in names([inner.node.test or heads[0]]):
        return None
    if any(not _plain(kernel, v) for v in (first, second)):
        return None
    form = _Forms(kernel, effects, frozenset({first, second, *changed}))
    ends = {form.end(inner.node, second), inner.stop if inner.stop.value is not None else None}
    sizes = [s for s in ends if s is not None and len(s.terms) == 1 and s.terms[0][1] > 0]
    tops = [e for s in walk(inner.node.body) for e in s.expressions]
    joined = []
    for unit, meant in form.units(tops, {first, second}):
        by, within = meant.coefficient(form.symbol(first)), meant.coefficient(form.symbol(second))
        run_on = within is not None and within.terms and by in [within * size for size in sizes]
        if run_on:
            joined.append(unit)
    accesses = effects.accesses(outer.node)
    if not joined or not any(_runs_on(a, outer, inner) for a in accesses):
        return None
    few = inner.stop.value is not None and inner.stop.value < _WARP
    if few and any(_asks(a, outer) and not _runs_on(a, outer, inner) for a in accesses):
        return None  # an item of several parts, such as a word of packed weights: read once for all
    return _Pair(kernel, effects, outer, inner, (first, second), tuple(joined))


def _runs_on(access: Access, outer: Axis, inner: Axis) -> bool:
    """Whether an element follows that of the inner loop's last round."""
    form = access.offset
    if form is None or inner.stop is None:
        return False
    by, within = form.coefficient(outer.name), form.coefficient(inner.name)
    return by is not None and within is not None and bool(within.terms) and (
        by == within * inner.stop
    )  # fmt: skip


def _asks(access: Access, outer: Axis) -> bool:
    """Whether the element may be another in another round of the outer loop."""
    by = access.offset.coefficient(outer.name) if access.offset is not None else None
    return by is None or bool(by.terms)


def _plain(kernel: Kernel, variable: Variable) -> bool:
    kind = named(variable.type.base, kernel.unit.aliases)
    return kind.integral and (kind.size or 0) >= _WORD and not variable.type.depth


class _Forms:
    """Sums and products of names, as they stand; what ``moves`` is a symbol of its own."""

    def __init__(self, kernel: Kernel, effects: Effects, moves: frozenset[Variable]) -> None:
        self.kernel = kernel
        self.effects = effects
        self.moves = moves

    def symbol(self, variable: Variable) -> str:
        return f"{variable.name}@{id(variable)}"

    def end(self, loop: Loop, counter: Variable) -> Polynomial | None:
        """Where a loop that counts from 0 stops, by what its head compares the counter with."""
        test = loop.test
        if not isinstance(test, Binary):
            return None
        sides = (test.op, test.left, test.right)
        if test.op in (">", ">="):
            sides = ("<" + test.op[1:], test.right, test.left)
        op, own, bound = sides
        if op not in ("<", "<=") or not isinstance(own, Name) or own.variable is not counter:
            return None
        found = self.of(bound)
        return found if found is None or op == "<" else found + _ONE

    def units(self, found: Iterable[Expr], own: set[Variable]) -> Iterator[tuple[Expr, Polynomial]]:
        """The largest parts with these counters that are sums of products."""
        for expr in found:
            if not own & names([expr]):
                continue
            meant = self.of(expr)
            if meant is not None:
                yield expr, meant
            else:
                yield from self.units(expr.parts, own)

    def of(self, expr: Expr) -> Polynomial | None:
        match expr:
            case Literal(value=int() as value):
                return Polynomial.constant(value)
            case Name(variable=Variable() as variable):
                if variable in self.effects.lasting and variable not in self.moves:
                    known = self.of(variable.value) if variable.value is not None else None
                    if known is not None and self._whole(variable):
                        return known
                return Polynomial.symbol(self.symbol(variable)) if self._whole(variable) else None
            case Unary(op="-", operand=operand):
                known = self.of(operand)
                return None if known is None else -known
            case Cast(type=kind, operand=operand):
                inner = self.kernel.reading.types.get(operand)
                whole = named(kind, self.kernel.unit.aliases)
                wider = inner is not None and inner.integral and whole.integral
                wider = wider and (whole.size or 0) >= max(_WORD, (inner and inner.size) or 0)
                return self.of(operand) if wider else None
            case Binary(op="+" | "-" | "*" as op, left=left, right=right):
                one, other = self.of(left), self.of(right)
                if one is None or other is None:
                    return None
                return one + other if op == "+" else one - other if op == "-" else one * other
        return self._opaque(expr)

    def _whole(self, variable: Variable) -> bool:
        return _plain(self.kernel, variable) and not variable.array

    def _opaque(self, expr: Expr) -> Polynomial | None:
        """A part that is the same all the while, by how it is written."""
        kind = self.kernel.reading.types.get(expr)
        parts = [*every(expr)]
        if kind is None or not kind.integral or {*names(parts)} & self.moves:
            return None
        if any(isinstance(e, Assign | Call | Index | Step) for e in parts):
            return None
        words = self.kernel.show(Evaluate(None, 0, expr))
        known = sorted(self.symbol(v) for v in names(parts))
        return Polynomial.symbol(f"{words}{known}")
