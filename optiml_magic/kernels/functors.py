"""What functors of a text combine two numbers by: ``a > b ? a : b``, ``fmaxf(a, b)``, ``a + b``."""

from __future__ import annotations

from optiml_magic.kernels.expressions import Binary, Call, Choice, Expr, Name
from optiml_magic.kernels.functions import COMBINING, bare
from optiml_magic.kernels.tree import Function, Leave
from optiml_magic.kernels.types import CType, named
from optiml_magic.kernels.unit import Unit

_GREATER = {">": "max", ">=": "max", "<": "min", "<=": "min"}
_TURNED = {"max": "min", "min": "max"}
_PASSING = ("forward", "move")


def combining(unit: Unit, name: str, kind: CType) -> str:
    """The operation of a struct's one ``operator()`` on numbers of this kind; empty otherwise."""
    body = unit.structs.body(name)
    if body is None:
        return ""
    inside = [f for f in unit.functions if f.name == "operator()" and f.method
              and body.start_byte <= f.span[0] < body.end_byte]  # fmt: skip
    if len(inside) != 1 or len(inside[0].parameters) != 2 or not _takes(unit, inside[0], kind):
        return ""
    statements = inside[0].body.body
    if len(statements) != 1 or not isinstance(statements[0], Leave) or statements[0].value is None:
        return ""
    return _operation(inside[0], statements[0].value)


def _takes(unit: Unit, function: Function, kind: CType) -> bool:
    """Whether what it is given and gives back stays of this kind."""
    generic = {parameter.name for parameter in function.template}
    plain = all(
        not p.type.depth and (p.type.base in generic or named(p.type.base, unit.aliases) == kind)
        for p in function.parameters
    )
    result = function.result
    given = named(result.base, unit.aliases) == kind or (
        generic and ("common_type" in result.base or result.base in {*generic, "auto"})
    )
    return plain and bool(given) and not result.depth and not result.reference


def _operation(function: Function, value: Expr) -> str:
    match value:
        case Call(function=name, arguments=(left, right)) if bare(name) in COMBINING:
            op = COMBINING[bare(name)]
            return op if op in _TURNED and _both(function, left, right) else ""
        case Binary(op="+" | "&" | "|" | "^" as op, left=left, right=right):
            return op if _both(function, left, right) else ""
        case Choice(test=Binary(op=sign, left=left, right=right), then=then, other=other):
            if sign not in _GREATER or not _both(function, left, right):
                return ""
            if not _both(function, then, other):
                return ""
            return _GREATER[sign] if _one(then) == _one(left) else _TURNED[_GREATER[sign]]
    return ""


def _both(function: Function, left: Expr, right: Expr) -> bool:
    """Whether one of these is the first parameter, and the other the second."""
    return {_one(left), _one(right)} == {p.name for p in function.parameters}


def _one(expr: Expr) -> str:
    match expr:
        case Name(name=name):
            return name
        case Call(function=function, arguments=(inner,)) if bare(function) in _PASSING:
            return _one(inner)
    return ""
