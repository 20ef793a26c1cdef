"""The types of expressions: kind, width, signedness, and the usual arithmetic conversions.

Sources: the C++ standard, [conv.prom] and [expr.arith.conv]; a 64-bit CUDA compiler, whose ``long``
has 8 bytes.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Literal

from optiml_magic.source.dtypes import element_dtype

Kind = Literal["int", "float", "bool", "complex", "vector", "record", "void", "unknown"]
_KINDS: dict[str, Kind] = {"i": "int", "u": "int", "f": "float", "b": "bool", "c": "complex"}
_MOST = 20
_DROPPED = re.compile(r"\b(?:const|volatile|struct|union|enum|typename|constexpr|__restrict__)\b")


@dataclass(frozen=True, slots=True)
class CType:
    """``size`` is in bytes, of all lanes, and None where it is not known.

    ``depth`` counts pointers; kind, size and lanes are then those of what they lead to.
    """

    name: str
    kind: Kind
    size: int | None = None
    signed: bool = False
    lanes: int = 1
    depth: int = 0

    @property
    def integral(self) -> bool:
        return self.depth == 0 and self.kind in ("int", "bool")

    @property
    def floating(self) -> bool:
        return self.depth == 0 and self.kind == "float"

    @property
    def dtype(self) -> str:
        """A plain number's type as a directive says it, ``<f4``."""
        return f"<{'f' if self.floating else 'i' if self.signed else 'u'}{self.size}"

    @property
    def lane(self) -> CType:
        """The type of one number of a vector."""
        if self.lanes == 1 or self.size is None:
            return self
        return scalar("ifu"["ifu".find(_lane_kind(self.name))], self.size // self.lanes)

    @property
    def pointee(self) -> CType:
        return replace(self, depth=max(0, self.depth - 1))

    @property
    def pointer(self) -> CType:
        return replace(self, depth=self.depth + 1)

    @property
    def stride(self) -> int | None:
        """Bytes from one element to the next of what this points to."""
        return 8 if self.depth > 1 else self.size


UNKNOWN = CType("", "unknown")
INT = CType("int", "int", 4, signed=True)
UINT = CType("unsigned int", "int", 4)
LONG = CType("long", "int", 8, signed=True)
SIZE = CType("unsigned long", "int", 8)
BOOL = CType("bool", "bool", 1)
FLOAT = CType("float", "float", 4, signed=True)
DOUBLE = CType("double", "float", 8, signed=True)
VOID = CType("void", "void")
_NAMES = {
    ("i", 1): "signed char", ("i", 2): "short", ("i", 4): "int", ("i", 8): "long",
    ("u", 1): "unsigned char", ("u", 2): "unsigned short", ("u", 4): "unsigned int",
    ("u", 8): "unsigned long", ("f", 2): "__half", ("f", 4): "float", ("f", 8): "double",
}  # fmt: skip


def scalar(code: str, size: int) -> CType:
    """The number type of a NumPy kind and a size in bytes."""
    name = _NAMES.get((code, size), "")
    return CType(name, _KINDS[code], size, code in "if") if name else UNKNOWN


@lru_cache(maxsize=4096)
def _named(base: str) -> CType:
    if base == "void":
        return VOID
    dtype, lanes = element_dtype(base)
    if dtype is None:
        return CType(base, "unknown" if not base or base == "auto" else "record")
    code, each = ("f", 2) if dtype == "bfloat16" else (dtype[1], int(dtype[2:]))
    kind = _KINDS[code]
    if lanes > 1:
        # A vector of three has no padding: CUDA's float3 takes 12 bytes.
        return CType(base, "vector", each * lanes, code in "if", lanes)
    return CType(base, kind, each, code in "if")


def named(spelled: str, names: Mapping[str, str]) -> CType:
    """The type that a text spells, with typedefs and template parameters in ``names`` followed."""
    depth = 0
    for _ in range(_MOST):
        depth += spelled.count("*")
        spelled = " ".join(_DROPPED.sub(" ", spelled.replace("*", " ").replace("&", " ")).split())
        if spelled not in names or names[spelled] == spelled:
            break
        spelled = names[spelled]
    found = _named(spelled)
    return replace(found, depth=depth) if depth else found


def promoted(kind: CType) -> CType:
    """What arithmetic makes of a narrow integer before anything else."""
    return INT if kind.integral and (kind.size or 4) < 4 else kind


def arithmetic(left: CType, right: CType) -> CType:
    """The type of ``left + right``."""
    if left.depth or right.depth:
        return left if left.depth else right
    if left.kind not in ("int", "bool", "float") or right.kind not in ("int", "bool", "float"):
        vectors = [side for side in (left, right) if side.kind not in ("int", "bool", "float")]
        return vectors[0]
    if left.floating or right.floating:
        floats = [side for side in (left, right) if side.floating]
        return max(floats, key=lambda side: side.size or 0)
    left, right = promoted(left), promoted(right)
    if left.size != right.size:
        return max(left, right, key=lambda side: side.size or 0)
    return right if left.signed else left


def keeps(own: CType, other: CType) -> bool:
    """Whether a type holds each number of another as it is."""
    if own == other or own.depth or other.depth:
        return own == other or (own.depth == other.depth and own.name == other.name)
    if own.lanes != 1 or other.lanes != 1 or not (other.integral or other.floating):
        return False
    size, least = own.size or 0, other.size or 0
    if own.floating:
        return least <= size if other.floating else least < size
    signed = own.signed == other.signed or (own.signed and least < size)
    return own.kind == "int" and other.integral and signed and least <= size


def _lane_kind(name: str) -> str:
    """The NumPy kind of a lane of a vector type."""
    dtype, _ = element_dtype(name)
    return "f" if dtype is None or dtype == "bfloat16" else dtype[1]
