"""Text of LLVM IR: how types, constants and records are written.

Only syntax that LLVM 15 to 22 share. A warp's value is a vector of 32 lanes.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from optiml_magic.emulator.layout import (
    ACQUIRED,
    ALLOCATION,
    CONTROL,
    FLIGHT,
    HAZARD,
    MBARRIER,
    MEETING,
    PRINT,
    RELEASE,
    SITE,
    WARP,
    WATCH,
    WORKER,
    Record,
)

LANES = 32
FLOATS = {16: "half", 32: "float", 64: "double"}
LANE_NUMBERS = range(LANES)
RECORDS = {
    "W": WORKER,
    "C": CONTROL,
    "A": ALLOCATION,
    "S": SITE,
    "P": WARP,
    "K": WATCH,
    "H": HAZARD,
    "R": PRINT,
    "L": RELEASE,
    "Q": ACQUIRED,
    "F": FLIGHT,
    "M": MBARRIER,
    "E": MEETING,
}


def vector(scalar: str) -> str:
    return f"<{LANES} x {scalar}>"


def integers(bits: int) -> str:
    return vector(f"i{bits}")


def floats(bits: int) -> str:
    return vector(FLOATS[bits])


def constant(value: int, bits: int) -> str:
    """The same integer in all lanes."""
    value &= (1 << bits) - 1
    return each([value] * LANES, bits) if value else "zeroinitializer"


def each(values: Sequence[int], bits: int) -> str:
    """One integer per lane."""
    return "<" + ", ".join(f"i{bits} {v}" for v in values) + ">"


_LONG = 100  # lines of a basic block


class Code:
    """Lines of one function body, with fresh names."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self._count = 0
        self._run = 0  # lines since the last label

    def name(self) -> str:
        self._count += 1
        return f"%v{self._count}"

    def let(self, expression: str) -> str:
        """``%new = expression``; returns the new name."""
        name = self.name()
        self.do(f"{name} = {expression}")
        return name

    def do(self, statement: str) -> None:
        """A new basic block begins where one grows long: LLVM takes the square of its length."""
        if self._run >= _LONG:
            following = f"after{self.name()[1:]}"
            self.lines.append(f"  br label %{following}")
            self.label(following)
        self.lines.append(f"  {statement}")
        self._run += 1

    def label(self, name: str) -> None:
        self.lines.append(f"{name}:")
        self._run = 0

    def splat(self, scalar: str, type_: str) -> str:
        one = self.let(f"insertelement {vector(type_)} undef, {type_} {scalar}, i32 0")
        return self.let(
            f"shufflevector {vector(type_)} {one}, {vector(type_)} undef, "
            f"{vector('i32')} zeroinitializer"
        )

    def at(self, base: str, record: Record, field: str) -> str:
        """A pointer to a field."""
        return self.let(f"getelementptr i8, ptr {base}, i64 {record.offset[field]}")

    def get(self, base: str, record: Record, field: str) -> str:
        return self.let(f"load {record.type[field]}, ptr {self.at(base, record, field)}")

    def set(self, base: str, record: Record, field: str, value: str) -> None:
        self.do(f"store {record.type[field]} {value}, ptr {self.at(base, record, field)}")


# Macros, so that functions written by hand stay readable:
#
#   %x = get %w W.field          load a field of a record
#   set %w W.field %x            store it
#   %x = at %w W.field           its address
#   count %w W.field %x          add to it
#   %v = splat i64 %x            the scalar in all lanes

_NAME = r"(%[\w.]+)"
_FIELD = r"([WCASPKHRLQFME])\.(\w+)"
_VALUE = r"(%?-?[\w.]+)"
_GET = re.compile(rf"\s*{_NAME} = get {_NAME} {_FIELD}")
_SET = re.compile(rf"\s*set {_NAME} {_FIELD} {_VALUE}")
_AT = re.compile(rf"\s*{_NAME} = at {_NAME} {_FIELD}")
_COUNT = re.compile(rf"\s*count {_NAME} {_FIELD} {_VALUE}")
_SPLAT = re.compile(rf"\s*{_NAME} = splat (\w+) {_VALUE}")


def expand(text: str) -> str:
    """IR text with the macros above replaced by plain instructions."""
    return "\n".join(
        "\n".join(_expanded(line, number)) for number, line in enumerate(text.splitlines())
    )


def _expanded(line: str, number: int) -> list[str]:
    pointer = f"%p.{number}"
    if match := _GET.match(line):
        name, base, record, field = match.groups()
        kind = RECORDS[record]
        return [
            _pointer(pointer, base, kind, field),
            f"{name} = load {kind.type[field]}, ptr {pointer}",
        ]
    if match := _SET.match(line):
        base, record, field, value = match.groups()
        kind = RECORDS[record]
        return [
            _pointer(pointer, base, kind, field),
            f"store {kind.type[field]} {value}, ptr {pointer}",
        ]
    if match := _AT.match(line):
        name, base, record, field = match.groups()
        return [_pointer(name, base, RECORDS[record], field)]
    if match := _COUNT.match(line):
        base, record, field, value = match.groups()
        kind = RECORDS[record]
        type_ = kind.type[field]
        return [
            _pointer(pointer, base, kind, field),
            f"%o.{number} = load {type_}, ptr {pointer}",
            f"%n.{number} = add {type_} %o.{number}, {value}",
            f"store {type_} %n.{number}, ptr {pointer}",
        ]
    if match := _SPLAT.match(line):
        name, type_, value = match.groups()
        kind_ = vector(type_)
        return [
            f"{name}.s = insertelement {kind_} undef, {type_} {value}, i32 0",
            f"{name} = shufflevector {kind_} {name}.s, {kind_} undef, <32 x i32> zeroinitializer",
        ]
    return [line]


def _pointer(name: str, base: str, record: Record, field: str) -> str:
    return f"{name} = getelementptr i8, ptr {base}, i64 {record.offset[field]}"
