"""Locals by their own names, where references stood for them: ``float& s = sum;``.

What a primitive asks of a local, it asks of one variable then.
"""

from __future__ import annotations

from optiml_magic.kernels.editing import Node, edited
from optiml_magic.kernels.expressions import Lambda, Name, Unread, every
from optiml_magic.kernels.primitives.base import Kernel, NotLegal, primitive
from optiml_magic.kernels.tree import Declare, Function, Variable, Verbatim, expressions, walk


@primitive
def direct(kernel: Kernel) -> Kernel:
    """The kernel without its references to locals and parameters; there must be some."""
    function = kernel.function
    for statement in walk(function.body):
        if isinstance(statement, Verbatim):
            raise NotLegal(f"{statement.reason} is not read", statement.line)
    meant: dict[Variable, Variable] = {}
    swaps: dict[Node, Node | None] = {}
    for statement in walk(function.body):
        match statement:
            case Declare(variables=(Variable(value=Name(variable=Variable() as local)) as other,)):
                local = meant.get(local, local)
                if _stands_for(other, local) and _everywhere(function, other, local):
                    meant[other] = local
                    swaps[statement] = None
    if not meant:
        raise NotLegal("no reference stands for a local")
    for expression in expressions(function.body):
        if isinstance(expression, Name) and expression.variable in meant:
            local = meant[expression.variable]
            swaps[expression] = Name(None, local.name, local)
    return kernel.rewritten(edited(function.body, swaps))


def _stands_for(other: Variable, local: Variable) -> bool:
    """Whether one is bound to the other itself, and not to a copy in another type."""
    same = other.type.base in ("auto", local.type.base) and other.type.depth == local.type.depth
    return other.type.reference and not local.type.reference and same


def _everywhere(function: Function, other: Variable, local: Variable) -> bool:
    """Whether the local's name means it wherever the reference stands, and can be put there."""
    declared = [*function.parameters]
    for statement in walk(function.body):
        declared += statement.variables if isinstance(statement, Declare) else ()
    unread = (
        part
        for expression in expressions(function.body)
        if isinstance(expression, Lambda | Unread)
        for part in every(expression)
    )
    hidden = any(isinstance(part, Name) and part.variable is other for part in unread)
    return [v.name for v in declared].count(local.name) == 1 and not hidden
