"""A function that combines a local with a value stands where it is called: ``m = maxf(m, v)``.

What a round does with a local that it hands on is then seen, in whatever function it was put: one
that returns what becomes of the local, or one that is given a reference to it.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

from optiml_magic.kernels.editing import Node, edited, lines, text
from optiml_magic.kernels.expressions import Assign, Call, Choice, Expr, Literal, Name, Step, every
from optiml_magic.kernels.primitives.base import Kernel, NotLegal, primitive
from optiml_magic.kernels.primitives.effects import loops_in
from optiml_magic.kernels.primitives.moving_names import means_the_same
from optiml_magic.kernels.primitives.places import bare
from optiml_magic.kernels.tree import (
    Block,
    Evaluate,
    Function,
    If,
    Leave,
    Statement,
    Variable,
    expressions,
    walk,
)
from optiml_magic.kernels.types import CType, named


@primitive
def unfolded(kernel: Kernel) -> Kernel:
    """The kernel with such calls of its loops written out."""
    swaps: dict[Node, Node | tuple[Statement, ...] | None] = {}
    taken: list[str] = []
    for loop in loops_in(kernel.function.body):
        for statement in walk(loop.body):
            if isinstance(statement, Evaluate) and statement not in swaps:
                made = _written(kernel, statement, taken)
                if made is not None:
                    swaps[statement] = made
    if not swaps:
        raise NotLegal("no function of its own changes what its rounds hand on")
    return kernel.rewritten(edited(kernel.function.body, swaps))


def _written(kernel: Kernel, statement: Evaluate, taken: list[str]) -> tuple[Statement, ...] | None:
    """What stands for a call; None where it is none of these."""
    match statement.expression:
        case Assign(op="=", target=Name(variable=Variable() as own), value=value):
            call = bare(value)
            if not isinstance(call, Call) or call is not value:
                return None
            if not any(isinstance(a, Name) and a.variable is own for a in call.arguments):
                return None
            function = called_alone(kernel, call)
            result = _result(function.body.body) if function is not None else None
            if function is None or result is None:
                return None
            if not _keeps(kernel, function, call, own, result):
                return None
            bound = _bound(kernel, function, call, [result], taken)
            if bound is None:
                return None
            before, swaps = bound
            new = replace(statement.expression, value=edited(result, swaps), span=None)
            return (*before, Evaluate(None, statement.line, new))
        case Call() as call:
            function = called_alone(kernel, call)
            if function is None or function.result.base != "void" or function.result.depth:
                return None
            body = function.body.body
            if not body or not any(p.type.reference for p in function.parameters):
                return None
            inside = [s for one in body for s in walk(one)]
            if not all(isinstance(s, Evaluate | If | Block) for s in inside):
                return None
            bound = _bound(kernel, function, call, [e for s in body for e in expressions(s)], taken)
            if bound is None:
                return None
            before, swaps = bound
            return (*before, *(edited(one, swaps) for one in body))
    return None


def called_alone(kernel: Kernel, call: Call) -> Function | None:
    """The one function of the text that a plain call means."""
    if call.receiver is not None or call.callee is not None or call.template:
        return None
    found = kernel.unit.called(call.function, len(call.arguments))
    alone = len(found) == 1 and not found[0].method and not found[0].kernel
    if not alone or len(found[0].parameters) != len(call.arguments):
        return None
    return found[0] if means_the_same(kernel, found[0]) else None


def _result(body: Sequence[Statement]) -> Expr | None:
    """What a function returns, as one expression."""
    match body:
        case (Leave(kind="return", value=Expr() as value),):
            return value
        case (If(before=None, test=test, then=then, other=None), Leave(kind="return", value=last)):
            first = _result(_inside(then))
            return Choice(None, test, first, last) if first and last else None
        case (If(before=None, test=test, then=then, other=Statement() as other),):
            sides = _result(_inside(then)), _result(_inside(other))
            return Choice(None, test, sides[0], sides[1]) if sides[0] and sides[1] else None
    return None


def _inside(statement: Statement) -> tuple[Statement, ...]:
    return statement.body if isinstance(statement, Block) else (statement,)


def _keeps(kernel: Kernel, function: Function, call: Call, own: Variable, result: Expr) -> bool:
    """Whether a result is of the local's type already: nothing is converted on the way."""
    kind = _type(kernel, own)
    if function.result.base in {p.name for p in function.template}:
        return any(
            _given(kernel, argument) == kind
            for parameter, argument in zip(function.parameters, call.arguments, strict=True)
            if parameter.type.base == function.result.base
        )
    types = {p.name: named(p.type.base, kernel.unit.aliases) for p in function.parameters}
    named_ = [e for e in every(result) if isinstance(e, Name) and e.variable is not None]
    return named(function.result.base, kernel.unit.aliases) == kind and all(
        types.get(e.name) == kind for e in named_
    )


def _bound(
    kernel: Kernel, function: Function, call: Call, inside: Iterable[Expr], taken: list[str]
) -> tuple[list[Statement], dict[Node, Node]] | None:
    """Locals for what is given, and what stands for the parameters in a function's expressions."""
    whole = [part for expr in inside for part in every(expr)]
    if any(isinstance(e, Assign | Step) and not _of_reference(e.target) for e in whole):
        return None
    generic = {p.name for p in function.template if p.is_type}
    before: list[Statement] = []
    swaps: dict[Node, Node] = {}
    for parameter, argument in zip(function.parameters, call.arguments, strict=True):
        kind = named(parameter.type.base, kernel.unit.aliases)
        given = _given(kernel, argument)
        same = parameter.type.base in generic or kind == given
        if parameter.array or parameter.type.depth or given is None or not same:
            return None
        if parameter.type.reference and not parameter.type.const:
            if not isinstance(argument, Name):
                return None
            new = argument.name
        elif isinstance(argument, Name | Literal):
            new = kernel.spelled(argument)
        else:
            new = kernel.fresh(parameter.name, *taken)
            taken.append(new)
            shown = kernel.spelled(argument)
            before.append(lines(f"const {given.name} {new} = {shown};"))
        swaps |= {e: text(new) for e in whole if isinstance(e, Name) and e.variable is parameter}
    return before, swaps


def _given(kernel: Kernel, argument: Expr) -> CType | None:
    """The type of what a function is given; None for an array, or where it is not known."""
    if isinstance(argument, Name) and argument.variable is not None:
        return None if argument.variable.array else _type(kernel, argument.variable)
    return kernel.reading.types.get(argument)


def _of_reference(target: Expr) -> bool:
    return isinstance(target, Name) and target.variable is not None and (
        target.variable.type.reference and not target.variable.type.const
    )  # fmt: skip


def _type(kernel: Kernel, variable: Variable) -> CType:
    """What a local is; for a pointer what it leads to, which no plain number is."""
    kind = named(variable.type.base, kernel.unit.aliases)
    return replace(kind, depth=variable.type.depth)
