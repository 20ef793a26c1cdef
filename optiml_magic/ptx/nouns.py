"""The nouns of PTX: a module holds variables and functions, a function holds instructions.

Source: PTX ISA 9.x, "Syntax", "State Spaces, Types, and Variables", "Instruction Operands".
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from functools import cached_property

_BITS = re.compile(r"(\d+)(x2)?$")


def bits(type_: str) -> int:
    """Width of a PTX type in bits: ``s32`` 32, ``f16x2`` 32, ``pred`` 1."""
    if type_ == "pred":
        return 1
    match = _BITS.search(type_)
    if match is None:
        raise ValueError(f"no width known for the PTX type {type_!r}")
    return int(match[1]) * (2 if match[2] else 1)


@dataclass(frozen=True)
class Register:
    name: str
    type: str


@dataclass(frozen=True)
class Immediate:
    """An integer, or the bits of a float literal (``kind`` f32 or f64)."""

    value: int
    kind: str = "int"


@dataclass(frozen=True)
class Symbol:
    """A variable, label or function, with a byte offset."""

    name: str
    offset: int = 0


@dataclass(frozen=True)
class Special:
    """A read-only register of the machine, such as ``%tid.x``."""

    name: str


@dataclass(frozen=True)
class Address:
    base: Register | Symbol | Immediate
    offset: int = 0


@dataclass(frozen=True)
class Vector:
    items: tuple[Operand, ...]


@dataclass(frozen=True)
class Pair:
    """``r|p``: a destination and a predicate written beside it."""

    first: Operand
    second: Operand


@dataclass(frozen=True)
class Negated:
    """``!p``."""

    register: Register


@dataclass(frozen=True)
class Sink:
    """``_``: a result that nobody wants."""


Operand = Register | Immediate | Symbol | Special | Address | Vector | Pair | Negated | Sink


@dataclass(frozen=True)
class Instruction:
    opcode: str  # "ld.global.f32"
    operands: tuple[Operand, ...]
    line: int  # of the compiled text, 0 unknown
    guard: Register | None = None
    unless: bool = False  # the guard is negated
    counted: bool = True  # False for what this package inserts
    ptx_line: int = 0  # of the PTX, 0 unknown

    @cached_property
    def parts(self) -> tuple[str, ...]:
        return tuple(self.opcode.split("."))

    @cached_property
    def base(self) -> str:
        return self.parts[0]

    @cached_property
    def type(self) -> str:
        """The last type named by the opcode: of ``cvt.rn.f32.s32`` that is ``s32``."""
        return next((p for p in reversed(self.parts) if is_type(p)), "b32")


@dataclass(frozen=True)
class Label:
    name: str


@dataclass(frozen=True)
class Call:
    """A call of a device function; arguments and results are param variables of the caller."""

    target: str
    arguments: tuple[str, ...]
    results: tuple[str, ...]
    line: int
    guard: Register | None = None
    unless: bool = False  # the guard is negated
    pointer: Register | None = None  # holds the function's address; then ``target`` is empty


Item = Instruction | Label | Call


@dataclass(frozen=True)
class Variable:
    """A declared variable; ``size`` in bytes, 0 for an extern array of unknown size."""

    name: str
    space: str  # global const shared local param
    size: int
    align: int
    initial: tuple[int | Symbol, ...] = ()
    element: int = 1  # bytes of one initialiser


@dataclass
class Function:
    """``most_threads`` and ``block`` limit the launches of a kernel, where it says so."""

    name: str
    entry: bool
    params: list[Variable]
    results: list[Variable]
    variables: list[Variable] = field(default_factory=list)
    body: list[Item] = field(default_factory=list)
    tables: dict[str, tuple[str, ...]] = field(default_factory=dict)  # of brx.idx
    most_threads: int | None = None
    block: tuple[int, int, int] | None = None


@dataclass
class PtxModule:
    variables: list[Variable]
    functions: dict[str, Function]

    @cached_property
    def pointed_to(self) -> tuple[str, ...]:
        """The device functions whose address is taken, in the order of the text."""
        named = {s.name for v in self.variables for s in v.initial if isinstance(s, Symbol)}
        for function in self.functions.values():
            for item in function.body:
                if isinstance(item, Instruction) and item.base == "mov":
                    named |= {o.name for o in item.operands if isinstance(o, Symbol)}
        return tuple(n for n, f in self.functions.items() if n in named and not f.entry)


_TYPE = re.compile(r"[subf](8|16|32|64|128)(x2)?$|bf16(x2)?$|pred$|tf32$|e[45]m[23](x2)?$")


def is_type(part: str) -> bool:
    return _TYPE.match(part) is not None
