"""P25, precision: arithmetic that is double only because of a constant or a function's name.

An expression is done in float where its value ends as a float, all it is computed from is float,
and nobody wrote double. A whole number beside nothing but constants stays in double, which holds
numbers that a float does not.
"""

from __future__ import annotations

import math
import re
import struct
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Literal as Word

from optiml_magic.kernels.editing import Node, edited
from optiml_magic.kernels.expressions import (
    Assign,
    Binary,
    Call,
    Cast,
    Choice,
    Expr,
    Index,
    Literal,
    Member,
    Name,
    Unary,
    every,
)
from optiml_magic.kernels.functions import bare
from optiml_magic.kernels.primitives.base import Kernel, NotLegal, primitive
from optiml_magic.kernels.primitives.deciding import REASON, line_decided
from optiml_magic.kernels.primitives.places import reached
from optiml_magic.kernels.tree import Block, Declare, Function, Leave, expressions, walk
from optiml_magic.kernels.types import DOUBLE, CType, named

Kind = Word["float", "literal", "integer", "unsure"]
_DOUBLE = re.compile(r"[-+]?(?:\d+\.\d*|\.\d+)(?:[eE][-+]?\d+)?|[-+]?\d+[eE][-+]?\d+")
_NAMES = frozenset(
    {
        "exp", "exp2", "exp10", "expm1", "log", "log2", "log10", "log1p", "sqrt", "rsqrt",
        "cbrt", "pow", "fabs", "fmax", "fmin", "fmod", "sin", "cos", "tan", "sinh", "cosh",
        "tanh", "asin", "acos", "atan", "atan2", "erf", "erfc", "floor", "ceil", "round",
        "trunc", "rint", "hypot", "fma", "copysign", "fdim",
    }
)  # fmt: skip
_SINGLE = frozenset(f"{name}f" for name in _NAMES)
_EITHER = frozenset({"max", "min", "abs"})
_COMPARISONS = frozenset({"<", ">", "<=", ">=", "==", "!="})
_COMPOUND = frozenset({"=", "+=", "-=", "*=", "/="})
_MOST = 1 << 24  # whole numbers below are floats


@dataclass
class Demotion:
    """What becomes float: constants, and calls with their new names, innermost first."""

    literals: list[Literal] = field(default_factory=list)
    calls: list[tuple[Call, str]] = field(default_factory=list)

    def __bool__(self) -> bool:
        return bool(self.literals or self.calls)

    def keep(self, other: Demotion) -> None:
        known = {id(e) for e in (*self.literals, *(c for c, _ in self.calls))}
        self.literals += [e for e in other.literals if id(e) not in known]
        self.calls += [c for c in other.calls if id(c[0]) not in known]

    def swaps(self) -> dict[Node, Node]:
        made: dict[Node, Node] = {
            e: replace(e, span=None, text=f"{e.text}f") for e in self.literals
        }
        for call, name in sorted(self.calls, key=lambda pair: len([*every(pair[0])])):
            arguments = tuple(edited(argument, made) for argument in call.arguments)
            raised = replace(call, span=None, function=name, arguments=arguments)
            made[call] = _product(raised) if name == "pow" else raised
        return made


@primitive
def in_float(kernel: Kernel) -> Kernel:
    """The kernel, and the functions that it calls, with such expressions in float."""
    found = demotions(kernel)
    if not found:
        raise NotLegal("nothing is double for the sake of a constant alone")
    line = line_decided(kernel, rounded(kernel))
    if line:
        raise NotLegal(REASON, line)
    bodies: dict[Function, Block] = {}
    for function, demotion in found.items():
        bodies[function] = edited(function.body, demotion.swaps())
    return kernel.with_bodies(bodies)


def demotions(kernel: Kernel) -> dict[Function, Demotion]:
    """What would become float, by function."""
    found = {}
    for function in (kernel.function, *reached(kernel.unit, kernel.function)):
        if function.template and function is not kernel.function:
            continue  # others may call it with other types
        reader = _Reader(kernel, function)
        if reader.found:
            found[function] = reader.found
    return found


def rounded(kernel: Kernel) -> Iterator[Expr]:
    """What is worth something else once it is float: to double or halve a number it is not."""
    for function, demotion in demotions(kernel).items():
        calls = [call for call, _ in demotion.calls]
        yield from calls
        yield from (e for e in demotion.literals if not _exact(e))
        known = {*demotion.literals, *calls}
        for e in expressions(function.body):
            wide = isinstance(e, Binary) and kernel.reading.types.get(e) == DOUBLE
            if wide and not _is_scaling(e) and not known.isdisjoint(every(e)):
                yield e


def _exact(literal: Literal) -> bool:
    value = literal.value or 0.0
    return bool(struct.unpack("f", struct.pack("f", value))[0] == value)


def _is_scaling(e: Expr) -> bool:
    """Whether it is a product with a power of two."""
    if not isinstance(e, Binary):
        return False
    factors = [side.value for side in (e.left, e.right) if isinstance(side, Literal)]
    return e.op == "*" and any(f and math.frexp(f)[0] == 0.5 for f in factors)


def wished(kernel: Kernel) -> int:
    """The first line of a kernel on which a local or a cast is double; 0 where none is."""
    lines = []
    for statement in walk(kernel.function.body):
        bases = [v.type.base for v in statement.variables] if isinstance(statement, Declare) else []
        for expr in statement.expressions:
            bases += [e.type for e in every(expr) if isinstance(e, Cast)]
        if any(named(base, kernel.unit.aliases) == DOUBLE for base in bases):
            lines.append(statement.line)
    return min(lines, default=0)


