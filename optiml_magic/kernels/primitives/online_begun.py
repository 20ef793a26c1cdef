"""What a maximum begins with, and what is left where no score is greater.

A maximum that begins with minus infinity, where all scores are minus infinity too, makes sums that
are no numbers. In one pass it begins with the least number, and these sums are 0, so that all that
is asked for of them has to be no number for that reason: 0 / 0.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from collections.abc import Set as AbstractSet

from optiml_magic.kernels.expressions import (
    Assign,
    Binary,
    Cast,
    Choice,
    Expr,
    Index,
    Literal,
    Name,
    every,
)
from optiml_magic.kernels.primitives.base import Kernel, NotLegal
from optiml_magic.kernels.primitives.effects import parted
from optiml_magic.kernels.primitives.online_terms import Factors, factors
from optiml_magic.kernels.primitives.passes import Passes
from optiml_magic.kernels.primitives.passes_values import floating
from optiml_magic.kernels.primitives.roles import key_of
from optiml_magic.kernels.tree import Evaluate, Loop, Variable, expressions

INFINITE = frozenset({"-INFINITY", "-CUDART_INF_F", "-CUDART_INF", "-HUGE_VALF", "-HUGE_VAL"})
_MOST = {"float": 3.4028234e38, "double": 1.7976931e308}
_NAMED = {"FLT_MAX": frozenset({"float", "double"}), "DBL_MAX": frozenset({"double"})}


def leaves(kernel: Kernel, expr: Expr) -> Iterator[Expr]:
    """What a choice of numbers may be."""
    match expr:
        case Choice(then=then, other=other):
            yield from leaves(kernel, then)
            yield from leaves(kernel, other)
        case Cast(operand=operand) if floating(kernel, expr):
            yield from leaves(kernel, operand)
        case _:
            yield expr


def is_finite(expr: Expr, kind: str) -> bool:
    """Whether a constant is a number of its type, and no infinity."""
    key = key_of(expr).removeprefix("-")
    if key in _NAMED:
        return kind in _NAMED[key]
    try:
        return float(key) <= _MOST.get(kind, 0.0)
    except ValueError:
        return False


def check_lost(passes: Passes, late: Mapping[Variable, Factors]) -> None:
    """Raise NotLegal where something may be asked for that is a number in one pass alone.

    ``late`` are the factors of each sum that are known behind the passes.
    """
    kernel, effects = passes.kernel, passes.effects
    body = kernel.function.body
    sums = {one.target for one in passes.sums}
    inverse = {v for v in effects.lasting if _divided(v.value) in sums}
    loops = [passes.inner(loop) or loop for at in passes.passes
             if isinstance(loop := passes.own[at], Loop)]  # fmt: skip
    inside = {e for loop in loops for e in effects.inside(loop)}
    outside = [e for e in expressions(body) if e not in inside]
    free = {v for v, (over, under) in late.items()
            if {*map(_named, under)} & sums or {*map(_named, over)} & inverse}  # fmt: skip
    known = {e for v in inverse if v.value is not None for e in every(v.value)}
    known |= _divided_all(passes, sums, inverse)
    for expr in outside:
        match expr:
            case Assign(op="=", target=Name() as target):
                known.add(target)
            case Assign(op="=", target=Index(base=Name() as target)):
                known.add(target)
            case Binary(op="*" | "/") if floating(kernel, expr):
                over, under = list[Expr](), list[Expr]()
                for factor, divides in factors(kernel, expr):
                    (under if divides else over).append(factor)
                above = {*map(_named, over)}
                if above & sums and ({*map(_named, under)} & sums or above & inverse):
                    known |= {e for part in (*over, *under) for e in every(part)
                              if _named(part) in sums | inverse}  # fmt: skip
    asked = {*sums, *inverse, passes.most} - free
    for expr in outside:
        if isinstance(expr, Name) and expr not in known and expr.variable in asked - {None}:
            raise NotLegal(f"`{expr.name}` may be asked for where no score counts")


def _divided_all(
    passes: Passes, sums: AbstractSet[Variable], inverse: AbstractSet[Variable]
) -> set[Expr]:
    """The names behind the passes that ask for a row which was divided, all of it, by a sum.

    The first statement that names the row is such a loop, ``for (d) acc[d] /= sum;``.
    """
    kernel, found = passes.kernel, set[Expr]()
    behind = passes.own[passes.last + 1 :]
    rounds = {o.target: kernel.axes()[o.elements].trips for o in passes.sums if o.elements}
    for row in (one for one in sums if one.array):
        asking = [s for s in behind if row in passes.effects.mentions(s)]
        loop = asking[0] if asking else None
        if not isinstance(loop, Loop) or not passes.is_elements(loop):
            continue
        axis, steps = kernel.axes()[loop], [*parted(loop.body)]
        match [s.expression for s in steps if isinstance(s, Evaluate)]:
            case [Assign(op="/=" | "*=" as op, target=Index(
                base=Name(variable=own), index=Name(variable=at)
            ), value=Name(variable=by))] if own is row and at is axis.variable:  # fmt: skip
                enough = len(steps) == 1 and (axis.trips or 0) >= (rounds.get(row) or 0)
                if enough and by in (sums if op == "/=" else inverse):
                    found |= {e for e in passes.effects.inside(loop)
                              if _named(e) in sums | inverse}  # fmt: skip
                    found |= {e for s in asking for e in passes.effects.inside(s)
                              if isinstance(e, Name) and e.variable is row}  # fmt: skip
    return found


def _named(expr: Expr) -> Variable | None:
    """The local of which a factor is the value, or an element."""
    match expr:
        case Name(variable=variable) | Index(base=Name(variable=variable)):
            return variable
    return None


def _divided(value: Expr | None) -> Variable | None:
    """The local by which a number is divided."""
    match value:
        case Binary(op="/", left=Literal(value=int() | float() as one), right=Name() as name):
            return name.variable if one else None
    return None
