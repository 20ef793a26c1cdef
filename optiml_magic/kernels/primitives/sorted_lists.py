"""Local arrays that a loop keeps in order: of its tests the one of the last element is enough.

``for (p = 0; p < K; ++p) if (v > best[p])`` puts ``v`` in the place of the first lesser element and
moves the others on, all at once or one by one as they are exchanged for what goes on. An array that
began with one number everywhere never rises, so that ``v`` is greater than some element where it is
greater than the last.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from optiml_magic.kernels.combining import same
from optiml_magic.kernels.expressions import (
    Assign,
    Binary,
    Expr,
    Index,
    Literal,
    Name,
    Step,
    Unary,
    every,
)
from optiml_magic.kernels.primitives.base import Kernel
from optiml_magic.kernels.primitives.effects import Effects, loops_in, names
from optiml_magic.kernels.primitives.selecting import OTHER, exchanged_by, plain
from optiml_magic.kernels.tree import (
    Block,
    Declare,
    Evaluate,
    If,
    Loop,
    Statement,
    Variable,
    only_leaves,
    walk,
)
from optiml_magic.kernels.types import named

_LIMITS = frozenset({"INFINITY", "FLT_MAX", "DBL_MAX", "INT_MAX", "INT_MIN", "CUDART_INF_F"})


@dataclass(frozen=True, eq=False)
class _Walk:
    """A loop over the first ``count`` elements of an array, each compared with ``value``."""

    loop: Loop
    counter: Variable
    count: Expr
    branch: If
    value: Name
    array: Variable
    op: str

    @property
    def element(self) -> Index:
        """What a round compares."""
        own = Name(None, self.counter.name, self.counter)
        return Index(None, Name(None, self.array.name, self.array), own)


def sorted_test(kernel: Kernel, effects: Effects, loop: Loop) -> Expr | None:
    """Where one test says whether any of a loop's rounds changes something, that test."""
    walk_ = _walk(loop)
    if walk_ is None or not _plain(kernel, effects, walk_):
        return None
    if not (_exchanges(kernel, effects, walk_) or _inserts(effects, walk_)):
        return None
    if not begun_alike(kernel, effects, loop, walk_.array, walk_.count):
        return None
    one = Literal(None, "1", 1)
    least = replace(walk_.element, index=Binary(None, "-", walk_.count, one))
    test = Binary(None, walk_.op, walk_.value, least)
    if isinstance(walk_.count, Literal):
        return test
    some = Binary(None, ">=", walk_.count, one)
    return Binary(None, "&&", some, test)


def _walk(loop: Loop) -> _Walk | None:
    """A loop that counts up from 0 and does no more than to compare."""
    match loop.before, loop.test, loop.update, plain(loop.body):
        case (
            Declare(variables=(Variable(value=Literal(value=0)) as counter,)),
            Binary(op="<", left=Name(variable=tested), right=count),
            Step(op="++", target=Name(variable=stepped)),
            (If(before=None, constant=False, other=None, test=Binary() as test) as branch,),
        ) if tested is counter and stepped is counter:
            pass
        case _:
            return None
    for value, element, op in ((test.left, test.right, test.op),
                               (test.right, test.left, OTHER.get(test.op, ""))):  # fmt: skip
        match value, element:
            case (Name(variable=Variable()), Index(base=Name(variable=Variable() as array),
                                                   index=Name(variable=at))):  # fmt: skip
                if at is counter and op in OTHER:
                    return _Walk(loop, counter, count, branch, value, array, op)
    return None


def _plain(kernel: Kernel, effects: Effects, one: _Walk) -> bool:
    """Whether its names mean locals of the thread, of one type, to which nothing else leads."""
    value, array = one.value.variable, one.array
    if value is None or value.type.depth or value.type.reference or value.array:
        return False
    simple = array.storage == "local" and len(array.extents) == 1 and not array.type.volatile
    alike = value.type.base == array.type.base and value.type.base != "auto"
    kind = named(array.type.base, kernel.unit.aliases)
    known = (kind.integral or kind.floating) and kind.lanes == 1
    steady = all(isinstance(e, Name | Literal) for e in every(one.count)) and not (
        names([one.count]) & effects.changing
    )
    lent = {value, array} & effects.addressed or value in effects.lent
    return bool(simple and alike and known and steady and not lent)


def _exchanges(kernel: Kernel, effects: Effects, one: _Walk) -> bool:
    """Whether a round that finds a lesser element goes on with it, and leaves the value there."""
    own = {one.array, one.value.variable}
    then = plain(one.branch.then)
    held = {v for s in then if isinstance(s, Declare) and effects.mentions(s) & own
            for v in s.variables}  # fmt: skip
    asking = [s for s in then if effects.given(s) & held or effects.mentions(s) & (own | held)]
    rest = [s for s in then if s not in asking]
    kept = exchanged_by(kernel, asking, one.element, one.value)
    alike = kept is not None and kept.type.base == one.array.type.base
    return alike and not effects.changed(one.branch.then).keys() & {one.counter} and _only(rest)


