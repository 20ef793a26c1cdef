"""What passes over keys find, value by value: its type, and whether it is the greatest of all."""

from __future__ import annotations

import re
from collections.abc import Sequence

from optiml_magic.kernels.expressions import (
    Assign,
    Binary,
    Call,
    Cast,
    Choice,
    Expr,
    Index,
    Literal,
    Name,
    Unary,
)
from optiml_magic.kernels.functions import COMBINING
from optiml_magic.kernels.functions import bare as bare_name
from optiml_magic.kernels.primitives.base import Kernel
from optiml_magic.kernels.primitives.effects import Effects, declared_in, names, parted
from optiml_magic.kernels.tree import Declare, Evaluate, If, Statement, Variable, walk
from optiml_magic.kernels.types import UNKNOWN, CType, named

_NAME = re.compile(r"[A-Za-z_]\w*")
_WORD = 4  # bytes
_HALF = 2  # bytes: what is made of such numbers may be of a class
_FLOATS = frozenset({"expf", "__expf", "exp2f", "fast_exp2", "fmaxf", "fminf"})


def kind_of(kernel: Kernel, variable: Variable) -> CType:
    """The type of a local, or of the elements of one that is an array; unknown for ``auto``."""
    return named(variable.type.base, kernel.unit.aliases)


def converted(kernel: Kernel, value: Expr, put: Expr, variable: Variable) -> Expr:
    """What is ``put`` for a value, as the type of the local or the element that holds it."""
    kind, own = kernel.reading.types.get(value, UNKNOWN), kind_of(kernel, variable)
    same = (kind.kind, kind.size, kind.signed, kind.lanes) == (
        own.kind, own.size, own.signed, own.lanes
    )  # fmt: skip
    plain = same and not kind.depth and kind.kind in ("int", "float") and kind.lanes == 1
    plain = plain and (kind.size or 0) >= _WORD  # smaller ones are computed with as greater ones
    return put if plain else Cast(None, variable.type.base, put)


def floating(kernel: Kernel, expr: Expr) -> bool:
    """Whether an expression, of parts that were put together, is certainly a float or a double."""
    match expr:
        case Literal(value=value):
            return isinstance(value, float)
        case Name(variable=Variable() as variable):
            kind = kind_of(kernel, variable)
            return kind.floating and kind.size != _HALF and not variable.type.depth
        case Index(base=Name(variable=Variable() as variable)):
            kind = kind_of(kernel, variable)
            one = variable.type.depth + len(variable.extents) == 1
            return one and kind.floating and kind.size != _HALF
        case Unary(op="-", operand=operand):
            return floating(kernel, operand)
        case Binary(op="+" | "-" | "*" | "/", left=left, right=right):
            return floating(kernel, left) or floating(kernel, right)
        case Choice(then=then, other=other):
            return floating(kernel, then) or floating(kernel, other)
        case Cast(type=kind_):
            kind = named(kind_, kernel.unit.aliases)
            return kind.floating and kind.size != _HALF
        case Call():
            kind = kernel.reading.types.get(expr, UNKNOWN)
            return (kind.floating and kind.size != _HALF) or bare_name(expr.function) in _FLOATS
    return False


def given_in(effects: Effects, statement: Statement) -> set[Variable]:
    """The locals that a statement declares or changes, arrays by their elements too."""
    inside = effects.inside(statement)
    stored = {a.array for a in effects.reading.accesses
              if a.space == "local" and a.mode != "load" and a.own in inside}  # fmt: skip
    body = effects.kernel.function.body
    arrays = {v for v in declared_in(body) if v.name in stored}
    own = {v for s in walk(statement) if isinstance(s, Declare) for v in s.variables}
    return {*effects.given(statement), *(arrays - own)}


def is_greatest(
    kernel: Kernel, statement: Statement, most: Variable, value: Expr, *, least: bool = False
) -> bool:
    """Whether a statement makes a local the greater of it and a value, and does nothing else.

    The lesser one where the ``least`` is sought.
    """
    words = kernel.spelled(value)
    over, under, name = ("<", ">", "min") if least else (">", "<", "max")

    def sides(one: Expr, other: Expr) -> bool:
        own = isinstance(one, Name) and one.variable is most
        return own and kernel.spelled(other) == words and most not in names([other])

    def greater(test: Expr) -> bool:
        match test:
            case Binary(op=op, left=left, right=right) if op == over:
                return sides(right, left)
            case Binary(op=op, left=left, right=right) if op == under:
                return sides(left, right)
        return False

    match statement:
        case If(before=None, constant=False, test=test, then=then, other=None):
            steps = [*parted(then)]
            match steps:
                case [Evaluate(expression=Assign(op="=", target=target, value=given))]:
                    return greater(test) and sides(target, given)
        case Evaluate(expression=Assign(op="=", target=Name(variable=target), value=given)):
            match given:
                case Call(function=function, arguments=(one, other)):
                    found = COMBINING.get(bare_name(function)) == name
                    return target is most and found and (sides(one, other) or sides(other, one))
                case Choice(test=test, then=more, other=less):
                    return target is most and greater(test) and sides(less, more)
    return False


def are_alike(
    effects: Effects, these: Sequence[Statement], own: Variable,
    those: Sequence[Statement], other: Variable,
) -> bool:  # fmt: skip
    """Whether statements compute the same of one key as others do, by whatever names."""
    outer = [_outer(effects, these, own), _outer(effects, those, other)]
    kernel = effects.kernel
    same = _spelled(kernel, these, own) == _spelled(kernel, those, other)
    return same and outer[0] is not None and outer[0] == outer[1]


def _outer(
    effects: Effects, statements: Sequence[Statement], counter: Variable
) -> set[Variable] | None:
    """What statements ask for from outside; None where a local of theirs is named alike."""
    own = {counter, *(v for s in statements for v in declared_in(s))}
    asked = {v for s in statements for v in effects.mentions(s)} - own
    return None if {v.name for v in asked} & {v.name for v in own} else asked


def _spelled(kernel: Kernel, statements: Sequence[Statement], counter: Variable) -> str:
    """Statements as any names of their locals would spell them."""
    given = {counter.name: "0"}
    for statement in statements:
        for part in walk(statement):
            for variable in part.variables if isinstance(part, Declare) else ():
                given.setdefault(variable.name, str(len(given)))
    words = " ".join("".join(kernel.show(s) for s in statements).split())
    return _NAME.sub(lambda w: f"${given[w[0]]}" if w[0] in given else w[0], words)
