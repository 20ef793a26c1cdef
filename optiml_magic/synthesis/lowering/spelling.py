"""Expressions and statements of a kernel, made from nothing: numbers, types, sums of indices."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

import numpy as np

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
    Step,
    Unary,
)
from optiml_magic.kernels.tree import Block, Declare, Evaluate, If, Loop, Statement, TypeName
from optiml_magic.kernels.tree import Variable as Local
from optiml_magic.model.dtypes import BFLOAT16, kind, title
from optiml_magic.synthesis.graph import DType
from optiml_magic.synthesis.refusals import RefusalError

_TYPES = MappingProxyType({
    "bool": "bool", "int8": "signed char", "uint8": "unsigned char", "int16": "short",
    "uint16": "unsigned short", "int32": "int", "uint32": "unsigned", "int64": "long long",
    "uint64": "unsigned long long", "float16": "__half", "float32": "float", "float64": "double",
})  # fmt: skip
#: Signed whole numbers that hold another: what need not be converted.
_WIDER = MappingProxyType({"bool": 1, "signed char": 2, "short": 3, "int": 4, "long long": 5})
_RESERVED = frozenset({
    "alignas", "alignof", "and", "asm", "auto", "bool", "break", "case", "catch", "char", "class",
    "const", "constexpr", "continue", "decltype", "default", "delete", "do", "double", "else",
    "enum", "explicit", "export", "extern", "false", "float", "for", "friend", "goto",
    "if", "inline", "int", "long", "main", "max", "min", "mutable", "namespace", "new", "noexcept",
    "not", "nullptr", "operator", "or", "private", "protected", "public", "register", "return",
    "short", "signed", "sizeof", "static", "struct", "switch", "template", "this", "throw", "true",
    "try", "typedef", "typeid", "typename", "union", "unsigned", "using", "virtual", "void",
    "volatile", "warpSize", "while", "xor", "abs", "blockDim", "blockIdx", "gridDim", "threadIdx",
    "INFINITY", "NAN",
})  # fmt: skip

_HEIGHT = 20  # expressions in each other


@dataclass(frozen=True)
class Value:
    """An expression and its C++ type, which may be narrower than the node's dtype needs."""

    expression: Expr
    type: str


def type_of(dtype: DType) -> str:
    """How an element is stored; RefusalError for what kernels do not hold here."""
    if dtype == BFLOAT16:
        return "__nv_bfloat16"
    found = _TYPES.get(dtype.name) if kind(dtype) != "V" else None
    if found is None:
        raise RefusalError(f"{title(dtype)} is not computed with", _OTHER[kind(dtype) == "c"])
    return found


_OTHER = ("give arrays of numbers, a struct by its members", "compute real and imaginary parts")


def computed(dtype: DType) -> str:
    """The type that an element is computed in: halves as floats."""
    stored = type_of(dtype)
    return "float" if stored in ("__half", "__nv_bfloat16") else stored


def reserved(name: str) -> bool:
    """Whether a name means something to C++ or to CUDA."""
    return name in _RESERVED or name.startswith("__")


def name(text: str) -> Expr:
    return Name(None, text)


def integer(value: int) -> Expr:
    return Literal(None, str(value), value)


def number(value: Any, kind_: str) -> Expr:
    """A literal of a C++ type."""
    if kind_ in ("float", "double"):
        return _real(np.float32(value) if kind_ == "float" else np.float64(value), kind_)
    if kind_ == "bool":
        return Literal(None, "true" if value else "false", int(bool(value)))
    whole = int(value)
    suffix = {"long long": "LL", "unsigned": "u", "unsigned long long": "ull"}.get(kind_, "")
    least = {"int": -(2**31), "long long": -(2**63)}.get(kind_)
    if whole == least:
        return Binary(None, "-", Literal(None, f"{whole + 1}{suffix}", whole + 1), integer(1))
    return Literal(None, f"{whole}{suffix}", whole)


def _real(value: Any, kind_: str) -> Expr:
    if math.isnan(value):
        return name("NAN")
    if math.isinf(value):
        return name("INFINITY") if value > 0 else Unary(None, "-", name("INFINITY"))
    text = np.format_float_positional(value, trim="0")
    if len(text) > 12:
        text = np.format_float_scientific(value, trim="0")
    return Literal(None, text + ("f" if kind_ == "float" else ""), float(value))


