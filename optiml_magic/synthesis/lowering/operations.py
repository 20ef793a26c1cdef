"""NumPy's operations element by element in C++, and how reductions combine.

An extreme passes over a NaN, as CUDA's own functions do.
"""

from __future__ import annotations

from collections.abc import Sequence
from types import MappingProxyType
from typing import TYPE_CHECKING

import numpy as np

from optiml_magic.kernels.expressions import Expr, Literal, Name
from optiml_magic.model.dtypes import kind as letter
from optiml_magic.synthesis.graph import Map
from optiml_magic.synthesis.lowering import spelling as c
from optiml_magic.synthesis.lowering.spelling import Value
from optiml_magic.synthesis.refusals import RefusalError

if TYPE_CHECKING:
    from optiml_magic.synthesis.lowering.body import Body

_COMPARISONS = MappingProxyType({
    "equal": "==", "not_equal": "!=", "less": "<", "less_equal": "<=", "greater": ">",
    "greater_equal": ">=",
})  # fmt: skip
_SIGNS = MappingProxyType({
    "add": "+", "subtract": "-", "multiply": "*", "true_divide": "/", "divide": "/",
    "bitwise_and": "&", "bitwise_or": "|", "bitwise_xor": "^", "left_shift": "<<",
    "right_shift": ">>",
})  # fmt: skip
_LOGICAL = MappingProxyType({
    "logical_and": "&&", "logical_or": "||", "logical_xor": "!=", "bitwise_and": "&&",
    "bitwise_or": "||", "bitwise_xor": "!=", "multiply": "&&", "add": "||", "maximum": "||",
    "minimum": "&&", "not_equal": "!=", "equal": "==", "fmax": "||", "fmin": "&&",
})  # fmt: skip
#: CUDA's functions of one or more floats, without the `f` of float.
_FUNCTIONS = MappingProxyType({
    "absolute": "fabs", "fabs": "fabs", "sqrt": "sqrt", "cbrt": "cbrt", "exp": "exp",
    "exp2": "exp2", "expm1": "expm1", "log": "log", "log2": "log2", "log10": "log10",
    "log1p": "log1p", "sin": "sin", "cos": "cos", "tan": "tan", "arcsin": "asin",
    "arccos": "acos", "arctan": "atan", "sinh": "sinh", "cosh": "cosh", "tanh": "tanh",
    "arcsinh": "asinh", "arccosh": "acosh", "arctanh": "atanh", "arctan2": "atan2",
    "hypot": "hypot", "power": "pow", "float_power": "pow", "floor": "floor", "ceil": "ceil",
    "trunc": "trunc", "rint": "rint", "fmod": "fmod", "maximum": "fmax", "minimum": "fmin",
    "fmax": "fmax", "fmin": "fmin", "copysign": "copysign", "nextafter": "nextafter",
})  # fmt: skip
_TESTS = MappingProxyType({"isnan": "isnan", "isinf": "isinf", "isfinite": "isfinite"})
#: Of two 32-bit numbers these are none of more bits.
_NO_WIDER = frozenset({"maximum", "minimum", "bitwise_and", "bitwise_or", "bitwise_xor",
                       "remainder", "floor_divide", "fmod", "invert", "positive"})  # fmt: skip
_COSTS = MappingProxyType({"sqrt": 4, "true_divide": 6, "divide": 6, "reciprocal": 6})
_SPECIAL = 12  # operations that a function of CUDA's library is worth; ours
_CHEAP = frozenset({"absolute", "fabs", "maximum", "minimum", "fmax", "fmin", "floor", "ceil",
                    "trunc", "rint", "copysign"})  # fmt: skip


def computed(body: Body, node: Map, values: Sequence[Value]) -> Value:
    """A ``Map`` of values; RefusalError where there is no such operation on such numbers."""
    operation, kind = node.operation, c.computed(node.dtype)
    special = operation in _FUNCTIONS and operation not in _CHEAP
    body.spend(_COSTS.get(operation, _SPECIAL if special else 1))
    if operation == "cast":
        if c.type_of(node.arguments[0].dtype) == "bool" and kind != "bool":
            return Value(values[0].expression, "bool") if kind in _WHOLE else _to(values[0], kind)
        return c.widened(values[0], kind)
    if operation == "narrowed":
        return c.rounded(c.widened(values[0], kind), node.dtype)
    if operation == "where":
        test, *sides = values
        if isinstance(test.expression, Literal):
            return sides[0 if test.expression.value else 1]
        if all(side.type == "int" for side in sides):
            kind = "int"
        one, two = (c.converted(side, kind) for side in sides)
        return Value(c.choice(c.converted(test, "bool"), one, two), kind)
    if operation in _COMPARISONS:
        return Value(_compared(_COMPARISONS[operation], values), "bool")
    arguments = [x.dtype for x in node.arguments]
    if all(c.type_of(x) == "bool" for x in arguments):
        return _of_bools(operation, values)
    if operation in ("logical_and", "logical_or", "logical_xor", "logical_not"):
        return _of_bools(operation, [_to(v, "bool") for v in values])
    own = c.computed(arguments[0])
    if own == "long long" and operation in _NO_WIDER and all(v.type == "int" for v in values):
        own = kind = "int"
    family = {"f": _of_floats, "i": _of_integers, "u": _of_integers}.get(letter(arguments[0]))
    if family is None:
        raise RefusalError(f"`np.{operation}` of {arguments[0]}", "compute in real numbers")
    made = family(body, operation, values, kind, own)
    if made is None:
        raise RefusalError(f"`np.{operation}` has no CUDA function here", "write it out")
    return made


