"""Whether a statement combines a value into the place it assigns to, and how."""

from __future__ import annotations

from dataclasses import dataclass

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
from optiml_magic.kernels.tree import Block, Evaluate, If

_COMPOUND = {"+=": "+", "-=": "+", "*=": "*", "&=": "&", "|=": "|", "^=": "^"}
_CHAINED = frozenset({"+", "*", "&", "|", "^", "&&", "||"})
_ORDERS = frozenset({"<", "<=", ">", ">="})


@dataclass(frozen=True)
class Combination:
    """``target = target op values``; ``carried`` are assigned along with a selected value."""

    target: Expr
    op: str
    values: tuple[Expr, ...]
    carried: tuple[Expr, ...] = ()


def combination(expression: Assign | Step) -> Combination | None:
    """How an assignment combines, if it does and its target stands in it once."""
    target = expression.target
    if isinstance(expression, Step):
        return Combination(target, "+", ())
    if expression.op != "=":
        op = _COMPOUND.get(expression.op)
        if op is None or _mentioned(target, expression.value):
            return None
        return Combination(target, op, (expression.value,))
    found = _combined(target, expression.value)
    if found is None or any(_mentioned(target, value) for value in found.values):
        return None
    return found


def selection(statement: If) -> Combination | None:
    """``if (x > m) m = x;``, also with other assignments beside it, such as the place of x."""
    inside = statement.then.statements if isinstance(statement.then, Block) else (statement.then,)
    assigned = [s.expression for s in inside
                if isinstance(s, Evaluate) and isinstance(s.expression, Assign)
                and s.expression.op == "="]  # fmt: skip
    if statement.other is not None or statement.before or len(assigned) != len(inside):
        return None
    for at, assign in enumerate(assigned):
        op = _selects(statement.test, assign.value, assign.target)
        if op is not None:
            others = tuple(a.target for i, a in enumerate(assigned) if i != at)
            return Combination(assign.target, op, (assign.value,), others)
    return None


def _combined(target: Expr, value: Expr) -> Combination | None:
    match value:
        case Binary(op=op) if op in _CHAINED:
            parts = _flattened(op, value)
            rest = [part for part in parts if not same(part, target)]
            if len(rest) == len(parts) - 1:
                return Combination(target, op, tuple(rest))
            if op == "+":  # s - x + y
                inner = [_combined(target, part) for part in parts]
                held = [c for c in inner if c is not None and c.op == "+"]
                if len(held) == 1:
                    others = [p for p, c in zip(parts, inner, strict=True) if c is not held[0]]
                    return Combination(target, "+", (*held[0].values, *others))
        case Binary(op="-", left=left, right=right):
            if same(left, target):
                return Combination(target, "+", (right,))
            inner_left = _combined(target, left)
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
                    op_found = _selects(test, taken, target, negated=negated)
                    if op_found is not None:
                        return Combination(target, op_found, (taken,))
    return None


def _selects(test: Expr, value: Expr, target: Expr, *, negated: bool = False) -> str | None:
    """``>`` where ``value`` is taken because it is greater than ``target``, ``<`` where less."""
    if not isinstance(test, Binary) or test.op not in _ORDERS:
        return None
    op = test.op[0]
    if same(test.left, target) and same(test.right, value):
        op = "<" if op == ">" else ">"
    elif not (same(test.left, value) and same(test.right, target)):
        return None
    return {"<": ">", ">": "<"}[op] if negated else op


def _flattened(op: str, expression: Expr) -> list[Expr]:
    if isinstance(expression, Binary) and expression.op == op:
        return [*_flattened(op, expression.left), *_flattened(op, expression.right)]
    return [expression]


def _mentioned(target: Expr, expression: Expr) -> bool:
    return any(same(part, target) for part in every(expression))


def same(one: Expr, other: Expr) -> bool:
    """Whether two expressions are written alike, variable by variable."""
    match one, other:
        case Name(), Name():
            if one.variable is None or other.variable is None:
                return one.name == other.name and one.variable is other.variable
            return one.variable is other.variable
        case Literal(), Literal():
            return one.text == other.text
        case Member(), Member():
            alike = one.field == other.field and one.arrow == other.arrow
            return alike and same(one.base, other.base)
        case Cast(), Cast():
            return one.type == other.type and same(one.operand, other.operand)
        case (Binary(), Binary()) | (Unary(), Unary()):
            alike = one.op == other.op  # type: ignore[attr-defined]
            return alike and _all_same(one, other)
        case Call(), Call():
            alike = one.function == other.function and one.template == other.template
            return alike and _all_same(one, other)
        case Index(), Index():
            return _all_same(one, other)
    return False


def _all_same(one: Expr, other: Expr) -> bool:
    ours, theirs = one.parts, other.parts
    return len(ours) == len(theirs) and all(map(same, ours, theirs))