def binary(op: str, left: Expr, right: Expr) -> Expr:
    return Binary(None, op, left, right)


def sum_of(left: Expr, right: Expr) -> Expr:
    """``left + right``, where the right is a sum without parentheses."""
    if isinstance(right, Binary) and right.op in "+-" and right.span is None:
        return Binary(None, right.op, sum_of(left, right.left), right.right)
    return binary("+", left, right)


def unary(op: str, operand: Expr) -> Expr:
    return Unary(None, op, operand)


def call(function: str, *arguments: Expr) -> Expr:
    return Call(None, function, arguments)


def choice(test: Expr, then: Expr, other: Expr) -> Expr:
    return Choice(None, test, then, other)


def cast(kind_: str, operand: Expr) -> Expr:
    return Cast(None, kind_, operand)


def element(array: str, index: Expr) -> Expr:
    return Index(None, name(array), index)


def builtin(base: str, field: str) -> Expr:
    return Member(None, name(base), field)


def converted(value: Value, kind_: str) -> Expr:
    """The value as one of another type; a literal is spelled so."""
    if value.type == kind_:
        return value.expression
    inner = value.expression
    if isinstance(inner, Literal) and inner.value is not None:
        return number(inner.value, kind_)
    if kind_ == "bool":
        return binary("!=", inner, number(0, value.type))
    return cast(kind_, inner)


def widened(value: Value, kind_: str) -> Value:
    """As ``converted``; a signed number that the wider type holds as well stays as it is."""
    rank, wanted = _WIDER.get(value.type), _WIDER.get(kind_)
    if rank is not None and wanted is not None and 1 < rank <= wanted:
        return value
    return Value(converted(value, kind_), kind_)


def stored(value: Value, dtype: DType) -> Expr:
    """The value as an element of an array."""
    kind_ = type_of(dtype)
    held = converted(value, computed(dtype))
    if kind_ == computed(dtype):
        return held
    if isinstance(held, Cast) and isinstance(held.operand, Cast) and held.operand.type == kind_:
        return held.operand  # rounded already
    return cast(kind_, held)


def rounded(value: Value, dtype: DType) -> Value:
    """A float that was converted to a narrower type by wish."""
    kind_ = type_of(dtype)
    if kind_ == computed(dtype):
        return value
    return Value(cast(value.type, cast(kind_, value.expression)), value.type)


def assign(target: Expr, value: Expr, op: str = "=") -> Statement:
    return Evaluate(None, 0, Assign(None, op, target, value))


def declare(kind_: str, local: str, value: Expr | None = None) -> Statement:
    variable = Local(local, TypeName(kind_), "local", 0, value=value)
    return Declare(None, 0, f"{kind_} ", (variable,))


def block(statements: Iterable[Statement]) -> Block:
    return Block(None, 0, tuple(statements))


def branch(
    test: Expr, then: Iterable[Statement], other: Iterable[Statement] | None = None
) -> Statement:
    return If(None, 0, test, block(then), None if other is None else block(other))


def repeat(test: Expr, body: Iterable[Statement]) -> Statement:
    return Loop(None, 0, "while", None, test, None, block(body))


def loop(counter: str, start: Expr, stop: Expr, body: Iterable[Statement]) -> Statement:
    test = binary("<", name(counter), stop)
    update = Step(None, "++", name(counter), False)
    return Loop(None, 0, "for", declare("int", counter, start), test, update, block(body))


def evaluate(expression: Expr) -> Statement:
    """An expression for its effect."""
    return Evaluate(None, 0, expression)


def is_work(expression: Expr) -> bool:
    """Whether an expression deserves a name."""
    if isinstance(expression, (Name, Literal)):
        return False
    parts = expression.parts
    return len(parts) != 1 or not isinstance(parts[0], (Name, Literal))


def is_high(expression: Expr, height: int = _HEIGHT) -> bool:
    """Whether so many expressions stand in each other that a compiler may complain."""
    if not height:
        return True
    return any(is_high(part, height - 1) for part in expression.parts)