_WHOLE = ("int", "long long")


def _to(value: Value, kind: str) -> Value:
    return Value(c.converted(value, kind), kind)


def _compared(sign: str, values: Sequence[Value]) -> Expr:
    one, two = values
    if one.type != two.type:
        kinds = {one.type, two.type}
        if kinds & {"unsigned", "unsigned long long"} or kinds & {"float", "double"}:
            wide = next(
                k for k in ("double", "float", "unsigned long long", "unsigned") if k in kinds
            )
            one, two = _to(one, wide), _to(two, wide)
        elif isinstance(two.expression, Literal):
            two = _to(two, "int") if one.type != "long long" else two
    return c.binary(sign, one.expression, two.expression)


def _of_bools(operation: str, values: Sequence[Value]) -> Value:
    if operation in ("logical_not", "invert"):
        return Value(c.unary("!", values[0].expression), "bool")
    sign = _LOGICAL.get(operation)
    if sign is None:
        raise RefusalError(f"`np.{operation}` of bool", "cast to numbers first")
    one, two = (_to(v, "bool").expression for v in values)
    for here, there in ((one, two), (two, one)):
        if isinstance(here, Literal) and sign in ("&&", "||"):
            return Value(there if bool(here.value) == (sign == "&&") else here, "bool")
    return Value(c.binary(sign, one, two), "bool")


def _twice(body: Body, value: Expr, kind: str) -> Expr:
    """The value as something that may be said twice."""
    return value if isinstance(value, (Name, Literal)) else body.local("t", kind, value)


def _of_floats(
    body: Body, operation: str, values: Sequence[Value], kind: str, own: str
) -> Value | None:
    ones = [c.converted(v, own) for v in values]
    one = ones[0]
    suffix = "f" if own == "float" else ""
    if operation in _TESTS:
        return Value(c.call(_TESTS[operation], one), "bool")
    if operation in _SIGNS and operation not in ("left_shift", "right_shift"):
        return Value(c.binary(_SIGNS[operation], *ones), kind)
    if operation in ("power", "float_power") and isinstance(ones[1], Literal):
        known = _known_power(body, one, ones[1], own, suffix)
        if known is not None:
            return Value(known, kind)
    if operation in _FUNCTIONS:
        return Value(c.call(_FUNCTIONS[operation] + suffix, *ones), kind)
    match operation:
        case "negative":
            return Value(c.unary("-", one), kind)
        case "positive" | "conjugate":
            return Value(one, kind)
        case "square":
            one = _twice(body, one, own)
            return Value(c.binary("*", one, one), kind)
        case "reciprocal":
            return Value(c.binary("/", c.number(1, own), one), kind)
        case "sign":
            one = _twice(body, one, own)
            zero = c.number(0, own)
            below = c.choice(c.binary("<", one, zero), c.number(-1, own), one)
            return Value(c.choice(c.binary(">", one, zero), c.number(1, own), below), kind)
        case "signbit":
            return Value(c.call("signbit", one), "bool")
        case "deg2rad" | "radians":
            return Value(c.binary("*", one, c.number(np.pi / 180, own)), kind)
        case "rad2deg" | "degrees":
            return Value(c.binary("*", one, c.number(180 / np.pi, own)), kind)
        case "floor_divide":
            return Value(body.function(f"floor_quotient{suffix}", *ones), kind)
        case "remainder":
            return Value(body.function(f"floor_modulo{suffix}", *ones), kind)
        case "heaviside" | "logaddexp" | "logaddexp2":
            return Value(body.function(f"{operation}{suffix}", *ones), kind)
        case "ldexp":
            return Value(c.call("ldexp" + suffix, one, c.converted(values[1], "int")), kind)
    return None


def _known_power(body: Body, base: Expr, power: Literal, own: str, suffix: str) -> Expr | None:
    match power.value:
        case 1.0:
            return base
        case 0.5:
            return c.call("sqrt" + suffix, base)
        case -0.5:
            return c.binary("/", c.number(1, own), c.call("sqrt" + suffix, base))
        case -1.0:
            return c.binary("/", c.number(1, own), base)
        case 2.0 | 3.0 | 4.0:
            base = _twice(body, base, own)
            square = c.binary("*", base, base)
            if power.value == 2:
                return square
            if power.value == 3:
                return c.binary("*", square, base)
            square = _twice(body, square, own)
            return c.binary("*", square, square)
    return None


