"""What says which of two equals is kept, where the order of the rounds says it already.

``if (v > m || (v == m && c < at)) { m = v; at = c; }`` in a loop whose counter ``c`` grows never
takes an equal one, since ``at`` is where an earlier round found its own: it is ``if (v > m)``, an
extreme that rules look for. With ``c > at`` it is ``v >= m``, which takes the last of its equals.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

from optiml_magic.kernels.combining import same
from optiml_magic.kernels.editing import Node, edited
from optiml_magic.kernels.expressions import (
    MIRRORED,
    Assign,
    Binary,
    Call,
    Choice,
    Expr,
    Lambda,
    Literal,
    Name,
    Step,
    Unary,
    Unread,
    builtin,
    every,
    is_logical,
)
from optiml_magic.kernels.polynomial import Polynomial
from optiml_magic.kernels.primitives.base import Kernel, NotLegal, primitive
from optiml_magic.kernels.primitives.effects import Effects, is_counted, loops_in, names
from optiml_magic.kernels.ranges import Ranges
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

Answer = Expr | bool
_Given = defaultdict[Variable, list[Expr]]


@dataclass(frozen=True, eq=False)
class _Place:
    """A local that is the counter of an earlier round, or what it was before the loop.

    ``apart`` says whether that was no round of the loop. ``given`` is what may change it.
    """

    variable: Variable
    given: tuple[Evaluate, ...]
    apart: bool


@primitive
def untied(kernel: Kernel) -> Kernel:
    """The kernel without the comparisons of counters that the order of rounds decides."""
    effects, swaps = Effects(kernel), dict[Node, Node | tuple[Statement, ...] | None]()
    for axis in kernel.axes().values():
        grows = _grows(kernel, effects, axis)
        if grows is None or axis.variable is None:
            continue
        given = _given(effects, axis.node.body)
        counters = {axis.variable, *_counters(kernel, effects, axis, given)}
        found = _places(kernel, effects, axis, counters, given, grows=grows)
        places = {place.variable: place for place in found}
        if places:
            swaps |= _Deciding(kernel, axis.node, counters, places, grows=grows).swaps()
    if not swaps:
        raise NotLegal("no loop asks which of two rounds was the earlier one")
    return kernel.rewritten(edited(kernel.function.body, swaps))


class _Deciding:
    """The comparisons of one loop that are decided."""

    def __init__(
        self, kernel: Kernel, loop: Loop, counters: set[Variable],
        places: Mapping[Variable, _Place], *, grows: bool,
    ) -> None:  # fmt: skip
        self.kernel = kernel
        self.loop = loop
        self.counters = counters
        self.places = places
        self.grows = grows
        self.order = {s: n for n, s in enumerate(walk(loop.body))}
        self.again = {s for inner in loops_in(loop.body) for s in walk(inner)}

    def swaps(self) -> dict[Node, Node | tuple[Statement, ...] | None]:
        found: dict[Node, Node | tuple[Statement, ...] | None] = {}
        for statement in reversed(self.order):  # what is in a branch before the branch
            for top in statement.expressions:
                found |= self._within(top, statement)
            match statement:
                case If(before=None, test=test, other=None) if self._decided(statement, test):
                    found[statement] = None
                case If(other=If(before=None, test=test, other=None) as last):
                    if self._decided(last, test):
                        found[statement] = edited(replace(statement, other=None, span=None), found)
        return found

    def _decided(self, statement: Statement, test: Expr) -> bool:
        """Whether a test is never met."""
        return self._answer(test, statement) is False

    def _within(self, expr: Expr, statement: Statement) -> dict[Node, Node]:
        new = self._answer(expr, statement)
        if isinstance(new, Expr) and new is not expr:
            return {expr: new}
        parts = expr.parts if new is expr else ()
        return {old: new for part in parts for old, new in self._within(part, statement).items()}

    def _answer(self, expr: Expr, statement: Statement) -> Answer:
        """What is left of a condition; itself where nothing of it is decided."""

        def of(part: Expr) -> Answer:
            return self._answer(part, statement)

        match expr:
            case Binary(op=op, left=left, right=right) if is_logical(expr):
                return _joined(expr, op, of(left), of(right))
            case Binary(op=op, left=Name(variable=Variable() as one), right=Name(variable=other)):
                if op in MIRRORED and isinstance(other, Variable):
                    return self._compared(expr, op, one, other, statement)
            case Unary(op="!", operand=operand):
                new = of(operand)
                if isinstance(new, bool):
                    return not new
                return expr if new is operand else Unary(None, "!", new)
            case Choice(test=test, then=then, other=other):
                return _chosen(expr, test, of(then), of(other))
        return expr

    def _compared(
        self, expr: Expr, op: str, one: Variable, other: Variable, statement: Statement
    ) -> Answer:
        if other in self.counters and one in self.places:
            op, one, other = MIRRORED[op], other, one
        place = self.places.get(other)
        if place is None or one not in self.counters or not _alike(self.kernel, one, other):
            return expr
        later, strict = (">" if self.grows else "<"), len(op) == 1
        if op[0] == later:
            if not strict:
                return True
            return True if self._before(place, statement) and place.apart else expr
        if strict:
            return False
        return False if self._before(place, statement) and place.apart else expr

    def _before(self, place: _Place, statement: Statement) -> bool:
        """Whether a round asks before it may have put its own counter there."""
        last = [*place.given, statement]
        inner = any(s in self.again for s in last)
        return not inner and all(self.order[statement] < self.order[s] for s in place.given)


def _joined(expr: Binary, op: str, left: Answer, right: Answer) -> Answer:
    """``&&`` or ``||`` of what is left of both sides."""
    decisive = op == "||"
    for one, other, own in ((left, right, expr.right), (right, left, expr.left)):
        if isinstance(one, bool):
            if one is not decisive:
                return other
            return one if _only_asks(own) else expr
    assert isinstance(left, Expr)
    assert isinstance(right, Expr)
    if left is expr.left and right is expr.right:
        return expr
    return _as_one(op, left, right) or _as_one(op, right, left) or Binary(None, op, left, right)


def _as_one(op: str, one: Expr, other: Expr) -> Expr | None:
    """``v > m || v == m`` as one comparison, and what ``&&`` leaves of two alike."""
    if not isinstance(one, Binary) or not isinstance(other, Binary):
        return None
    if not all(_only_asks(e) for e in (one, other)):
        return None
    if same(one.left, other.left) and same(one.right, other.right):
        its = other.op
    elif same(one.left, other.right) and same(one.right, other.left):
        its = MIRRORED.get(other.op, other.op)
    else:
        return None
    if one.op in ("<", ">") and op == "||" and its in ("==", f"{one.op}="):
        return Binary(None, f"{one.op}=", one.left, one.right)
    if one.op in ("<", ">") and op == "&&" and its in ("!=", f"{one.op}="):
        return one
    return None


def _chosen(expr: Choice, test: Expr, then: Answer, other: Answer) -> Answer:
    """A choice between conditions of which one is decided."""
    equal = isinstance(test, Binary) and test.op in ("==", "!=")
    if not equal or not (isinstance(then, bool) or isinstance(other, bool)):
        return expr
    assert isinstance(test, Binary)
    unlike = Binary(None, "!=" if test.op == "==" else "==", test.left, test.right)
    for decided, left, when, unless in ((then, other, test, unlike), (other, then, unlike, test)):
        if isinstance(decided, bool) and isinstance(left, Expr):
            op, part = ("||", when) if decided else ("&&", unless)
            return _as_one(op, left, part) or Binary(None, op, part, left)
    return expr


def _only_asks(expr: Expr) -> bool:
    """Whether nothing is missed where a condition is not computed."""
    return not any(isinstance(e, Assign | Step | Call | Lambda | Unread) for e in every(expr))


def _alike(kernel: Kernel, one: Variable, other: Variable) -> bool:
    """Whether a place holds a counter as it is, and both are compared as such."""
    kinds = [_kind(kernel, v) for v in (one, other)]
    return (
        all(k.integral and k.kind == "int" for k in kinds)
        and kinds[0].signed == kinds[1].signed
        and (kinds[0].size or 9) <= (kinds[1].size or 0)
    )


def _kind(kernel: Kernel, variable: Variable) -> CType:
    return named(variable.type.base, kernel.unit.aliases)


def _plain(variable: Variable) -> bool:
    kind = variable.type
    whole = not (kind.depth or kind.reference or kind.volatile or variable.array)
    return whole and variable.storage == "local"


def _given(effects: Effects, body: Statement) -> _Given:
    """What statements of their own give locals in a body; of another kind is ``Unread``."""
    found = _Given(list)
    for statement in walk(body):
        told = dict[Variable, Expr]()
        match statement:
            case Declare(variables=own):
                told = {v: v.value for v in own if v.value is not None}
            case Evaluate(expression=Assign(op="=", target=Name(variable=Variable() as v)) as to):
                told = {v: to.value} if v not in names([to.value]) else {}
        heads = [Evaluate(None, 0, e) for e in statement.expressions]
        unread = effects.changed(*heads).keys() - told.keys()
        for variable, value in (*told.items(), *((v, Unread(None, v.name)) for v in unread)):
            found[variable].append(value)
    return found


def _led(kernel: Kernel, effects: Effects) -> frozenset[Variable]:
    """The locals that something else leads to, or that may be changed unseen."""
    whole = effects.inside(kernel.function.body)
    led = [e.operand for e in whole if isinstance(e, Unary) and e.op == "&"]
    led += [e for e in whole if isinstance(e, Lambda | Unread)]
    led += [v.value for s in walk(kernel.function.body) if isinstance(s, Declare)
            for v in s.variables if v.type.reference and v.value is not None]  # fmt: skip
    return names(led)


def _counters(kernel: Kernel, effects: Effects, axis: Axis, given: _Given) -> Iterator[Variable]:
    """The locals of a round that are its counter, by one declaration or assignment."""
    body, led, found = axis.node.body, _led(kernel, effects), {axis.variable}
    for statement in walk(body):
        for variable in statement.variables if isinstance(statement, Declare) else ():
            if variable in led or not _plain(variable) or variable.initial:
                continue
            match given[variable]:
                case [Name(variable=Variable() as of)] if of in found:
                    if _alike(kernel, of, variable):
                        found.add(variable)
                        yield variable


def _grows(kernel: Kernel, effects: Effects, axis: Axis) -> bool | None:
    """Whether each round has a greater counter than the one before; None where that is unknown."""
    if axis.step is None or axis.scaled or axis.variable is None or not is_counted(axis, effects):
        return None
    kind, test = _kind(kernel, axis.variable), axis.node.test
    if not kind.signed and any(
        isinstance(e, Binary) and e.op == "!=" for e in (every(test) if test is not None else ())
    ):
        return None  # it may come to its end over the greatest number
    ranges, one = Ranges(axis.guard, kernel.reading.symbols), Polynomial.constant(1)
    if ranges.nonnegative(axis.step - one):
        return True
    return False if ranges.nonnegative(-axis.step - one) else None


def _places(
    kernel: Kernel, effects: Effects, axis: Axis, counters: set[Variable], given: _Given, *,
    grows: bool,
) -> Iterator[_Place]:  # fmt: skip
    loop, led = axis.node, _led(kernel, effects)
    inner = {v for s in walk(loop) if isinstance(s, Declare) for v in s.variables}
    for variable in effects.changed(loop.body):
        if variable in inner or variable in led or not _plain(variable):
            continue
        if not all(
            isinstance(e, Name) and e.variable in counters and _alike(kernel, e.variable, variable)
            for e in given[variable]
        ):
            continue
        apart = _begun(kernel, effects, axis, variable, grows=grows)
        if apart is not None:
            statements = tuple(
                s for s in walk(loop.body)
                if isinstance(s, Evaluate) and variable in effects.changed(s)
            )  # fmt: skip
            yield _Place(variable, statements, apart)


def _begun(
    kernel: Kernel, effects: Effects, axis: Axis, variable: Variable, *, grows: bool
) -> bool | None:
    """Whether a local begins as no round of the loop, True, or as its first one at the latest.

    None where it may be what a later round would find.
    """
    before = _value_before(kernel, effects, axis.node, variable)
    head = axis.node.before
    first = head.variables[0].value if isinstance(head, Declare) else None
    if before is None or axis.start is None:
        return None
    if first is not None and same(before, first) and not _moves(effects, before):
        return False
    number, kind = _number(before), _kind(kernel, variable)
    ranges = Ranges(axis.guard, kernel.reading.symbols)
    if number is None or abs(number) >= 1 << 8 * (kind.size or 0) - 1:
        return None
    if not kind.signed and (number < 0 or not ranges.nonnegative(axis.start)):
        return None  # what is below zero is a great number there
    ahead = axis.start - Polynomial.constant(number)
    if not grows:
        ahead = -ahead
    if not ranges.nonnegative(ahead):
        return None
    return ranges.nonnegative(ahead - Polynomial.constant(1))


def _value_before(kernel: Kernel, effects: Effects, loop: Loop, variable: Variable) -> Expr | None:
    """What a local certainly is where a loop begins, by a statement beside the loop."""
    for block in walk(kernel.function.body):
        if not isinstance(block, Block) or loop not in block.body:
            continue
        for statement in reversed(block.body[: block.body.index(loop)]):
            match statement:
                case Declare(variables=own) if variable in own:
                    return variable.value
                case Evaluate(expression=Assign(op="=", target=Name(variable=v), value=value)):
                    if v is variable:
                        return value
            if variable in effects.changed(statement):
                return None
    return None


def _moves(effects: Effects, expr: Expr) -> bool:
    """Whether an expression may be another number later on."""
    if isinstance(expr, Binary):
        return any(_moves(effects, part) for part in expr.parts)
    steady = isinstance(expr, Name) and expr.variable is not None
    return not (steady or isinstance(expr, Literal) or builtin(expr)) or bool(
        names([expr]) & effects.changing
    )


def _number(expr: Expr) -> int | None:
    match expr:
        case Literal(value=int() as value) if not isinstance(value, bool):
            return value
        case Unary(op="-" | "+" as op, operand=operand):
            inner = _number(operand)
            return inner if inner is None or op == "+" else -inner
    return None
