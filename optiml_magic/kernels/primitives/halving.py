"""Trees of halves in shared memory: in each round one half of what is left takes the other in."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from optiml_magic.kernels.combining import Combination, combination
from optiml_magic.kernels.expressions import (
    Assign,
    Binary,
    Call,
    Expr,
    Index,
    Literal,
    Name,
    builtin,
    every,
)
from optiml_magic.kernels.primitives.places import bare
from optiml_magic.kernels.primitives.striding import names
from optiml_magic.kernels.tree import Blank, Block, Declare, Evaluate, If, Loop, Statement, Variable

Test = Callable[[Expr], bool]
_BY = {"/": 2, ">>": 1}


@dataclass(frozen=True)
class Tree:
    """The first element of ``array`` gets all of its elements combined by ``op``.

    ``halves`` are the numbers that stand for half of the block's width, ``store`` is what stores.
    """

    array: Variable
    op: str
    halves: tuple[Expr, ...]
    store: Expr


def tree_of(loop: Loop, width: int, is_thread: Test, is_width: Test) -> Tree | None:
    """The tree that a loop is, with a barrier in each round; None for any other loop."""
    head = loop.before.variables if isinstance(loop.before, Declare) else ()
    body = flat(loop.body)
    if loop.kind != "for" or len(head) != 1 or head[0].value is None or len(body) != 2:
        return None
    apart, start = head[0], bare(head[0].value)
    numbers = all(isinstance(part, Literal | Binary) for part in every(start))
    halved = isinstance(start, Literal) and start.value == width // 2
    if not (halved or _half(start, is_width)) or not _halves(loop, apart):
        return None
    branch = next((s for s in body if isinstance(s, If)), None)
    waits = [s for s in body if isinstance(s, Evaluate) and _waits(s.expression)]
    if branch is None or len(waits) != 1 or branch.other or branch.before:
        return None
    if not _before(branch.test, apart, is_thread):
        return None
    inside = flat(branch.then)
    only = inside[0].expression if len(inside) == 1 and isinstance(inside[0], Evaluate) else None
    if not isinstance(only, Assign):
        return None
    combined = one_more(only)
    if combined is None:
        return None
    own, other = combined.target, bare(combined.values[0])
    if not isinstance(own, Index) or not isinstance(other, Index):
        return None
    array, same = _array(own), _array(other)
    if array is None or array is not same or not is_thread(bare(own.index)):
        return None
    if not _sum(bare(other.index), apart, is_thread):
        return None
    return Tree(array, combined.op, (start,) if numbers else (), only)


def one_more(assign: Assign) -> Combination | None:
    """How an assignment combines one value into a place, none of the two taken from the other."""
    found = combination(assign)
    value = assign.value
    taken = assign.op == "-=" or (isinstance(value, Binary) and value.op == "-")
    if found is None or len(found.values) != 1 or found.carried or (taken and found.op == "+"):
        return None
    return found


def block_of(expr: Expr, width: int) -> bool:
    """Whether this is the block's width, or the number that it is."""
    known = isinstance(expr, Literal) and expr.value == width
    return known or builtin(expr) == "blockDim.x"


def _half(expr: Expr, is_width: Test) -> bool:
    match expr:
        case (
            Binary(op="/", left=whole, right=Literal(value=2))
            | Binary(op=">>", left=whole, right=Literal(value=1))
        ):
            return is_width(bare(whole))
    return False


def _halves(loop: Loop, apart: Variable) -> bool:
    match loop.update:
        case (
            Assign(op="/=", target=target, value=Literal(value=2))
            | Assign(op=">>=", target=target, value=Literal(value=1))
        ):
            less = names(target, apart)
        case Assign(op="=", target=target, value=value):
            less = names(target, apart) and _half(bare(value), lambda e: names(e, apart))
        case _:
            less = False
    match loop.test:
        case (
            Binary(op=">", left=left, right=Literal(value=0))
            | Binary(op=">=", left=left, right=Literal(value=1))
        ):
            return less and names(bare(left), apart)
        case Name(variable=variable):
            return less and variable is apart
    return False


def _before(test: Expr, apart: Variable, is_thread: Test) -> bool:
    match test:
        case Binary(op="<", left=left, right=right) | Binary(op=">", left=right, right=left):
            return is_thread(bare(left)) and names(bare(right), apart)
    return False


def _sum(index: Expr, apart: Variable, is_thread: Test) -> bool:
    match index:
        case Binary(op="+", left=left, right=right):
            sides = bare(left), bare(right)
            return any(is_thread(a) and names(b, apart) for a, b in (sides, sides[::-1]))
    return False


def _array(expr: Index) -> Variable | None:
    base = expr.base
    known = isinstance(base, Name) and base.variable is not None
    return base.variable if known and base.variable.storage == "shared" else None  # type: ignore[attr-defined]


def _waits(expr: Expr) -> bool:
    return isinstance(expr, Call) and expr.function == "__syncthreads"


def flat(statement: Statement) -> list[Statement]:
    """The statements of a block, or the one that stands in its place."""
    body = statement.body if isinstance(statement, Block) else (statement,)
    return [s for s in body if not isinstance(s, Blank)]