def _inserts(effects: Effects, one: _Walk) -> bool:
    """Whether a round that finds a lesser element moves it and those behind it, and ends."""
    own = {one.array, one.value.variable}
    match plain(one.branch.then):
        case (Loop() as moving, *puts, last) if only_leaves(last, "break"):
            asking = [s for s in puts if effects.mentions(s) & own]
            rest = [s for s in puts if s not in asking]
        case _:
            return False
    match asking:
        case [Evaluate(expression=Assign(op="=", target=target, value=put))]:
            if not same(target, one.element) or not same(put, one.value):
                return False
        case _:
            return False
    steady = not effects.changed(one.branch.then).keys() & {one.counter}
    return steady and _only(rest) and _moves(effects, one, moving)


def _moves(effects: Effects, one: _Walk, loop: Loop) -> bool:
    """Whether a loop moves all elements from the counter's on by one, the last one first."""
    match loop.before, loop.test, loop.update:
        case (
            Declare(variables=(Variable(value=Expr() as start) as at,)),
            Binary(op=">", left=Name(variable=tested), right=Name(variable=ends)),
            Step(op="--", target=Name(variable=stepped)),
        ) if tested is at and stepped is at and ends is one.counter and _last(start, one.count):
            pass
        case _:
            return False
    array, here = Name(None, one.array.name, one.array), Name(None, at.name, at)
    before = Index(None, array, Binary(None, "-", here, Literal(None, "1", 1)))
    asking = [s for s in plain(loop.body) if one.array in effects.mentions(s)]
    rest = [s for s in plain(loop.body) if s not in asking]
    match asking:
        case [Evaluate(expression=Assign(op="=", target=target, value=moved))]:
            moves = same(target, Index(None, array, here)) and same(moved, before)
            return moves and _only(rest) and at not in effects.changed(loop.body)
    return False


def _last(start: Expr, count: Expr) -> bool:
    match start, count:
        case Literal(value=int() as last), Literal(value=int() as number):
            return last == number - 1
        case Binary(op="-", left=left, right=Literal(value=1)), _:
            return same(left, count)
    return False


def _only(rest: Sequence[Statement]) -> bool:
    """Whether statements beside these do no more than to give places values."""
    return all(isinstance(s, Declare) or (isinstance(s, Evaluate)
               and isinstance(s.expression, Assign)) for s in rest)  # fmt: skip


def begun_alike(
    kernel: Kernel, effects: Effects, loop: Loop, array: Variable, count: Expr
) -> bool:  # fmt: skip
    """Whether ``count`` elements of an array are one number when a loop begins.

    Nobody else stores to it but who gives it that number before.
    """
    body = kernel.function.body
    bases = {e.base for e in effects.inside(body) if isinstance(e, Index)}
    if any(isinstance(e, Name) and e.variable is array and e not in bases
           for e in effects.inside(body)):  # fmt: skip
        return False
    whole = effects.inside(loop)
    stores = [e for e in effects.inside(body) if isinstance(e, Assign | Step) and e not in whole
              and isinstance(e.target, Index) and isinstance(e.target.base, Name)
              and e.target.base.variable is array]  # fmt: skip
    if not stores:
        return _declared_alike(array, count)
    if len(stores) != 1 or array.initial or not isinstance(stores[0], Assign):
        return False
    for block in (b for b in walk(body) if isinstance(b, Block)):
        for at, statement in enumerate(block.body):
            if isinstance(statement, Loop) and stores[0] in effects.inside(statement):
                behind = [s for later in block.body[at + 1 :] for s in walk(later)]
                if loop in behind and _fills(effects, array, count, statement, stores[0]):
                    return True
    return False


def _declared_alike(array: Variable, count: Expr) -> bool:
    """Whether the array is declared with one number for each element."""
    (extent,), first = array.extents, array.initial[:1]
    if not isinstance(extent, Literal) or not isinstance(count, Literal) or not first:
        return False
    full = len(array.initial) == extent.value or (
        len(first) == 1 and isinstance(first[0], Literal) and first[0].value == 0
    )
    fits = isinstance(extent.value, int) and (count.value or 0) <= extent.value
    return full and fits and all(same(e, first[0]) and _number(e) for e in array.initial)


def _fills(
    effects: Effects, array: Variable, compared: Expr, loop: Loop, store: Assign
) -> bool:  # fmt: skip
    """Whether a loop certainly gives all elements that are compared one number."""
    match loop.before, loop.test, loop.update, store:
        case (
            Declare(variables=(Variable(value=Literal(value=0)) as at,)),
            Binary(op="<", left=Name(variable=tested), right=count),
            Step(op="++", target=Name(variable=stepped)),
            Assign(op="=", target=Index(index=Name(variable=own)), value=value),
        ) if tested is at and stepped is at and own is at and _number(value):
            pass
        case _:
            return False
    (extent,) = array.extents
    enough = same(count, compared) or (extent is not None and same(count, extent))
    body = plain(loop.body)
    flat = _only(body) and not loops_in(loop.body) and at not in effects.changed(loop.body)
    return enough and flat and store in {
        s.expression for s in body if isinstance(s, Evaluate)
    }  # fmt: skip


def _number(expr: Expr) -> bool:
    """Whether an expression is a number, and no NaN."""
    match expr:
        case Unary(op="-" | "+", operand=operand):
            return _number(operand)
        case Literal(value=value):
            return value is not None
        case Name(name=name, variable=None):
            return name in _LIMITS
    return False
