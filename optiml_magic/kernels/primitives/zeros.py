"""What is nothing where everything that is loaded is zero: rounds behind the last add nothing."""

from __future__ import annotations

from optiml_magic.kernels.expressions import (
    Binary,
    Call,
    Cast,
    Expr,
    Literal,
    Member,
    Name,
    Unary,
)
from optiml_magic.kernels.reading import Reduction
from optiml_magic.kernels.tree import Variable
from optiml_magic.kernels.types import named
from optiml_magic.source.dtypes import scalar_dtype

FROM_ZERO = frozenset("+|^")
_KEEPING_ZERO = frozenset({"fabsf", "fabs", "abs", "sqrtf", "sqrt", "__half2float", "__float2half",
                           "__int2float_rn", "float", "double"})  # fmt: skip


def nothing(kind: str) -> str:
    """A value of a type whose bits are all zero; types of two words have no braces."""
    number = scalar_dtype(kind) is not None and named(kind, {}).kind != "complex"
    return f"({kind})0" if " " in kind or number else f"{kind}{{}}"


def adds_nothing(found: Reduction, loads: set[Expr], lets: dict[Variable, Expr | None]) -> bool:
    """Whether a reduction stays as it is in a round in which all that the loop loads is zero."""
    zero = all(is_zero(value, loads, lets) for value in found.values)
    return found.op in FROM_ZERO and zero and not found.counts


def is_zero(expr: Expr, loads: set[Expr], lets: dict[Variable, Expr | None]) -> bool:
    """Whether an expression is zero where all that the loop loads is."""
    if expr in loads:
        return True
    match expr:
        case Literal(value=value):
            return value == 0
        case Name(variable=variable) if variable in lets:
            held = lets[variable]
            return held is not None and is_zero(held, loads, lets)
        case Member(base=operand, arrow=False):
            return is_zero(operand, loads, lets)
        case Cast(operand=operand) | Unary(op="-" | "+", operand=operand):
            return is_zero(operand, loads, lets)
        case Binary(op="*", left=left, right=right):
            return is_zero(left, loads, lets) or is_zero(right, loads, lets)
        case Binary(op="+" | "-", left=left, right=right):
            return is_zero(left, loads, lets) and is_zero(right, loads, lets)
        case Call(function=name, arguments=(only,)) if name in _KEEPING_ZERO:
            return is_zero(only, loads, lets)
        case Call(function="fmaf" | "fma" | "__fmaf_rn", arguments=(a, b, c)):
            product = is_zero(a, loads, lets) or is_zero(b, loads, lets)
            return product and (is_zero(c, loads, lets) or isinstance(c, Name))
    return False
