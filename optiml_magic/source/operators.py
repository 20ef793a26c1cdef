"""What the operators and functions of directive expressions mean: C's integers."""

from __future__ import annotations

from types import MappingProxyType
from typing import TYPE_CHECKING

from optiml_magic.errors import SourceError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

#: Precedence of the binary operators, the weakest first.
BINARY: Mapping[str, int] = MappingProxyType(
    {
        op: level
        for level, ops in enumerate(
            (("||",), ("&&",), ("|",), ("^",), ("&",), ("==", "!="), ("<", "<=", ">", ">="),
             ("<<", ">>"), ("+", "-"), ("*", "/", "%")), start=1,
        )
        for op in ops
    }
)  # fmt: skip

#: Functions and how many arguments they take.
FUNCTIONS: Mapping[str, int] = MappingProxyType(
    {"cdiv": 2, "min": 2, "max": 2, "size": 1, "shape": 2, "sizeof": 1}
)

#: What an expression may read beside scalars and tuned names: how many multiprocessors there are.
SM_COUNT = "sm_count"

#: Bytes of the types that ``sizeof`` knows, on a 64-bit Linux or Windows device compiler.
SIZES: Mapping[str, int] = MappingProxyType(
    {
        "bool": 1, "char": 1, "signed char": 1, "unsigned char": 1, "int8_t": 1, "uint8_t": 1,
        "short": 2, "unsigned short": 2, "int16_t": 2, "uint16_t": 2, "half": 2, "__half": 2,
        "__nv_bfloat16": 2, "int": 4, "unsigned": 4, "unsigned int": 4, "int32_t": 4,
        "uint32_t": 4, "float": 4, "double": 8, "long long": 8, "unsigned long long": 8,
        "int64_t": 8, "uint64_t": 8, "size_t": 8, "half2": 4, "__half2": 4, "float2": 8,
        "float3": 12, "float4": 16, "int2": 8, "int3": 12, "int4": 16, "uint2": 8, "uint3": 12,
        "uint4": 16, "double2": 16, "char4": 4, "uchar4": 4,
    }
)  # fmt: skip

_PLAIN: Mapping[str, Callable[[int, int], int]] = MappingProxyType(
    {
        "+": lambda a, b: a + b,
        "-": lambda a, b: a - b,
        "*": lambda a, b: a * b,
        "|": lambda a, b: a | b,
        "^": lambda a, b: a ^ b,
        "&": lambda a, b: a & b,
        "==": lambda a, b: int(a == b),
        "!=": lambda a, b: int(a != b),
        "<": lambda a, b: int(a < b),
        "<=": lambda a, b: int(a <= b),
        ">": lambda a, b: int(a > b),
        ">=": lambda a, b: int(a >= b),
    }
)


def apply_binary(op: str, left: int, right: int) -> int:
    """One operator on two values; ``&&`` and ``||`` belong to the caller, who evaluates lazily."""
    if op in _PLAIN:
        return _PLAIN[op](left, right)
    if op in ("<<", ">>"):
        if not 0 <= right < 64:
            raise SourceError(f"a shift by {right}", fix="shift by 0 to 63 bits")
        return left << right if op == "<<" else left >> right
    quotient = divide(left, right)
    return quotient if op == "/" else left - quotient * right


def apply_function(function: str, values: Sequence[int]) -> int:
    """``cdiv``, ``min`` or ``max``; ``cdiv`` rounds the exact quotient up."""
    left, right = values
    if function == "cdiv":
        if right == 0:
            divide(left, right)
        return -(-left // right)
    return min(left, right) if function == "min" else max(left, right)


def divide(left: int, right: int) -> int:
    """The quotient rounded toward zero, as C does."""
    if right == 0:
        raise SourceError("a division by zero", fix="give the divisor a value other than 0")
    quotient = abs(left) // abs(right)
    return quotient if (left < 0) == (right < 0) else -quotient
