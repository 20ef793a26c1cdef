"""Loops that were unrolled by hand, ``s += a[k] * b[k]; s += a[k + 1] * b[k + 1];``, undone.

Each round of such a loop does the same for several elements one after the other: it is as many
rounds of a loop that goes on by one. What is left of the elements was done by tests within, or by a
loop behind it, or nothing is, which the launch then asks of the sizes. A round that adds up several
terms at once adds them one by one.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, partial

from optiml_magic.errors import SourceError
from optiml_magic.kernels.combining import all_same, same
from optiml_magic.kernels.editing import edited
from optiml_magic.kernels.expressions import (
    Assign,
    Binary,
    Choice,
    Expr,
    Literal,
    Name,
    Step,
    every,
)
from optiml_magic.kernels.polynomial import Polynomial
from optiml_magic.kernels.primitives.base import Kernel, NotLegal, primitive
from optiml_magic.kernels.primitives.effects import Effects, loops_in
from optiml_magic.kernels.primitives.grids import said_alike
from optiml_magic.kernels.primitives.places import chain
from optiml_magic.kernels.primitives.side_by_side import added_behind, are_of_one_type, one_by_one
from optiml_magic.kernels.reading import Access, Axis
from optiml_magic.kernels.symbols import UNKNOWN
from optiml_magic.kernels.tree import (
    Blank,
    Block,
    Declare,
    Evaluate,
    If,
    Loop,
    Statement,
    Variable,
    Verbatim,
    walk,
)
from optiml_magic.source.directives import RequireDirective
from optiml_magic.source.expressions import parse_expression

_MOST = 32  # elements of a round; ours
_REORDERED = "the order of additions"
Sums = Mapping[Variable, Sequence[Variable]]


@primitive
def rerolled(kernel: Kernel) -> Kernel:
    """The kernel with such loops as loops over single elements; there must be one."""
    body = kernel.function.body
    if any(isinstance(s, Verbatim) for s in walk(body)):
        raise NotLegal("what a statement of it does is not read")
    effects = Effects(kernel)
    behind = {
        one: other for scope in walk(body) if isinstance(scope, Block)
        for one, other in zip(scope.body, scope.body[1:], strict=False)
    }  # fmt: skip
    for loop, axis in kernel.axes().items():
        found = _Loop(kernel, effects, loop, axis, behind.get(loop)).rolled()
        if found is not None:
            again = rerolled(found)
            return again if isinstance(again, Kernel) else found
    raise NotLegal("no round of a loop does the same for several elements")


@dataclass(frozen=True)
class _Loop:
    """A loop that goes on by several elements, and the statement ``behind`` it."""

    kernel: Kernel
    effects: Effects
    loop: Loop
    axis: Axis
    behind: Statement | None

    def rolled(self) -> Kernel | None:
        """The kernel with a loop by single elements; None where this one does not do the same."""
        step = self.axis.step.value if self.axis.step is not None else None
        counter, loop = self.axis.variable, self.loop
        if step is None or not 1 < step <= _MOST or loop.kind != "for" or counter is None:
            return None
        if not isinstance(loop.update, Assign) or loop.test is None:
            return None
        moved = self.effects.changed(Evaluate(None, loop.line, loop.update))
        if {*moved} != {counter} or counter in self.effects.changed(loop.body):
            return None
        parts, reordered = self._parts(step)
        if parts is None:
            return None
        guarded = self._guards(parts[1:])
        first, others = parts[0], guarded[1] if guarded else parts[1:]
        alike = _Alike(self.kernel, counter, step)
        if not all(alike.are(first, other, at) for at, other in enumerate(others, 1)):
            return None
        if any(len({*more}) != step - 1 for more in alike.sums.values()):
            return None
        end = self._end(step, first, guarded[0] if guarded else None, alike.sums)
        if end is None:
            return None
        bound, asked, left = end
        new = replace(
            loop, span=None, head=None, body=Block(None, loop.line, tuple(first)),
            test=Binary(None, "<", Name(None, counter.name, counter), bound),
            update=Step(None, "++", Name(None, counter.name, counter), prefix=True),
        )  # fmt: skip
        swaps = added_behind(self.kernel, [loop, *([left] if left else [])], alike.sums)
        if swaps is None:
            return None
        swaps[loop] = new
        if left is not None:
            swaps[left] = None
        reordered = reordered or bool(alike.sums)
        try:
            requires = [RequireDirective(parse_expression(asked))] if asked else []
        except SourceError:  # a literal that a directive spells otherwise
            return None
        made = self.kernel.rewritten(edited(self.kernel.function.body, swaps), directives=requires)
        if not asked and left is None and not guarded and not self._ends_alike(made):
            return None
        more = [_REORDERED] if reordered and _REORDERED not in made.arithmetic else []
        return replace(made, arithmetic=(*made.arithmetic, *more))

    def _parts(self, step: int) -> tuple[list[Sequence[Statement]] | None, bool]:
        """What is done for each element of a round, and whether additions are taken apart."""
        body = self.loop.body
        inside = [s for s in _inside(body) if not isinstance(s, Blank)]
        size, rest = divmod(len(inside), step)
        if inside and not rest:
            return [inside[at : at + size] for at in range(0, len(inside), size)], False
        only = inside[0] if len(inside) == 1 else None
        whole = only.expression if isinstance(only, Evaluate) else None
        if isinstance(whole, Assign) and whole.op == "+=" and isinstance(whole.target, Name):
            terms = [*chain(whole.value, "+")]
            types = self.kernel.reading.types
            kind = types.get(whole.target)
            if len(terms) == step and kind and one_by_one(kind, types.get(whole.value)):
                sums = [Assign(None, "+=", whole.target, term) for term in terms]
                line = self.loop.line
                return [[Evaluate(None, line, each)] for each in sums], not kind.integral
        return None, False

    def _guards(
        self, parts: Sequence[Sequence[Statement]]
    ) -> tuple[Expr, list[Sequence[Statement]]] | None:
        """The bound that each part but the first asks for, and what it does; None without."""
        bound, inner = None, list[Sequence[Statement]]()
        for at, part in enumerate(parts, 1):
            if len(part) != 1 or not isinstance(part[0], If) or part[0].before or part[0].other:
                return None
            match part[0].test:
                case Binary(op="<", left=left, right=right) if self._is_counter(left, at):
                    if bound is not None and not same(bound, right):
                        return None
                    bound = right
                    inner.append(_inside(part[0].then))
                case _:
                    return None
        return (bound, inner) if bound is not None else None

    def _is_counter(self, expr: Expr, more: int = 0) -> bool:
        match expr:
            case Binary(op="+", left=Name(variable=own), right=Literal(value=number)):
                return own is self.axis.variable and number == more
            case Name(variable=own):
                return own is self.axis.variable and more == 0
        return False

    def _end(
        self, step: int, first: Sequence[Statement], guarded: Expr | None, sums: Sums
    ) -> tuple[Expr, str, Loop | None] | None:
        """Where single elements end, what is asked of the sizes, and the loop that goes with it."""
        match self.loop.test:
            case Binary(op="<", left=left, right=bound) if self._is_counter(left):
                cut = False
            case Binary(op="<", left=left, right=bound):
                cut = self._is_counter(left, step - 1)
            case Binary(op="<=", left=left, right=Binary(op="-", left=bound) as less):
                cut = self._is_counter(left) and getattr(less.right, "value", 0) == step
                if not cut:
                    return None
            case _:
                return None
        if cut or not self._is_counter(left):
            rest = self._left_over(first, bound, sums) if cut and guarded is None else None
            return (bound, "", rest) if rest is not None else None
        if guarded is not None:
            own = isinstance(self.loop.before, Declare)
            return (bound, "", None) if own and same(bound, guarded) else None
        start, stop = self.axis.start, self.axis.stop
        if start is None or stop is None:
            return None
        if all(factor % step == 0 for _, factor in (stop - start).terms):
            return bound, "", None
        return self._asked(step, bound)

    def _ends_alike(self, made: Kernel) -> bool:
        """Whether single elements end where rounds of several did, with none of them cut short.

        Of a bound that is no multiple, rounds of several go past it.
        """
        at = loops_in(self.kernel.function.body).index(self.loop)
        axis = made.axes().get(loops_in(made.function.body)[at])
        return axis is not None and axis.stop == self.axis.stop

    def _asked(self, step: int, bound: Expr) -> tuple[Expr, str, Loop | None] | None:
        """The same where the launch asks that a round is never cut short."""
        begin = self.axis.start.value if self.axis.start is not None else None
        parameters = {p.name for p in self.kernel.function.parameters}
        used = {e.name for e in every(bound) if isinstance(e, Name)}
        plain = all(isinstance(e, Name | Literal | Binary) for e in every(bound))
        if (
            begin is None
            or not plain
            or not used <= parameters - self.effects.moved
            or not said_alike(self.kernel, used)
        ):
            return None
        words = self.kernel.spelled(bound)
        apart = f"({words})" if not words.isidentifier() else words
        asked = f"({apart} - {begin}) % {step} == 0" if begin else f"{apart} % {step} == 0"
        return bound, asked, None

    def _left_over(self, first: Sequence[Statement], bound: Expr, sums: Sums) -> Loop | None:
        """The loop behind this one that does the rest one by one, from where this one left it."""
        loop = self.behind
        if not isinstance(loop, Loop) or loop.kind != "for" or loop.before is not None:
            return None
        match loop.test, loop.update:
            case Binary(op="<", left=left, right=right), Step(op="++", target=target):
                ours = self._is_counter(left) and self._is_counter(target) and same(bound, right)
                alike = _Alike(self.kernel, None, 1)
                same_done = alike.are(first, _inside(loop.body), 0)
                known = all({*more} <= {*sums.get(v, ())} for v, more in alike.sums.items())
                return loop if ours and same_done and known else None
        return None


def _inside(statement: Statement) -> Sequence[Statement]:
    return statement.body if isinstance(statement, Block) else (statement,)


@dataclass
class _Alike:
    """Whether statements do for another element what others do for the one of the counter."""

    kernel: Kernel
    counter: Variable | None
    step: int
    names: dict[Variable, Variable] = field(default_factory=dict)
    sums: dict[Variable, list[Variable]] = field(default_factory=dict)  # and those beside them

    @cached_property
    def _accesses(self) -> dict[Expr, Access]:
        return {a.node: a for a in self.kernel.reading.accesses if a.call is None}

    def are(self, ours: Sequence[Statement], theirs: Sequence[Statement], at: int) -> bool:
        """Whether the second do for the element ``at`` further what the first do."""
        self.names = {}
        return len(ours) == len(theirs) and all(
            self._statements(one, other, at) for one, other in zip(ours, theirs, strict=True)
        )

    def _statements(self, one: Statement, other: Statement, at: int) -> bool:
        match one, other:
            case (
                Evaluate(expression=Assign(op="+=", target=Name(variable=own) as s, value=a)),
                Evaluate(expression=Assign(op="+=", target=Name(variable=beside) as t, value=b)),
            ) if own and beside and own is not beside and own not in self.names:
                types = self.kernel.reading.types
                if not are_of_one_type(types.get(s), types.get(t), types.get(a), types.get(b)):
                    return False
                self.sums.setdefault(own, []).append(beside)
                return self._expressions(a, b, at)
            case Evaluate(), Evaluate():
                return self._expressions(one.expression, other.expression, at)
            case Declare(), Declare():
                return (
                    one.words == other.words
                    and len(one.variables) == len(other.variables)
                    and all(
                        self._variables(v, w, at)
                        for v, w in zip(one.variables, other.variables, strict=True)
                    )
                )
            case Block(), Block():
                return len(one.body) == len(other.body) and all(
                    self._statements(s, t, at) for s, t in zip(one.body, other.body, strict=True)
                )
            case If(before=None, other=None), If(before=None, other=None):
                return self._expressions(one.test, other.test, at) and self._statements(
                    one.then, other.then, at
                )
        return False

    def _variables(self, one: Variable, other: Variable, at: int) -> bool:
        if one.type != other.type or one.storage != "local" or one.array or other.array:
            return False
        if one.value is None or other.value is None or one.type.reference:
            return False
        self.names[one] = other
        return self._expressions(one.value, other.value, at)

    def _expressions(self, one: Expr, other: Expr, at: int) -> bool:
        return same(one, other, also=partial(self._known, at=at))

    def _known(self, one: Expr, other: Expr, *, at: int) -> bool | None:
        """What the places and the names of two parts say; None where their words decide."""
        if self.counter is not None and self._elements(one, other, at):
            return True
        match one, other:
            case Name(variable=Variable() as own), _ if own is self.counter:
                return self._is_further(other, at)
            case Name(variable=Variable() as own), Name() if own in self.names:
                return self.names[own] is other.variable
            case (Assign(), Assign()) | (Choice(), Choice()):
                alike = isinstance(one, Choice) or one.op == other.op  # type: ignore[attr-defined]
                also = partial(self._known, at=at)
                return alike and all_same(one.parts, other.parts, also=also)
        return None

    def _is_further(self, expr: Expr, at: int) -> bool:
        match expr:
            case Binary(op="+", left=Name(variable=own), right=Literal(value=number)):
                return own is self.counter and number == at
        return False

    def _elements(self, ours: Expr, theirs: Expr, at: int) -> bool:
        """Whether an access is to the element that follows, of the same array."""
        one, other = self._accesses.get(ours), self._accesses.get(theirs)
        moves = (e for access in (ours, theirs) for e in every(access))
        if one is None or other is None or any(isinstance(e, Assign | Step) for e in moves):
            return False
        if (one.array, one.mode, one.element) != (other.array, other.mode, other.element):
            return False
        if one.index is None or other.index is None or one.mode == "atomic" or not one.array:
            return False
        name = next(
            (n for n in one.loops if self.kernel.reading.axis(n).variable is self.counter), ""
        )
        by = one.index.coefficient(name) if name else None
        if by is None or self._moves(one.index - by * Polynomial.symbol(name), name):
            return False
        apart = (other.index - one.index) * Polynomial.constant(self.step)
        return apart == by * Polynomial.constant(at)

    def _moves(self, rest: Polynomial, counter: str) -> bool:
        """Whether what else an index is made of may be another one in the next round."""
        return bool({counter, UNKNOWN} & self.kernel.reading.symbols.depends(rest))
