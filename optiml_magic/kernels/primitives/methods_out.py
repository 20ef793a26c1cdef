"""Short methods of a local structure stand where they are called: ``A.get(i, k)``.

Each returns one expression or is one statement, over the members of its object and its arguments:
``A.data[i * A.cols + k]``. What a kernel loads and stores then stands in its own text.
"""

from __future__ import annotations

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
from optiml_magic.kernels.methods import called_of, method_of
from optiml_magic.kernels.primitives.base import Kernel, NotLegal, primitive
from optiml_magic.kernels.primitives.effects import Effects, declared_in
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
    made_ = kernel.rewritten(edited(body, swaps))
    again = methods_out(made_)  # of one in the arguments of another
    return again if isinstance(again, Kernel) else made_


def _written(kernel: Kernel, effects: Effects, call: Call, *, alone: bool) -> Expr | None:
    """What a call does as an expression; None where it is none of these."""
    place, name = called_of(call)
    if not isinstance(place, Name) or place.variable is None or place.variable in effects.changing:
        return None
    kind = named(place.variable.type.base, kernel.unit.aliases)
    count = len(call.arguments)
    method = method_of(kernel.unit, place, name, count, kind, references=True)
    inner = _only(method, alone=alone) if method is not None else None
    if method is None or inner is None or len(call.arguments) != len(method.parameters):
        return None
    hidden = {v.name for v in declared_in(kernel.function.body)}
    counts = [v.name for v in (*declared_in(kernel.function.body), *kernel.function.parameters)]
    if counts.count(place.name) != 1 or any(p.type.reference for p in method.parameters):
        return None
    given: dict[Variable, Expr] = {}
    for formal, argument in zip(method.parameters, call.arguments, strict=True):
        if not all(isinstance(e, _PLAIN) for e in every(argument)):
            return None
        known = kernel.reading.types.get(argument)
        wanted = named(formal.type.base, kernel.unit.aliases)
        wanted = replace(wanted, depth=wanted.depth + formal.type.depth)
        if known is None or wanted.kind in ("record", "unknown"):
            return None
        given[formal] = argument if known == wanted else Cast(None, wanted.name, argument)
    changed = {
        e.target.variable for e in every(inner)
        if isinstance(e, Assign | Step) and isinstance(e.target, Name)
    }  # fmt: skip
    if changed & given.keys() or (hidden & {e.name for e in every(inner) if isinstance(e, Name)
                                            and e.variable is None}):  # fmt: skip
        return None
    swaps: dict[Node, Node] = {
        e: given[e.variable] for e in every(inner) if isinstance(e, Name) and e.variable in given
    }
    made = edited(inner, swaps)
    return made if isinstance(made, Expr) else None


def _only(method: Function, *, alone: bool) -> Expr | None:
    """The expression that a method returns, or is where nobody asks what it returns."""
    only: Statement | None = method.body.body[0] if len(method.body.body) == 1 else None
    match only:
        case Leave(kind="return", value=value):
            return value
        case Evaluate(expression=expression) if alone:
            return expression
    return None
