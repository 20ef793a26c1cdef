"""Heads of loops whose rounds threads share: where they end, and how far from one to the next."""

from __future__ import annotations

from optiml_magic.kernels.expressions import Assign, Binary, Expr, Name
from optiml_magic.kernels.primitives.places import bare
from optiml_magic.kernels.tree import Loop, Variable


def stride(loop: Loop, variable: Variable) -> Expr | None:
    """What is added to the counter from round to round; None where it moves otherwise."""
    match loop.update:
        case Assign(op="+=", target=target, value=value) if names(target, variable):
            return bare(value)
        case Assign(op="=", target=target, value=Binary(op="+", left=left, right=right)):
            sides = (left, right) if names(target, variable) else ()
            for one, other in (sides, sides[::-1]) if sides else ():
                if names(one, variable):
                    return bare(other)
    return None


def bound(loop: Loop, variable: Variable) -> Expr | None:
    """What the counter stays below."""
    match loop.test:
        case Binary(op="<" | "<=", left=left, right=right) if names(left, variable):
            return right
    return None


def names(expr: Expr, variable: Variable) -> bool:
    """Whether an expression is this local, converted or not."""
    plain = bare(expr)
    return isinstance(plain, Name) and plain.variable is variable
