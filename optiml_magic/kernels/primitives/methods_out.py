"""Short methods of a local structure, or of an element, stand where they are called.

Each returns one expression, or is a few that store, over the members of its object and its
arguments: ``A.get(i, k)`` is ``A.data[i * A.cols + k]``. What a kernel loads and stores then
stands in its own text.
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
from optiml_magic.kernels.methods import called_of, fields_of, method_of, object_of, only_method
from optiml_magic.kernels.primitives.base import Kernel, NotLegal, primitive
from optiml_magic.kernels.primitives.effects import Effects, declared_in
from optiml_magic.kernels.primitives.moving_names import means_the_same
from optiml_magic.kernels.primitives.places import tops
from optiml_magic.kernels.tree import (
    Blank,
    Block,
    Evaluate,
    Function,
    Leave,
    Statement,
    Variable,
    Verbatim,
    walk,
)
from optiml_magic.kernels.types import named

_PLAIN = (Binary, Cast, Literal, Member, Name, Unary, Index)


@primitive
def methods_out(kernel: Kernel) -> Kernel:
    """The kernel with such methods of its locals and parameters written out; there must be one."""
    body = kernel.function.body
    if any(isinstance(s, Verbatim) for s in walk(body)):
        raise NotLegal("what a statement of it does is not read")
    effects, swaps = Effects(kernel), dict[Node, "Node | tuple[Statement, ...] | None"]()
    for top in tops(body):
        for call in (e for e in every(top) if isinstance(e, Call)):
            made = _written(kernel, effects, call, alone=call is top)
            if made is not None:
                swaps[call] = made
    for block in (s for s in walk(body) if isinstance(s, Block)):
        for one in block.body:
            if isinstance(one, Evaluate) and isinstance(one.expression, Call):
                several = _statements(kernel, effects, one.expression)
                swaps |= {one: several} if several else {}
    if not swaps:
        raise NotLegal("no short method of a local is called")
    found = kernel.rewritten(edited(body, swaps))
    again = methods_out(found)  # of one in the arguments of another
    return again if isinstance(again, Kernel) else found


def _written(kernel: Kernel, effects: Effects, call: Call, *, alone: bool) -> Expr | None:
    """What a call does as an expression; None where it is none of these."""
    method, here = _method(kernel, effects, call)
    inner = _only(method, alone=alone) if method is not None else None
    if method is None or inner is None:
        return None
    given = _given(kernel, method, call)
    changed = {
        e.target.variable for e in every(inner)
        if isinstance(e, Assign | Step) and isinstance(e.target, Name)
    }  # fmt: skip
    if given is None or changed & given.keys() or _is_late(inner, given):
        return None
    made = _with(inner, {**given, **here})
    return _returned(kernel, method, inner, made, alone=alone) if isinstance(made, Expr) else None


def _statements(kernel: Kernel, effects: Effects, call: Call) -> tuple[Statement, ...]:
    """What a method does that is several expressions, over arguments that load nothing."""
    method, here = _method(kernel, effects, call)
    given = _given(kernel, method, call) if method is not None else None
    if method is None or given is None or any(map(_loads, given.values())):
        return ()
    body = [s for s in method.body.body if not isinstance(s, Blank)]
    parts = [s.expression for s in body if isinstance(s, Evaluate)]
    changed = {
        e.target.variable for top in parts for e in every(top)
        if isinstance(e, Assign | Step) and isinstance(e.target, Name)
    }  # fmt: skip
    if len(parts) < len(body) or len(parts) < 2 or changed & given.keys():
        return ()
    made = (_with(top, {**given, **here}) for top in parts)
    return tuple(Evaluate(None, method.line, e) for e in made if isinstance(e, Expr))


def _method(
    kernel: Kernel, effects: Effects, call: Call
) -> tuple[Function | None, dict[Variable, Expr]]:
    """The method that is called over the members of its object, and what stands for that."""
    place, name = called_of(call)
    own, here, count = place, dict[Variable, Expr](), len(call.arguments)
    base = place.base if isinstance(place, Index) else place
    if not isinstance(base, Name) or base.variable is None:
        return None, {}
    kind = named(base.variable.type.base, kernel.unit.aliases)
    if base is not place or call.arrow:
        if base.variable.type.depth != 1 or call.callee is not None or not _stays(place):
            return None, {}
        own, element = object_of(kind.name), Unary(None, "*", base) if call.arrow else place
        if isinstance(own, Name) and own.variable is not None and element is not None:
            here[own.variable] = element
    elif base.variable in effects.changing or not _alone(kernel, base):
        return None, {}
    written = only_method(kernel.unit, name, count, kind)
    if written is None or not isinstance(own, Name) or kernel.unit.structs.hides(kind.name):
        return None, {}
    if not means_the_same(kernel, written, fields_of(kernel.unit, kind)):
        return None, {}
    return method_of(kernel.unit, own, name, count, kind, references=True), here


def _stays(place: Expr | None) -> bool:
    """Whether a place is the same whatever is stored: it loads no index."""
    index = place.index if isinstance(place, Index) else place
    return (
        index is not None and all(isinstance(e, _PLAIN) for e in every(index)) and not _loads(index)
    )


def _with(inner: Expr, given: Mapping[Variable, Expr]) -> Node | None:
    swaps: dict[Node, Node] = {
        e: given[e.variable] for e in every(inner)
        if isinstance(e, Name) and e.variable is not None and e.variable in given
    }  # fmt: skip
    return edited(inner, swaps)


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
    return any(map(_loads, given.values())) and any(
        isinstance(e, Assign | Step) or (isinstance(e, Call) and not pure(bare(e.function)))
        for e in every(inner) if e is not inner
    )  # fmt: skip


def _loads(expr: Expr) -> bool:
    return any(
        isinstance(e, Index) or (isinstance(e, Member) and e.arrow)
        or (isinstance(e, Unary) and e.op == "*")
        or (isinstance(e, Name) and _in_memory(e.variable))
        for e in every(expr)
    )  # fmt: skip


def _in_memory(variable: Variable | None) -> bool:
    return variable is not None and (variable.type.reference or variable.storage == "shared")


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
