"""What a round of a loop tests and adds, taken apart as it is written."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from optiml_magic.kernels.combining import same
from optiml_magic.kernels.expressions import (
    Binary,
    Call,
    Expr,
    Index,
    Member,
    Name,
    Unary,
    builtin,
    every,
)
from optiml_magic.kernels.tree import Block, Leave, Statement

_DENIED = {"<": ">=", ">=": "<", ">": "<=", "<=": ">", "==": "!=", "!=": "=="}


def added_to(target: Name, op: str, left: Expr, right: Expr) -> Expr | None:
    """What a target is combined with in a sum that has it on one side."""
    if same(target, left):
        return right
    return left if same(target, right) and op != "-" else None


def flat(statement: Statement) -> list[Statement]:
    if isinstance(statement, Block):
        return [inner for s in statement.body for inner in flat(s)]
    return [statement]


def way_out(statement: Statement | None) -> str:
    """How the last statement of a branch leaves; empty where it goes on."""
    own = flat(statement) if statement is not None else []
    last = own[-1] if own else None
    return last.kind if isinstance(last, Leave) else ""


def conjuncts(test: Expr, *, denied: bool) -> Iterator[tuple[Expr, bool]]:
    """The parts that all hold where a test does, or does not, each denied or not."""
    match test:
        case Unary(op="!", operand=operand):
            yield from conjuncts(operand, denied=not denied)
        case Binary(op="&&" | "||" as op, left=left, right=right) if (op == "||") == denied:
            yield from conjuncts(left, denied=denied)
            yield from conjuncts(right, denied=denied)
        case _:
            yield test, denied


def opposite(test: Expr) -> Expr | None:
    """The opposite of a comparison of whole numbers."""
    if isinstance(test, Binary) and test.op in _DENIED:
        return replace(test, op=_DENIED[test.op], span=None)
    return Unary(None, "!", test)


def loads(expr: Expr) -> bool:
    """Whether an expression may ask memory for something."""
    return any(
        isinstance(e, Index | Call)
        or (isinstance(e, Member) and not builtin(e))
        or (isinstance(e, Unary) and e.op == "*")
        for e in every(expr)
    )
