"""Arrays of its own that a kernel lends to a function, which asks for their elements alone."""

from __future__ import annotations

from collections.abc import Container, Iterator

from optiml_magic.kernels.expressions import Call, Expr, Index, Lambda, Name, Unary, Unread, every
from optiml_magic.kernels.primitives.base import Kernel
from optiml_magic.kernels.primitives.unfolded import called_alone
from optiml_magic.kernels.tree import (
    Declare,
    Function,
    Statement,
    Variable,
    Verbatim,
    expressions,
    walk,
)
from optiml_magic.kernels.types import named


def lent_to(
    kernel: Kernel, function: Function, statement: Statement, call: Call
) -> frozenset[Variable]:
    """The parameters by which a function has a local array, and asks for its elements alone.

    Nothing else leads to the array, and nothing else in the statement asks for it, so that it does
    not matter when the function changes it.
    """
    return frozenset(
        parameter for parameter, argument in zip(function.parameters, call.arguments, strict=True)
        if _lends(kernel, function, parameter, argument)
        and isinstance(argument, Name) and argument.variable is not None
        and sum(isinstance(e, Name) and e.variable is argument.variable
                for top in statement.expressions for e in every(top)) == 1
        and _led_to(kernel, argument.variable)
    )  # fmt: skip


def _lends(kernel: Kernel, function: Function, parameter: Variable, argument: Expr) -> bool:
    """Whether a parameter is an array of the kernel's own, of which the function indexes elements.

    It does no more; the array is a local one, or the block shares it.
    """
    array = argument.variable if isinstance(argument, Name) else None
    own = array is not None and array.storage in ("local", "shared", "dynamic")
    if array is None or not own or len(array.extents) != 1:
        return False
    leads = parameter.type.depth + len(parameter.extents) == 1 and not parameter.type.reference
    kinds = [named(one.type.base, kernel.unit.aliases) for one in (parameter, array)]
    plain = not array.type.depth and not array.type.volatile and not parameter.type.volatile
    return leads and plain and kinds[0] == kinds[1] and indexed_alone(kernel, function, parameter)


def indexed_alone(
    kernel: Kernel, function: Function, array: Variable, also: Container[Expr] = ()
) -> bool:
    """Whether a function asks for elements of an array and no more, but for names in ``also``.

    Then nothing else leads to the array: no pointer, and no reference to an element that lasts.
    """
    inside, statements = [*expressions(function.body)], [*walk(function.body)]
    if any(isinstance(s, Verbatim) for s in statements):
        return False
    bases = {e.base for e in inside if isinstance(e, Index)}
    calls = [e for e in inside if isinstance(e, Call)]
    brief = {a for call in calls for a in _dereferenced(kernel, call)}
    led = [e.operand for e in inside if isinstance(e, Unary) and e.op == "&" and e not in brief]
    led += [v.value for s in statements if isinstance(s, Declare) for v in s.variables
            if v.type.reference and v.value is not None]  # fmt: skip
    led += [a for call in calls for a in _referred(kernel, call)]
    if any(isinstance(e, Name) and e.variable is array for one in led for e in every(one)):
        return False
    return not any(isinstance(e, Lambda | Unread) for e in inside) and all(
        e in bases or e in also for e in inside if isinstance(e, Name) and e.variable is array
    )


def _referred(kernel: Kernel, call: Call) -> Iterator[Expr]:
    """What a function is given by a reference, where that may last: others are void and simple."""
    for function in kernel.unit.called(call.function, len(call.arguments)):
        inside = [*expressions(function.body)]
        leads = any(isinstance(e, Call) or (isinstance(e, Unary) and e.op == "&") for e in inside)
        if leads or function.result.base != "void" or function.result.depth:
            for parameter, argument in zip(function.parameters, call.arguments, strict=False):
                if parameter.type.reference:
                    yield argument


def _dereferenced(kernel: Kernel, call: Call) -> Iterator[Expr]:
    """The pointers that a function of the text is given, and only asks where they lead, ``*p``."""
    function = called_alone(kernel, call)
    if function is not None:
        inside = [*expressions(function.body)]
        asked = {e.operand for e in inside if isinstance(e, Unary) and e.op == "*"}
        spoken = any(isinstance(e, Lambda | Unread) or (isinstance(e, Unary) and e.op == "&")
                     for e in inside)  # fmt: skip
        referring = any(v.type.reference for s in walk(function.body) if isinstance(s, Declare)
                        for v in s.variables)  # fmt: skip
        unread = any(isinstance(s, Verbatim) for s in walk(function.body))
        for parameter, argument in zip(function.parameters, call.arguments, strict=True):
            own = {e for e in inside if isinstance(e, Name) and e.variable is parameter}
            plain = parameter.type.depth == 1 and not parameter.type.reference
            if plain and own <= asked and not (spoken or referring or unread):
                yield argument


def _led_to(kernel: Kernel, array: Variable) -> bool:
    """Whether a local array is indexed, or lent to functions that index it, and no more."""
    lent = set[Expr]()
    for call in (e for e in expressions(kernel.function.body) if isinstance(e, Call)):
        function = called_alone(kernel, call)
        if function is not None:
            lent |= {a for p, a in zip(function.parameters, call.arguments, strict=True)
                     if _lends(kernel, function, p, a)}  # fmt: skip
    return indexed_alone(kernel, kernel.function, array, lent)