def _of_integers(
    body: Body, operation: str, values: Sequence[Value], kind: str, own: str
) -> Value | None:
    ones = [c.converted(v, own) for v in values]
    one = ones[0]
    small = own in ("signed char", "short", "unsigned char", "unsigned short")

    def wrapped(found: Expr) -> Value:
        return Value(c.cast(own, found) if small else found, kind)

    if operation in _SIGNS and operation not in ("true_divide", "divide"):
        return wrapped(c.binary(_SIGNS[operation], *ones))
    match operation:
        case "negative":
            return wrapped(c.unary("-", one))
        case "positive" | "conjugate" | "rint" | "floor" | "ceil" | "trunc":
            return Value(one, kind)
        case "invert":
            return wrapped(c.unary("~", one))
        case "absolute":
            if own.startswith("unsigned"):
                return Value(one, kind)
            return wrapped(c.call("llabs" if own == "long long" else "abs", one))
        case "square":
            one = _twice(body, one, own)
            return wrapped(c.binary("*", one, one))
        case "sign":
            one = _twice(body, one, own)
            above, below = (c.cast("int", c.binary(s, one, c.number(0, own))) for s in "><")
            return _to(Value(c.binary("-", above, below), "int"), kind)
        case "maximum" | "fmax" | "minimum" | "fmin":
            return wrapped(c.call(operation.replace("f", "")[:3], *ones))
        case "fmod":
            return wrapped(c.binary("%", *ones))
        case "floor_divide" | "remainder":
            if own.startswith("unsigned"):
                return wrapped(c.binary("/" if operation == "floor_divide" else "%", *ones))
            stem = "floor_divided" if operation == "floor_divide" else "floor_rest"
            return wrapped(body.function(stem + ("_wide" if own == "long long" else ""), *ones))
        case "power":
            raised = body.function("power_wide", *(c.cast("long long", x) for x in ones))
            return Value(c.cast(own, raised), kind)
        case "lcm":
            one, two = (_twice(body, x, own) for x in ones)
            shared = c.cast(own, body.function("gcd_wide", one, two))
            whole = c.binary(
                "*",
                c.binary(
                    "/",
                    one,
                    c.choice(c.binary("==", shared, c.number(0, own)), c.number(1, own), shared),
                ),
                two,
            )
            return wrapped(c.call("llabs", whole))
        case "bitwise_count":
            signed = not own.startswith("unsigned")
            return Value(c.call("__popcll", c.call("llabs", one) if signed else one), "int")
        case "gcd":
            return Value(c.cast(own, body.function("gcd_wide", *ones)), kind)
    return None


def neutral(operation: str, kind: str) -> Expr:
    """What changes nothing that it is combined with; RefusalError where there is none."""
    ufunc = getattr(np, operation)
    if operation in ("maximum", "fmax", "minimum", "fmin"):
        highest = operation in ("minimum", "fmin")
        if kind in ("float", "double"):
            return c.number(np.inf if highest else -np.inf, kind)
        if kind == "bool":
            return c.number(highest, kind)
        bounds = np.iinfo(_NUMPY[kind])
        return c.number(bounds.max if highest else bounds.min, kind)
    if operation in ("logaddexp", "logaddexp2"):
        return c.number(-np.inf, kind)
    if ufunc.identity is None:
        raise RefusalError(f"`np.{operation}.reduce`", "reduce by a sum, a product or an extreme")
    return c.number(ufunc.identity, kind)


_NUMPY = MappingProxyType({
    "signed char": "int8", "unsigned char": "uint8", "short": "int16", "unsigned short": "uint16",
    "int": "int32", "unsigned": "uint32", "long long": "int64", "unsigned long long": "uint64",
})  # fmt: skip
_UPDATES = MappingProxyType({
    "add": "+=", "multiply": "*=", "bitwise_or": "|=", "bitwise_and": "&=", "bitwise_xor": "^=",
    "subtract": "-=", "divide": "/=", "true_divide": "/=",
})  # fmt: skip


def combined(body: Body, operation: str, total: Expr, value: Value, kind: str) -> None:
    """Puts another value into a total."""
    body.spend(1)
    if kind == "bool":
        made = _of_bools(operation, [Value(total, kind), value]).expression
        body.emit(c.assign(total, made))
        return
    given = c.converted(value, kind) if value.type != "bool" else value.expression
    if operation in ("logical_and", "logical_or"):
        raise RefusalError(f"`np.{operation}.reduce` of {kind}", "compare with zero first")
    sign = _UPDATES.get(operation)
    if sign is not None:
        body.emit(c.assign(total, given, sign))
        return
    pair = [Value(total, kind), Value(given, kind)]
    floats = kind in ("float", "double")
    made_of = (_of_floats if floats else _of_integers)(body, operation, pair, kind, kind)
    if made_of is None:
        raise RefusalError(f"`np.{operation}.reduce`", "reduce by a sum, a product or an extreme")
    body.emit(c.assign(total, made_of.expression))
