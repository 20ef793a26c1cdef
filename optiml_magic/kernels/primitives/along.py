"""What goes along with an extreme that the threads of a block find together, such as its place.

``if (v[t + d] > v[t]) { v[t] = v[t + d]; at[t] = at[t + d]; }`` puts together what two threads have
found. Of equals the thread that makes all rounds keeps the first one. So does a block that asks
for the lesser place, and one that puts together one element a thread in their order. Another keeps
what the shape of its tree says, which changes with the number of its threads: that the first one is
kept instead is said as a change of the arithmetic.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from optiml_magic.kernels.combining import same
from optiml_magic.kernels.editing import edited, lines
from optiml_magic.kernels.expressions import Assign, Binary, Expr, Literal, Name, every
from optiml_magic.kernels.primitives import combine
from optiml_magic.kernels.primitives.apiece import Apiece
from optiml_magic.kernels.primitives.base import NotLegal
from optiml_magic.kernels.primitives.selections import selected
from optiml_magic.kernels.primitives.shares import (
    ALONG,
    Each,
    Kept,
    Known,
    Same,
    Share,
    Source,
    Value,
    adds_nothing,
    number,
)
from optiml_magic.kernels.reading import Axis, Reduction
from optiml_magic.kernels.tree import (
    Block,
    Declare,
    Evaluate,
    If,
    Loop,
    Statement,
    Variable,
)
from optiml_magic.kernels.types import CType

_STRICT = {">": "max", "<": "min"}
_OTHER_SIDE = {">": "<", "<": ">"}


@dataclass(frozen=True, eq=False)
class _Taken:
    """What a target has, what it is given for it, and the statement that does so."""

    statement: Evaluate
    target: Expr
    had: Share
    given: Share


class Along(Apiece):
    """Extremes with their places."""

    def pair_selected(self, statement: If) -> bool:
        """Whether a branch puts together extremes and what goes along with them, as it then did."""
        asked = _comparison(statement.test)
        if asked is None or statement.other is not None or self.apart:
            return False
        test, tie = asked
        sides = [self._tried(side) for side in (test.left, test.right)]
        if not all(isinstance(side, Share) for side in sides):
            return False
        one, other = sides
        assert isinstance(one, Share)
        assert isinstance(other, Share)
        if one.source is not other.source or self._equal(one, other):
            return False
        taken = self._taken(statement.then)
        own = [t for t in taken if t.had.source is one.source]
        if len(own) != 1 or len(taken) < 2:
            return False
        best = own[0]
        along = [t for t in taken if t is not best]
        op = test.op
        if self._equal(best.given, other) and self._equal(best.had, one):
            op = _OTHER_SIDE[op]
        elif not (self._equal(best.given, one) and self._equal(best.had, other)):
            raise NotLegal("it computes with a part of what its threads combine")
        self._goes_along(best, along, _STRICT[op])
        if tie is not None:
            self._first_of_equals(best, along, tie)
        elif not self._in_order(best):
            self.equals = True
        for one_ in (best, *along):
            value = self.combined(one_.had, one_.given, one_.had.source.op, "")
            self.given_to(one_, value)
        return True

    def given_to(self, taken: _Taken, value: Value) -> None:
        place = self.place(taken.target)
        if place is not None:
            self._into(place, value)
            return
        assert isinstance(taken.target, Name)
        assert taken.target.variable is not None
        self._local(taken.statement, taken.target.variable, "=", taken.target, value)

    def gathered_along(
        self, axis: Axis, loop: Loop, reduction: Reduction, old: dict[Variable, Value | None]
    ) -> Iterator[Variable]:
        """The locals that a loop whose rounds are shared assigns along with its extreme."""
        if {*reduction.tests} - {*_STRICT}:
            raise NotLegal("of equals it keeps the last one", loop.line)
        best = next((v for v in old if v.name == reduction.place), None)
        extreme = self.env.get(best) if best is not None else None
        selection = selected(self.kernel, axis, loop, reduction, self.effects)
        again = best is not None and isinstance(old[best], Share)
        if not isinstance(extreme, Share) or again or self.apart:
            raise NotLegal(f"`{reduction.place}` is not followed", loop.line)
        given = _given(selection.branch)
        for variable in selection.carried:
            begun = old.get(variable)
            if isinstance(begun, Known):
                raise Kept(variable)
            if not isinstance(begun, Same) or not bool(begun.where.all()):
                raise NotLegal(f"`{variable.name}` does not begin with nothing", loop.line)
            kind, value = self.kind(variable), given[variable]
            counter = axis.variable
            grows = isinstance(value, Name) and value.variable is counter and selection.later
            source = Source(variable.name, kind, self.count, ALONG, begun.key, variable)
            source.follows = extreme.source
            source.grows = grows and counter is not None and _holds(kind, self.kind(counter))
            self.changed(variable)
            form = Name(None, variable.name, variable)
            self.env[variable] = replace(extreme, form=form, source=source, nothing=frozenset())
            yield variable

    def _taken(self, then: Statement) -> list[_Taken]:
        """What a branch assigns, if it does nothing else than to take what others have."""
        found: list[_Taken] = []
        for statement in then.body if isinstance(then, Block) else (then,):
            match statement:
                case Declare(variables=variables) if all(v.value for v in variables):
                    self.quiet += 1
                    self._step(statement)
                    self.quiet -= 1
                case Evaluate(expression=Assign(op="=", target=target, value=value)):
                    if not isinstance(target, Name) and self.place(target) is None:
                        return []
                    pair = [self._tried(target), self._tried(value)]
                    shares = [self._part(v) for v in pair]
                    if shares[0] is None or shares[1] is None:
                        return []
                    found.append(_Taken(statement, target, shares[0], shares[1]))
                case _:
                    return []
        return found

    def _part(self, value: Value | None) -> Share | None:
        if isinstance(value, Each):
            return self.shared_of(value)
        return value if isinstance(value, Share) else None

    def _tried(self, expr: Expr) -> Value | None:
        try:
            return self.value(expr)
        except NotLegal:
            return None

    def _equal(self, one: Share, other: Share) -> bool:
        """Whether the threads that are there have the same parts."""
        pairs = zip(one.parts, other.parts, self.mask, strict=True)
        return one.source is other.source and all(
            a is not None and a == b for a, b, m in pairs if m
        )

    def _goes_along(self, best: _Taken, along: Sequence[_Taken], op: str) -> None:
        """Raise NotLegal where what is taken does not belong to the extremes."""
        source = best.had.source
        if source.each is not None and not source.op:
            self._begin_pairs(source, [t.had.source for t in along], op)
        if source.op != op:
            raise NotLegal("its threads combine their parts by another operation")
        if not all(adds_nothing(source, key) for key in best.had.nothing | best.given.nothing):
            raise NotLegal("what stands where no thread found anything may be the extreme")
        for taken in along:
            if taken.had.source.follows is not source:
                raise NotLegal("it takes what does not go along with the extreme")
            for mine, theirs in ((taken.had, best.had), (taken.given, best.given)):
                pairs = zip(mine.parts, theirs.parts, self.mask, strict=True)
                if mine.source is not taken.had.source or any(a != b for a, b, m in pairs if m):
                    raise NotLegal("it takes what does not go along with the extreme")

    def _first_of_equals(self, best: _Taken, along: Sequence[_Taken], tie: Binary) -> None:
        """Raise NotLegal where a tie is not decided for the lesser place."""
        left, right = self._tried(tie.left), self._tried(tie.right)
        sides = (left, right) if tie.op == "<" else (right, left)
        for taken in along:
            lesser, greater = (self._part(side) for side in sides)
            if lesser is None or greater is None:
                break
            met = self._equal(lesser, taken.given) and self._equal(greater, taken.had)
            if met and taken.had.source.grows:
                return
        raise NotLegal("of equals it may keep another than the first", best.statement.line)

    def _in_order(self, best: _Taken) -> bool:
        """Whether what is kept of equals is certainly what an earlier thread found.

        A thread that makes several rounds may have found a later one.
        """
        pairs = zip(best.had.parts, best.given.parts, self.mask, strict=True)
        return best.had.source.each is not None and all(
            had.bit_length() <= (given & -given).bit_length() - 1 or not given
            for had, given, there in pairs
            if there and had is not None and given is not None
        )

    def _begin_pairs(self, source: Source, along: Sequence[Source], op: str) -> None:
        """A loop over threads that finds the extreme of their own values, and its place."""
        all_ = [source, *along]
        if len({*map(id, all_)}) < len(all_) or any(s.each is None or s.op for s in along):
            raise NotLegal("it takes what does not go along with the extreme")
        eaches = [s.each for s in all_ if s.each is not None]
        if not all(bool(each.where.all()) for each in eaches):
            raise NotLegal("some threads alone have what is combined")
        names = [self._fresh("greatest" if op == "max" else "least")]
        names += [self._fresh("place") for _ in along]
        reduction = Reduction(names[0], op, (), None, (), source.kind, 0)
        combine.supported(reduction)
        before = [f"{source.kind.name} {names[0]} = {combine.nothing(reduction)};"]
        taken = []
        for one, name, each in zip(all_, names, eaches, strict=True):
            one.op, one.name = ALONG if one is not source else op, name
            if one is source:
                one.begun = "-INFINITY" if op == "max" else "INFINITY"
                continue
            combine.carries(one.kind, 0)
            one.follows, one.grows = source, self._grows(each, one)
            before.append(f"{one.kind.name} {name} = {self.words(self._of_first(each))};")
            taken.append(f"{name} = {self.words(each.form)};")
        sign, next_ = ">" if op == "max" else "<", f"{names[0]}_next"
        made = lines(
            f"const {source.kind.name} {next_} = {self.words(eaches[0].form)};\n"
            f"if ({next_} {sign} {names[0]}) {{ {names[0]} = {next_}; {' '.join(taken)} }}"
        )
        conditions, self.conditions = self.conditions, []
        tests, self.tests = self.tests, []
        self.pending += [*map(lines, before), self._threads([made], eaches)]
        self.conditions, self.tests = conditions, tests

    def _fresh(self, name: str) -> str:
        found = self.kernel.fresh(name, *self.taken)
        self.taken.append(found)
        return found

    def _of_first(self, each: Each) -> Expr:
        """What the first thread has, which asks for no memory."""
        form = self._spelled_out(each)
        if each.loads:
            raise NotLegal("what goes along with the extreme is loaded")
        return edited(form, {e: number(0) for e in _names(form) if e.name == self.thread})

    def _grows(self, each: Each, source: Source) -> bool:
        """Whether a later thread certainly has a greater number."""
        slope = _slope(self._spelled_out(each), self.thread)
        return source.kind.integral and slope is not None and slope > 0

    def _spelled_out(self, each: Each) -> Expr:
        """What each thread has, without locals."""
        form, own = each.form, {one.name: one.form for one in each.locals}
        for _ in each.locals:
            form = edited(form, {e: own[e.name] for e in _names(form) if e.name in own})
        return form


def _slope(expr: Expr, thread: str) -> int | None:
    """By how much a sum grows from one thread to the next."""
    if not any(e.name == thread for e in _names(expr)):
        return 0
    match expr:
        case Name():
            return 1
        case Binary(op="+" | "*" as op, left=left, right=right):
            slopes = _slope(left, thread), _slope(right, thread)
            if slopes[0] is None or slopes[1] is None:
                return None
            if op == "+":
                return slopes[0] + slopes[1]
            for side, slope in ((left, slopes[1]), (right, slopes[0])):
                if isinstance(side, Literal) and isinstance(side.value, int):
                    return side.value * slope
    return None


def _names(expr: Expr) -> Iterator[Name]:
    return (e for e in every(expr) if isinstance(e, Name))


def _comparison(test: Expr) -> tuple[Binary, Binary | None] | None:
    """``a > b``, or ``a > b || (a == b && i < j)`` and what says which of two equals is taken."""
    match test:
        case Binary(op="<" | ">"):
            return test, None
        case Binary(
            op="||", left=Binary(op="<" | ">") as better,
            right=Binary(op="&&", left=Binary(op="==") as equal, right=Binary(op="<" | ">") as tie),
        ):  # fmt: skip
            sides = better.left, better.right
            for one, other in (sides, sides[::-1]):
                if same(equal.left, one) and same(equal.right, other):
                    return better, tie
    return None


def tied(test: Expr) -> bool:
    """Whether a test says which of two equals is taken."""
    asked = _comparison(test)
    return asked is not None and asked[1] is not None


def _given(branch: Block) -> dict[Variable, Expr]:
    """What a branch assigns to locals."""
    found = {}
    for statement in branch.body:
        match statement:
            case Evaluate(expression=Assign(target=Name(variable=Variable() as v), value=value)):
                found[v] = value
    return found


def _holds(kind: CType, counter: CType) -> bool:
    """Whether a local has every number of a counter."""
    own, its = kind.size or 0, counter.size or 9
    return kind.integral and (own > its or (own == its and kind.signed == counter.signed))
