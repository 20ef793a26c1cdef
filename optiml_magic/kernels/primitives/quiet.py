"""What a function changes: nothing but its own locals, and what it is lent, where it is quiet."""

from __future__ import annotations

from optiml_magic.kernels.expressions import (
    Assign,
    Call,
    Expr,
    Index,
    Lambda,
    Member,
    Name,
    Step,
    Unread,
    every,
)
from optiml_magic.kernels.functions import pure
from optiml_magic.kernels.primitives.base import Kernel
from optiml_magic.kernels.tree import Declare, Function, Variable, expressions, walk


def quiet(
    kernel: Kernel, e: Expr, own: set[Variable], lent: frozenset[Variable],
    within: tuple[Function, ...],
) -> bool:  # fmt: skip
    """Whether an expression of a function changes nothing but its locals and what it is lent."""
    match e:
        case Assign(target=target) | Step(target=target):
            return _own_place(target, own, lent)
        case Call(function=name, receiver=None, callee=None):
            called = kernel.unit.called(name, len(e.arguments))
            return pure(name) if not called else all(
                f not in within
                and all(
                    _own_place(given, own, lent)
                    for p, given in zip(f.parameters, e.arguments, strict=False)
                    if p.type.reference and not p.type.const
                )
                and all(
                    quiet(kernel, part, locals_of(f), frozenset(), (*within, f))
                    for part in expressions(f.body)
                )
                for f in called
            )  # fmt: skip
        case Call() | Lambda() | Unread():
            return False
    return True


def locals_of(function: Function) -> set[Variable]:
    declared = {v for s in walk(function.body) if isinstance(s, Declare) for v in s.variables}
    return declared | {*function.parameters}


def base_of(target: Expr) -> Expr:
    """The local of which something is a member or an element."""
    while isinstance(target, Index | Member):
        target = target.base
    return target


def _own_place(target: Expr, own: set[Variable], lent: frozenset[Variable]) -> bool:
    """Whether something is one of these locals, or in one."""
    base, inside = base_of(target), [e for e in every(target) if isinstance(e, Index)]
    if any(isinstance(e, Member) and e.arrow for e in every(target)):
        return False
    if not isinstance(base, Name) or base.variable is None or base.variable not in own:
        return False
    return not inside or base.variable in lent or base.variable.array