class _Reader:
    """Looks through one function for values that end as floats."""

    def __init__(self, kernel: Kernel, function: Function) -> None:
        self.kernel = kernel
        self.types = kernel.reading.types
        self.found = Demotion()
        for value, beside in self._ends(function):
            attempt = Demotion()
            kinds = [self._kind(part, attempt) for part in value]
            if beside:
                kinds.append("float")
            if _joined(kinds) == "float":
                self.found.keep(attempt)

    def _ends(self, function: Function) -> Iterator[tuple[tuple[Expr, ...], bool]]:
        """Values that become a float together, and whether one that is float is beside them."""
        for statement in walk(function.body):
            if isinstance(statement, Declare):
                for variable in statement.variables:
                    plain = not variable.array and not variable.type.depth
                    if plain and variable.value is not None and self._is(variable.type.base):
                        yield (variable.value,), False
            returns = self._is(function.result.base) and not function.result.depth
            if isinstance(statement, Leave) and statement.value is not None and returns:
                yield (statement.value,), False
        for expr in expressions(function.body):
            match expr:
                case Assign(op=op, target=target, value=value) if op in _COMPOUND:
                    if _float(self.types.get(target)):
                        yield (value,), op != "="
                case Binary(op=op, left=left, right=right) if op in _COMPARISONS:
                    yield (left, right), False
                case Cast(type=spelled, operand=operand) if self._is(spelled):
                    yield (operand,), False
                case Call():
                    yield from (((argument,), False) for argument in self._taken(expr))

    def _taken(self, call: Call) -> Iterator[Expr]:
        """The arguments that a function takes as floats."""
        name = bare(call.function)
        called = self.kernel.unit.called(call.function, len(call.arguments))
        if len(called) == 1 and not called[0].template:
            for formal, argument in zip(called[0].parameters, call.arguments, strict=False):
                if self._is(formal.type.base) and not formal.type.depth:
                    yield argument
        elif not called and (name in _SINGLE or re.fullmatch(r"(?:make_)?float[234]", name)):
            yield from call.arguments

    def _is(self, spelled: str) -> bool:
        return _float(named(spelled, self.kernel.unit.aliases))

    def _kind(self, expr: Expr, found: Demotion) -> Kind:
        """What an expression is once the constants in it are float."""
        kind = self.types.get(expr)
        match expr:
            case Literal():
                return _literal(expr, found)
            case Call(function=name) if bare(name) in _NAMES | _EITHER:
                own = self.kernel.unit.called(name, len(expr.arguments))
                return "unsure" if own else self._call(expr, found)
        if _float(kind):
            return "float"
        if kind is not None and kind.integral:
            return "integer"
        match expr:
            case Unary(op="+" | "-", operand=operand):
                return self._kind(operand, found)
            case Binary(op="+" | "-" | "*" | "/", left=left, right=right):
                return _joined([self._kind(left, found), self._kind(right, found)])
            case Choice(then=then, other=other):
                return _joined([self._kind(then, found), self._kind(other, found)])
        return "unsure"

    def _call(self, call: Call, found: Demotion) -> Kind:
        name, inner = bare(call.function), Demotion()
        kinds = [self._kind(argument, inner) for argument in call.arguments]
        kind = _joined(kinds)
        whole = all(k in ("integer", "literal") for k in kinds)
        if kind == "literal" and inner.literals and name in _NAMES:
            found.keep(inner)
            found.calls.append((call, f"{name}f"))
            return "literal"
        if kind != "float" or whole:
            kind_of = self.types.get(call)
            return "integer" if kind_of is not None and kind_of.integral else "unsure"
        types = [self.types.get(argument) for argument in call.arguments]
        found.keep(inner)
        if name in _NAMES and not all(_float(t) for t in types):
            # A whole power is a few products, and ``powf`` takes thirty instructions for it.
            whole = name == "pow" and types[1] is not None and types[1].integral
            found.calls.append((call, name if whole else f"{name}f"))
        return "float"


def _product(call: Call) -> Expr:
    """A small power of a name, or of an element, as a product; any other one as it is."""
    base, power = call.arguments
    plain = all(isinstance(e, Name | Index | Member | Literal | Binary) for e in every(base))
    if isinstance(base, Binary) or not plain or not isinstance(power, Literal):
        return call
    match power.value:
        case 2:
            return Binary(None, "*", base, base)
        case 3:
            return Binary(None, "*", Binary(None, "*", base, base), base)
    return call


def _joined(kinds: list[Kind]) -> Kind:
    if not kinds or "unsure" in kinds:
        return "unsure"
    if "integer" in kinds and "float" not in kinds and len({*kinds}) > 1:
        return "unsure"
    return "float" if "float" in kinds else kinds[0]


def _float(kind: CType | None) -> bool:
    return kind is not None and kind.floating and kind.size == 4


def _literal(literal: Literal, found: Demotion) -> Kind:
    value = literal.value
    if isinstance(value, int):
        return "literal" if abs(value) < _MOST else "unsure"
    if value is not None and literal.text[-1] in "fF":
        return "literal"
    if value is None or not _DOUBLE.fullmatch(literal.text) or not _fits(value):
        return "unsure"
    found.literals.append(literal)
    return "literal"


def _fits(value: float) -> bool:
    """Whether a float holds the value with its full precision."""
    try:
        near = struct.unpack("f", struct.pack("f", value))[0]
    except OverflowError:
        return False
    return math.isfinite(near) and (value == 0.0 or abs(value) >= 2.0**-126)
