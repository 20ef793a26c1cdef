"""Whether a statement combines a value into the place it assigns to, and how."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from optiml_magic.kernels.expressions import (
    Assign,
    Binary,
    Call,
    Cast,
    Choice,
    Expr,
    Index,
    Literal,
    Member,
    Name,
    Step,
    Unary,
    every,
)
from optiml_magic.kernels.functions import COMBINING, FUSED, bare
from optiml_magic.kernels.tree import Block, Declare, Evaluate, If, Variable

_COMPOUND = {"+=": "+", "-=": "+", "*=": "*", "&=": "&", "|=": "|", "^=": "^"}
_CHAINED = frozenset({"+", "*", "&", "|", "^", "&&", "||"})
_ORDERS = {"<": ">", "<=": ">=", ">": "<", ">=": "<="}  # and what they are from the other side
Meanings = Mapping[Variable, Expr]
Also = Callable[[Expr, Expr], bool | None]
_NO_NAMES: Meanings = {}
_IN_ORDER = frozenset({"auto", "float", "double", "int", "long", "long long"})


@dataclass(frozen=True)
class Combination:
    """``target = target op values``; ``carried`` are assigned along with a selected value.

    ``test`` is how a selected value must compare with the target, ``>=`` for one that follows its
    equals; with ``!`` in front it is taken where that does not hold, as with a NaN. Of that
    comparison, ``named`` are the parts that have names.
    """

    target: Expr
    op: str
    values: tuple[Expr, ...]
    carried: tuple[Expr, ...] = ()
    test: str = ""
    named: Meanings = field(default_factory=dict)


def combination(expression: Assign | Step, meant: Meanings = _NO_NAMES) -> Combination | None:
    """How an assignment combines, if it does and its target stands in it once.

    ``meant`` are the expressions that locals stand for there.
    """
    target = expression.target
    if isinstance(expression, Step):
        return Combination(target, "+", ())
    if expression.op != "=":
        op = _COMPOUND.get(expression.op)
        if op is None or _mentioned(target, expression.value):
            return None
        return Combination(target, op, (expression.value,))
    found = _combined(target, expression.value, meant)
    if found is None or any(_mentioned(target, value) for value in found.values):
        return None
    return found


def selection(statement: If, meant: Meanings = _NO_NAMES) -> Combination | None:
    """``if (x > m) m = x;``, also with other assignments beside it, such as the place of x.

    Names may be given to values before; what is assigned beside it is not made of the target.
    """
    inside = statement.then.statements if isinstance(statement.then, Block) else (statement.then,)
    lets = [s for s in inside if isinstance(s, Declare)]
    assigned = [s.expression for s in inside
                if isinstance(s, Evaluate) and isinstance(s.expression, Assign)
                and s.expression.op == "="]  # fmt: skip
    if statement.other is not None or statement.before:
        return None
    if len(lets) + len(assigned) != len(inside) or any(
        not isinstance(s, Declare) for s in inside[: len(lets)]
    ):
        return None
    own = {v: v.value for s in lets for v in s.variables if v.value and not v.type.reference}
    if any(v not in own or v.array for s in lets for v in s.variables):
        return None
    # An `int` or a float is in the order of what it is made of; a byte may not be.
    alike = {**meant, **{v: e for v, e in own.items() if v.type.base in _IN_ORDER}}
    meant = {**meant, **own}
    for at, assign in enumerate(assigned):
        test = _selects(statement.test, assign.value, assign.target, alike)
        if test is not None:
            others = [a for i, a in enumerate(assigned) if i != at]
            targets = [a.target for a in assigned]
            if any(_mentioned(t, a.value, meant) for t in targets for a in others):
                return None
            carried = tuple(a.target for a in others)
            named = _names(statement.test, meant)
            return Combination(assign.target, _op(test), (assign.value,), carried, test, named)
    return None


def adds(expression: Expr | None) -> bool:
    """Whether an assignment adds to its target, and takes nothing from it."""
    match expression:
        case Assign(op="+="):
            return True
        case Assign(op="=", target=target, value=Binary(op="+") as value):
            return any(same(part, target) for part in _flattened("+", value))
    return False


def _combined(target: Expr, value: Expr, meant: Meanings) -> Combination | None:
    match value:
        case Binary(op=op) if op in _CHAINED:
            parts = _flattened(op, value)
            rest = [part for part in parts if not same(part, target)]
            if len(rest) == len(parts) - 1:
                return Combination(target, op, tuple(rest))
            if op == "+":  # s - x + y
                inner = [_combined(target, part, meant) for part in parts]
                held = [c for c in inner if c is not None and c.op == "+"]
                if len(held) == 1:
                    others = [p for p, c in zip(parts, inner, strict=True) if c is not held[0]]
                    return Combination(target, "+", (*held[0].values, *others))
        case Binary(op="-", left=left, right=right):
            if same(left, target):
                return Combination(target, "+", (right,))
            inner_left = _combined(target, left, meant)
            if inner_left is not None and inner_left.op == "+":
                return Combination(target, "+", (*inner_left.values, right))
        case Call(function=function, arguments=(first, second)) if bare(function) in COMBINING:
            for one, other in ((first, second), (second, first)):
                if same(one, target):
                    return Combination(target, COMBINING[bare(function)], (other,))
        case Call(function=function, arguments=(_, _, third)) if bare(function) in FUSED:
            if same(third, target):
                return Combination(target, "+", value.arguments[:2])
        case Choice(test=test, then=then, other=other):
            for kept, taken, negated in ((other, then, False), (then, other, True)):
                if same(kept, target):
                    how = _selects(test, taken, target, meant, negated=negated)
                    if how is not None:
                        named = _names(test, meant)
                        return Combination(target, _op(how), (taken,), (), how, named)
    return None


def _selects(
    test: Expr, value: Expr, target: Expr, meant: Meanings, *, negated: bool = False
) -> str | None:
    """``>`` where ``value`` is taken because it is greater than ``target``; None for no order."""
    match test:
        case Name(variable=Variable() as variable) if variable in meant:
            return _selects(meant[variable], value, target, meant, negated=negated)
        case Unary(op="!", operand=operand):
            return _selects(operand, value, target, meant, negated=not negated)
        case Binary(op=op) if op in _ORDERS:
            if same(test.left, target, meant) and same(test.right, value, meant):
                op = _ORDERS[op]
            elif not (same(test.left, value, meant) and same(test.right, target, meant)):
                return None
            return f"!{op}" if negated else op
    return None


def _names(test: Expr, meant: Meanings) -> Meanings:
    """The names of the comparison that a test is, and of what is negated to be it."""
    match test:
        case Name(variable=Variable() as variable) if variable in meant:
            return {variable: meant[variable], **_names(meant[variable], meant)}
        case Unary(op="!", operand=operand):
            return _names(operand, meant)
    return {}


def _op(test: str) -> str:
    """``>`` where the greater one is taken, ``<`` where the lesser one is."""
    return test[0] if test[0] != "!" else _ORDERS[test[1]]


def _flattened(op: str, expression: Expr) -> list[Expr]:
    if isinstance(expression, Binary) and expression.op == op:
        return [*_flattened(op, expression.left), *_flattened(op, expression.right)]
    return [expression]


def _mentioned(target: Expr, expression: Expr, meant: Meanings = _NO_NAMES) -> bool:
    return any(
        same(part, target)
        or (
            isinstance(part, Name)
            and part.variable is not None
            and part.variable in meant
            and _mentioned(target, meant[part.variable], meant)
        )
        for part in every(expression)
    )


def same(one: Expr, other: Expr, meant: Meanings = _NO_NAMES, also: Also | None = None) -> bool:
    """Whether two expressions are written alike, or stand for what is.

    Where ``also`` says of two parts whether they are alike, their words do not count.
    """
    known = also(one, other) if also is not None else None
    if known is not None:
        return known
    match one, other:
        case Name(), Name() if one.variable is other.variable:
            return one.variable is not None or one.name == other.name
        case Name(variable=Variable() as variable), _ if variable in meant:
            return same(meant[variable], other, meant, also)
        case _, Name(variable=Variable() as variable) if variable in meant:
            return same(one, meant[variable], meant, also)
        case Literal(), Literal():
            return one.text == other.text
        case Member(), Member():
            alike = one.field == other.field and one.arrow == other.arrow
        case Cast(), Cast():
            alike = one.type == other.type
        case (Binary(), Binary()) | (Unary(), Unary()):
            alike = one.op == other.op  # type: ignore[attr-defined]
        case Call(), Call():
            alike = one.function == other.function and one.template == other.template
        case Index(), Index():
            alike = True
        case _:
            return False
    return alike and all_same(one.parts, other.parts, meant, also)


def all_same(
    ours: Sequence[Expr], theirs: Sequence[Expr], meant: Meanings = _NO_NAMES,
    also: Also | None = None,
) -> bool:  # fmt: skip
    """Whether as many expressions are the same, one by one."""
    return len(ours) == len(theirs) and all(
        same(a, b, meant, also) for a, b in zip(ours, theirs, strict=True)
    )
