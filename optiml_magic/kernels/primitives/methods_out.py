"""Short methods of a local structure stand where they are called: ``A.get(i, k)``.

Each returns one expression or is one statement, over the members of its object and its arguments:
``A.data[i * A.cols + k]``. What a kernel loads and stores then stands in its own text.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from optiml_magic.kernels.editing import Node, edited
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
from optiml_magic.kernels.functions import bare, pure
from optiml_magic.kernels.methods import called_of, fields_of, method_of, only_method
from optiml_magic.kernels.primitives.base import Kernel, NotLegal, primitive
from optiml_magic.kernels.primitives.effects import Effects, declared_in
from optiml_magic.kernels.primitives.moving_names import means_the_same
from optiml_magic.kernels.primitives.places import tops
from optiml_magic.kernels.tree import Evaluate, Function, Leave, Statement, Variable, Verbatim, walk
from optiml_magic.kernels.types import named

_PLAIN = (Binary, Cast, Literal, Member, Name, Unary, Index)


@primitive
def methods_out(kernel: Kernel) -> Kernel:
    """The kernel with such methods of its locals and parameters written out; there must be one."""
    body = kernel.function.body
    if any(isinstance(s, Verbatim) for s in walk(body)):
        raise NotLegal("what a statement of it does is not read")
    effects, swaps = Effects(kernel), dict[Node, Node]()
    for top in tops(body):
        for call in (e for e in every(top) if isinstance(e, Call)):
            made = _written(kernel, effects, call, alone=call is top)
            if made is not None:
                swaps[call] = made
    if not swaps:
        raise NotLegal("no short method of a local is called")
    found = kernel.rewritten(edited(body, swaps))
    again = methods_out(found)  # of one in the arguments of another
    return again if isinstance(again, Kernel) else found


def _written(kernel: Kernel, effects: Effects, call: Call, *, alone: bool) -> Expr | None:
    """What a call does as an expression; None where it is none of these."""
    place, name = called_of(call)
    if not isinstance(place, Name) or place.variable is None or place.variable in effects.changing:
        return None
    kind, count = named(place.variable.type.base, kernel.unit.aliases), len(call.arguments)
    written = only_method(kernel.unit, name, count, kind)
    method = method_of(kernel.unit, place, name, count, kind, references=True)
    inner = _only(method, alone=alone) if method is not None else None
    if written is None or method is None or inner is None or not _alone(kernel, place):
        return None
    if not means_the_same(kernel, written, fields_of(kernel.unit, kind)):
        return None
    given = _given(kernel, method, call)
    changed = {
        e.target.variable for e in every(inner)
        if isinstance(e, Assign | Step) and isinstance(e.target, Name)
    }  # fmt: skip
    if given is None or changed & given.keys() or _is_late(inner, given):
        return None
    swaps: dict[Node, Node] = {
        e: given[e.variable] for e in every(inner) if isinstance(e, Name) and e.variable in given
    }
    made = edited(inner, swaps)
    return _returned(kernel, method, inner, made, alone=alone) if isinstance(made, Expr) else None


def _returned(
    kernel: Kernel, method: Function, inner: Expr, made: Expr, *, alone: bool
) -> Expr | None:
    """What a method makes, of the type that it returns; None where that is not known."""
    result = named(method.result.base, kernel.unit.aliases)
    result = replace(result, depth=result.depth + method.result.depth)
    if alone or method.result.reference or kernel.reading.types.get(inner) == result:
        return made
    known = result.kind in ("int", "float", "bool") and not result.depth
    return Cast(None, result.name, made) if known else None


def _is_late(inner: Expr, given: Mapping[Variable, Expr]) -> bool:
    """Whether an argument that loads may be computed behind what its method does to memory."""
    loads = any(
        isinstance(e, Index) or (isinstance(e, Member) and e.arrow)
        or (isinstance(e, Unary) and e.op == "*")
        for argument in given.values() for e in every(argument)
    )  # fmt: skip
    return loads and any(
        isinstance(e, Assign | Step) or (isinstance(e, Call) and not pure(bare(e.function)))
        for e in every(inner) if e is not inner
    )  # fmt: skip


def _alone(kernel: Kernel, place: Name) -> bool:
    """Whether no other local or parameter has the name of the object."""
    every_one = (*declared_in(kernel.function.body), *kernel.function.parameters)
    return [v.name for v in every_one].count(place.name) == 1


def _given(kernel: Kernel, method: Function, call: Call) -> dict[Variable, Expr] | None:
    """The arguments by parameter, converted as they would be; None where one does more."""
    if len(call.arguments) != len(method.parameters):
        return None
    found: dict[Variable, Expr] = {}
    for formal, argument in zip(method.parameters, call.arguments, strict=True):
        known = kernel.reading.types.get(argument)
        wanted = named(formal.type.base, kernel.unit.aliases)
        wanted = replace(wanted, depth=wanted.depth + formal.type.depth)
        plain = all(isinstance(e, _PLAIN) for e in every(argument))
        if not plain or known is None or formal.type.reference:
            return None
        if wanted.kind in ("record", "unknown"):
            return None
        found[formal] = argument if known == wanted else Cast(None, wanted.name, argument)
    return found


def _only(method: Function, *, alone: bool) -> Expr | None:
    """The expression that a method returns, or is where nobody asks what it returns."""
    only: Statement | None = method.body.body[0] if len(method.body.body) == 1 else None
    match only:
        case Leave(kind="return", value=value):
            return value
        case Evaluate(expression=expression) if alone:
            return expression
    return None
