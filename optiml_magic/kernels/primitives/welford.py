"""P16, split: a running mean, and what varies around it, as a sum and then squares around its mean.

Welford's rounds, ``d = x - mean; mean += d / n; m2 += d * (x - mean)``, wait for each other. What
they leave is the mean of all, and the sum of the squares around that: two loops that only add up,
whose rounds others may share. A round is followed in sums of products, however it is spelled. Where
the mean is begun with is that of as many elements as were counted before the first round.
Source: Chan, Golub and LeVeque, "Algorithms for Computing the Sample Variance" (1983).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from optiml_magic.kernels.editing import edited, lines
from optiml_magic.kernels.expressions import Binary, Cast, Expr, Literal, Name, Step, every
from optiml_magic.kernels.polynomial import Polynomial
from optiml_magic.kernels.primitives.base import Kernel, NotLegal, primitive
from optiml_magic.kernels.primitives.effects import Effects, is_counted, loops_in, names
from optiml_magic.kernels.primitives.naming import declared_type, speller_before
from optiml_magic.kernels.primitives.powers import Following, Value
from optiml_magic.kernels.primitives.unscaled import kept_of
from optiml_magic.kernels.reading import Axis
from optiml_magic.kernels.tree import (
    Block,
    Declare,
    Evaluate,
    Leave,
    Loop,
    Statement,
    Variable,
    walk,
)
from optiml_magic.kernels.types import named

_SHARE = "1 / count"  # the factor that a division by the count of a round is
_FLOATS = ("float", "double")
_WIDE = 4  # bytes of a local that counts as many rounds as there may be


@dataclass(frozen=True)
class _Running:
    """A loop that leaves the ``mean`` of its elements, and of ``before`` earlier ones.

    ``squares`` are the sum of what varies around it, ``counts`` what counts them besides.
    """

    axis: Axis
    kept: tuple[Statement, ...]
    mean: Variable
    element: Value
    squares: Variable | None
    counts: Variable | None
    before: int


@primitive
def welford(kernel: Kernel) -> Kernel:
    """The first loop that carries a mean as a loop that sums up, and one for what varies."""
    effects, known = Effects(kernel), kernel.axes()
    why = NotLegal("no loop carries a mean")
    for loop in loops_in(kernel.function.body):
        axis = known.get(loop)
        if axis is None or not _divides(loop) or loops_in(loop.body):
            continue
        if not axis.exact or not is_counted(axis, effects):
            continue
        if axis.step is None or axis.step.value != 1 or axis.scaled:
            continue
        try:
            return _made(kernel, effects, _running(kernel, effects, axis))
        except NotLegal as reason:
            why = NotLegal(reason.reason, reason.line or loop.line)
    raise why


def _divides(loop: Loop) -> bool:
    return any(
        isinstance(e, Binary) and e.op in ("/", "/=")
        for s in walk(loop.body) for top in s.expressions for e in every(top)
    )  # fmt: skip


@dataclass
class _Round(Following):
    """A round of such a loop: what is divided by its count has one factor more."""

    counting: frozenset[Variable] = frozenset()
    counts: list[Value] = field(default_factory=list)

    def run(self, statement: Statement) -> None:
        match statement:
            case Evaluate(expression=Step(op="++", target=Name(variable=Variable() as local))):
                if local not in self.known:
                    raise NotLegal("it changes more than what it sums up", statement.line)
                self.known[local] = self.known[local] + Value.constant(1)
            case _:
                super().run(statement)

    def value(self, expr: Expr) -> Value:
        match expr:
            case Binary(op="/", left=left, right=right) if names([right]) & self.counting:
                kind = self.kernel.reading.types.get(expr)
                if kind is None or not kind.floating:
                    raise NotLegal("a quotient of whole numbers is not followed")
                self.counts.append(self._count(right))
                return self.value(left) * Value.factor(_SHARE)
            case Cast(type=kind_name, operand=operand) if names([expr]) & self.counting:
                if named(kind_name, self.kernel.unit.aliases).floating:
                    return self.value(operand)
        return super().value(expr)

    def reduced(self, variable: Variable, count: Variable) -> Value:
        """What a local is after the round, where its count times its share is 1."""
        value, name = self.known[variable], count.name
        more = (self.counts[0] - Value.factor(name)).terms
        behind = sum(times for _, times in more)
        while True:
            both = [t for t in value.terms if {name, _SHARE} <= {*t[0][1]}]
            if not both:
                return value
            (power, factors), times = both[0]
            rest = [*factors]
            rest.remove(name)
            share = ((power, tuple(rest)), -behind * times)
            rest.remove(_SHARE)
            others = (term for term in value.terms if term is not both[0])
            value = Value.of([*others, share, ((power, tuple(rest)), times)])

    def _count(self, expr: Expr) -> Value:
        match expr:
            case Cast(operand=operand):
                return self._count(operand)
            case Binary(op="+", left=left, right=right):
                return self._count(left) + self._count(right)
            case Literal(value=int() | float() as number) if number == int(number):
                return Value.constant(number)
            case Name(variable=Variable() as variable) if variable in self.counting:
                return self.known.get(variable, Value.factor(variable.name))
        raise NotLegal("what it divides by does not count its rounds")


def _running(kernel: Kernel, effects: Effects, axis: Axis) -> _Running:
    """What a loop carries; raises NotLegal where it does more, or anything else."""
    loop, counter = axis.node, axis.variable
    assert counter is not None
    for statement in walk(loop.body):
        if isinstance(statement, Leave):
            raise NotLegal("a round is left before its end", statement.line)
    inside = effects.inside(loop)
    for access in kernel.reading.accesses:
        if access.own in inside and (access.mode != "load" or access.space == "local"):
            raise NotLegal("its rounds do more than to sum up", access.line)
    carried = [*effects.changed(loop.body)]
    counting = frozenset({counter, *carried})
    body = loop.body.body if isinstance(loop.body, Block) else (loop.body,)
    kept, moving = kept_of(effects, body, carried, lambda value: _shares(value, counting))
    begin = {v: Value.factor(v.name) for v in carried}
    way = _Round(kernel, counter, moving, True, begin, counting=counting)
    for statement in body:
        if statement not in kept:
            way.run(statement)
    count, before = _counted(effects, axis, way, carried)
    counted = count if count is not counter else None
    kinds = {v: named(v.type.base, kernel.unit.aliases) for v in carried}
    floats = [v for v in carried if v is not counted and kinds[v].name in _FLOATS]
    plain = all(v.storage == "local" and not v.type.depth and not v.type.reference
                and not v.array for v in carried)  # fmt: skip
    narrow = counted is not None and (kinds[counted].size or 0) < _WIDE
    if not plain or narrow or len(floats) + (counted is not None) != len(carried):
        raise NotLegal("its rounds do more than to sum up", loop.line)
    known = {v: way.reduced(v, count) for v in floats}
    for mean in floats:
        element = _element(known[mean] - Value.factor(mean.name), mean)
        if element is None or {v.name for v in moving} & element.factors:
            continue
        around = (element - Value.factor(mean.name)) * (element - known[mean])
        others = [v for v in floats if v is not mean]
        if len(others) <= 1 and all(
            known[v] == Value.factor(v.name) + around for v in others
        ):  # fmt: skip
            squares = others[0] if others else None
            return _Running(axis, kept, mean, element, squares, counted, before)
    raise NotLegal("its rounds carry no mean", loop.line)


def _shares(value: Expr, counting: frozenset[Variable]) -> bool:
    """Whether a part of it is divided by what counts."""
    return any(
        isinstance(e, Binary) and e.op == "/" and names([e.right]) & counting
        for e in every(value)
    )  # fmt: skip


def _element(change: Value, mean: Variable) -> Value | None:
    """What a round moves the mean towards, by the share of its count: None where it does not."""
    found, own = [], Value.factor(mean.name) * Value.factor(_SHARE)
    for (power, factors), times in (change + own).terms:
        if factors.count(_SHARE) != 1:
            return None
        at = factors.index(_SHARE)
        found.append(((power, (*factors[:at], *factors[at + 1 :])), times))
    return Value.of(found) if found else None


def _counted(
    effects: Effects, axis: Axis, way: _Round, carried: Sequence[Variable]
) -> tuple[Variable, int]:
    """What counts the rounds, and how many were counted before them."""
    line, counter = axis.node.line, axis.variable
    assert counter is not None
    if not way.counts or any(count != way.counts[0] for count in way.counts):
        raise NotLegal("what it divides by does not count its rounds", line)
    ahead = [v for v in (counter, *carried) if v.name in way.counts[0].factors]
    if len(ahead) != 1:
        raise NotLegal("what it divides by does not count its rounds", line)
    own = ahead[0]
    more = way.counts[0] - Value.factor(own.name)
    first = axis.start.value if axis.start is not None else None
    if own is not counter:
        if way.known[own] != Value.factor(own.name) + Value.constant(1):
            raise NotLegal("what it divides by does not count its rounds", line)
        first = _begun(effects, own, axis.node)
    steps = dict(more.terms)
    offset = steps.pop(((), ()), 0.0)
    if first is None or steps or offset != int(offset) or first + offset < 1:
        raise NotLegal("how many it has counted before is not known", line)
    return own, int(first + offset) - 1


def _begun(effects: Effects, variable: Variable, loop: Loop) -> int | None:
    """The number that a local still is as a loop begins; None where it may be another."""
    value = variable.value
    if not isinstance(value, Literal) or not isinstance(value.value, int | float):
        return None
    for block in walk(effects.kernel.function.body):
        if isinstance(block, Block) and loop in block.body:
            before = block.body[: block.body.index(loop)]
            at = [n for n, s in enumerate(before) if isinstance(s, Declare)
                  and variable in s.variables]  # fmt: skip
            if at and variable not in effects.changed(*before[at[0] + 1 :]):
                return int(value.value) if value.value == int(value.value) else None
    return None


def _made(kernel: Kernel, effects: Effects, found: _Running) -> Kernel:
    effects.straightforward()
    axis, loop = found.axis, found.axis.node
    if axis.start is None or axis.stop is None:
        raise NotLegal("the rounds of the loop are not known", loop.line)
    speller = speller_before(kernel, effects, loop)
    rounds = speller.form(speller.local(axis.stop - axis.start))
    whole = rounds if rounds.isidentifier() or rounds.isdigit() else f"({rounds})"
    mean, kind = found.mean.name, declared_type(kernel, found.mean)
    sum_ = kernel.fresh(f"{mean}_sum")
    begin, apart = kernel.fresh(f"{mean}_begin", sum_), kernel.fresh("apart")
    element = found.element.spelled()
    total, count = sum_, f"({kind}){whole}"
    times = f"{found.before} * " if found.before > 1 else ""
    if found.before:
        more = axis.stop - axis.start + Polynomial.constant(found.before)
        total, count = (
            f"({times}{begin} + {sum_})",
            f"({kind})({speller.form(speller.local(more))})",
        )
    made: list[Statement] = [lines(f"{kind} {sum_} = 0;")]
    if found.before:
        made.insert(0, lines(f"const {kind} {begin} = {mean};"))
    made.append(_loop(found, f"{sum_} += {element};"))
    made.append(lines(f"if ({rounds} > 0) {mean} = {total} / {count};"))
    if found.squares is not None:
        squares = found.squares.name
        own = declared_type(kernel, found.squares)
        less = f"({element})" if len(found.element.terms) > 1 else element
        made.append(
            _loop(found, f"const {own} {apart} = {less} - {mean};\n{squares} += {apart} * {apart};")
        )
        if found.before:
            off = f"({begin} - {mean})"
            made.append(lines(f"{squares} += {times}{off} * {off};"))
    if found.counts is not None:
        own = declared_type(kernel, found.counts)
        made.append(lines(f"if ({rounds} > 0) {found.counts.name} += ({own}){whole};"))
    return kernel.rewritten(edited(kernel.function.body, {loop: tuple(made)}))


def _loop(found: _Running, words: str) -> Statement:
    """The loop with other rounds."""
    loop = found.axis.node
    body = Block(None, loop.line, (*found.kept, lines(words)))
    return replace(loop, span=None, body=body, head=None, foot=None)
