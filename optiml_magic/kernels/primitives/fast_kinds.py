"""What has a fast form, and of which kind it is: ``fast`` writes these forms."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Literal as Word

from optiml_magic.kernels.expressions import (
    Assign,
    Binary,
    Call,
    Cast,
    Expr,
    Index,
    Literal,
    Member,
    Name,
    Step,
    Unary,
    every,
)
from optiml_magic.kernels.functions import bare
from optiml_magic.kernels.primitives.base import Kernel

Kind = Word["functions", "tanh", "roots", "divisions", "powers", "turns", "sums"]
KINDS: tuple[Kind, ...] = ("functions", "tanh", "roots", "divisions", "powers", "turns", "sums")
ROOTS = {"sqrtf": "fast_sqrt", "sqrt": "fast_sqrt", "rsqrtf": "fast_rsqrt", "rsqrt": "fast_rsqrt"}
BASES = {
    "expf": math.e, "exp": math.e, "__expf": math.e, "exp2f": 2.0, "exp2": 2.0,
    "exp10f": 10.0, "exp10": 10.0, "__exp10f": 10.0,
}  # fmt: skip
FAST = {
    "logf": "__logf", "log": "__logf", "log2f": "__log2f", "log2": "__log2f",
    "log10f": "__log10f", "log10": "__log10f",
}  # fmt: skip
TURNS = {"sinf": "sinpif", "sin": "sinpif", "cosf": "cospif", "cos": "cospif"}
_NEAR = 1e-6  # of itself, by which a constant that stands for half turns may be off: ours
_MOST, _SHORT = 16, 3  # the greatest power that becomes products, and that repeats its base: ours


def half_turns(angle: Expr) -> Expr | None:
    """What times pi is an angle, ``x + x`` of ``2.0f * 3.14159265f * x``; None where nothing is."""
    match angle:
        case Binary(op="/", left=left, right=right):
            above = half_turns(left)
            return Binary(None, "/", above, right) if above is not None else None
        case Unary(op="-", operand=operand):
            inner = half_turns(operand)
            return Unary(None, "-", inner) if inner is not None else None
    factors = [*_factors(angle)]
    told = [e.value for e in factors if isinstance(e, Literal)]
    constants = [value for value in told if isinstance(value, int | float)]
    others = [e for e in factors if not isinstance(e, Literal)]
    if not constants or len(constants) != len(told) or not others:
        return None
    turns = math.prod(constants) / math.pi
    near = round(2 * turns) / 2
    if not near or abs(turns - near) > _NEAR * abs(near):
        return None
    found: Expr = Literal(None, f"{near}f", near)
    for factor in others:
        found = Binary(None, "*", found, factor)
    return found


def _factors(e: Expr) -> Iterator[Expr]:
    match e:
        case Binary(op="*", left=left, right=right):
            yield from _factors(left)
            yield from _factors(right)
        case Unary(op="-", operand=Literal(value=value, text=text)) if value is not None:
            yield Literal(None, f"-{text}", -value)
        case _:
            yield e


def kind_of(kernel: Kernel, e: Expr) -> Kind | None:
    """The kind that an expression is of, if any."""
    match e:
        case Call(function=name, arguments=(only,)):
            known = of_headers(kernel, e) and is_single(kernel, only)
            if known and (bare(name) in FAST or bare(name) in BASES):
                return "functions"
            if known and bare(name) in ROOTS:
                return "roots"
            if known and bare(name) in TURNS and half_turns(only) is not None:
                return "turns"
            return "tanh" if known and bare(name) in ("tanhf", "tanh") else None
        case Call(function=name, arguments=(base, power)):
            if bare(name) not in ("powf", "pow") or not of_headers(kernel, e):
                return None
            value = power.value if isinstance(power, Literal) else None
            if value is not None and is_power(value):
                moves = any(isinstance(part, Assign | Step) for part in every(base))
                plain = _plain(base) or (value > _SHORT and not moves)
                return "powers" if plain and _same_type(kernel, e, base) else None
            whole = bare(name) == "powf" and float_sides(kernel, power)
            return (
                "functions"
                if is_single(kernel, base) and (whole or is_single(kernel, power))
                else None
            )
        case Binary(op="+" | "-") if is_single(kernel, e):
            return "sums" if beside(kernel, e) else None
        case Binary(op="/", left=Literal(), right=Literal()):
            return None
        case Binary(op="/", left=left, right=right) if is_single(kernel, e):
            return "divisions" if _worth(right) and float_sides(kernel, left, right) else None
        case Assign(op="/=", target=Name() as left, value=right) if is_single(kernel, left):
            return "divisions" if _worth(right) and float_sides(kernel, left, right) else None
    return None


def terms(kernel: Kernel, e: Expr) -> list[tuple[str, Expr]]:
    """What a sum of floats adds and subtracts, in this order."""
    match e:
        case Binary(op="+" | "-" as sign, left=left, right=right) if is_single(kernel, e):
            return [*terms(kernel, left), (sign, right)]
    return [("+", e)]


def beside(kernel: Kernel, e: Expr) -> int:
    """Which term of a sum that begins with two products is none; 0 where all of them are."""
    every_term = terms(kernel, e)
    others = [
        at
        for at, (sign, term) in enumerate(every_term)
        if not (isinstance(term, Binary) and term.op == "*" and is_single(kernel, term))
        if sign == "+" or is_single(kernel, term) or isinstance(term, Literal)
    ]
    return others[0] if others and others[0] > 1 else 0


def is_single(kernel: Kernel, e: Expr) -> bool:
    """Whether an expression is a float."""
    kind = kernel.reading.types.get(e)
    return kind is not None and kind.floating and kind.size == 4


def float_sides(kernel: Kernel, *sides: Expr) -> bool:
    """Whether nothing is computed in double: a whole number is converted to float."""
    kinds = [kernel.reading.types.get(side) for side in sides]
    return all(k is not None and (k.integral or (k.floating and k.size == 4)) for k in kinds)


def _same_type(kernel: Kernel, one: Expr, other: Expr) -> bool:
    kinds = [kernel.reading.types.get(e) for e in (one, other)]
    return kinds[0] is not None and kinds[0].floating and kinds[0] == kinds[1]


def of_headers(kernel: Kernel, call: Call) -> bool:
    """Whether a function is that of CUDA's headers, not one of the text."""
    return not kernel.unit.called(call.function, len(call.arguments))


def _worth(divisor: Expr) -> bool:
    """A division by a power of two is a product already."""
    value = divisor.value if isinstance(divisor, Literal) else None
    return not isinstance(value, int | float) or not value or math.frexp(value)[0] != 0.5


def _plain(e: Expr) -> bool:
    """Whether to compute it twice does nothing twice."""
    kept = (Name, Literal, Index, Member, Binary, Unary, Cast)
    return all(isinstance(part, kept) for part in every(e))


def is_power(value: float) -> bool:
    """Whether a power becomes products."""
    return value in (0.5, 1.5) or (value in range(2, _MOST + 1))
