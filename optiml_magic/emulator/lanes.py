"""The registers of 32 lanes while one block is lowered: read, write, merge under masks.

Every value is a vector of integers of the register's width; floats are bit casts of it.
A register that outlives its block lies in the warp's record; all others are SSA values.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np

from optiml_magic.emulator.ir import Code, constant, each, floats, integers, vector
from optiml_magic.emulator.layout import TID, WORKER
from optiml_magic.emulator.sites import Tables
from optiml_magic.ptx.faults import UnsupportedPtx
from optiml_magic.ptx.nouns import (
    Immediate,
    Instruction,
    Negated,
    Operand,
    Register,
    Sink,
    Special,
    Symbol,
    bits,
)

if TYPE_CHECKING:
    from optiml_magic.emulator.watch import Watch

_SINGLE = 32  # bits


class Lanes:
    """What the functions in ``instructions`` work on."""

    def __init__(
        self,
        code: Code,
        slots: Mapping[str, int],
        symbols: Mapping[str, int],
        mask: str,
        tables: Tables,
    ) -> None:
        self.code = code
        self.slots = slots  # register -> offset in the warp record
        self.symbols = symbols  # variable -> address in its space
        self.block_mask = mask
        self.tables = tables
        self.values: dict[str, str] = {}
        self.dirty: dict[str, Register] = {}
        self.instruction = Instruction("nop", (), 0)
        self.watch: Watch | None = None  # of a kernel that is checked
        self.hosts = ""  # the addresses that were resolved last, for the checks
        self.sources = ""  # the lanes that a shuffle reads from
        self._guard: str | None = None
        self._masks: dict[str | None, tuple[str, str]] = {}

    def begin(self, instruction: Instruction) -> None:
        """``instruction`` is lowered next: its guard holds for what is read and written."""
        self.instruction = instruction
        self._guard = None
        if instruction.guard is not None:
            guard = self.load(instruction.guard)
            self._guard = self._not(guard) if instruction.unless else guard

    def mask(self) -> str:
        """i32 with a bit for each lane that executes the instruction."""
        return self._both()[0]

    def mask_vector(self) -> str:
        return self._both()[1]

    def _both(self) -> tuple[str, str]:
        if self._guard not in self._masks:
            block = self.code.let(f"bitcast i32 {self.block_mask} to {vector('i1')}")
            if self._guard is not None:
                block = self.code.let(f"and {vector('i1')} {block}, {self._guard}")
            number = self.code.let(f"bitcast {vector('i1')} {block} to i32")
            self._masks[self._guard] = number, block
        return self._masks[self._guard]

    def _not(self, predicate: str) -> str:
        return self.code.let(f"xor {vector('i1')} {predicate}, {each([1] * 32, 1)}")

    def load(self, register: Register) -> str:
        """The register's value in its own width (predicates as i1)."""
        if register.name not in self.values:
            self.values[register.name] = self.fetch(register)
        return self.values[register.name]

    def fetch(self, register: Register) -> str:
        """What the warp's record holds for a register, or anything where it holds none."""
        if register.name not in self.slots:
            return "zeroinitializer"
        pointer = self.slot(register)
        if register.type == "pred":
            packed = self.code.let(f"load i32, ptr {pointer}")
            return self.code.let(f"bitcast i32 {packed} to {vector('i1')}")
        return self.code.let(f"load {integers(bits(register.type))}, ptr {pointer}, align 16")

    def slot(self, register: Register) -> str:
        return self.code.let(f"getelementptr i8, ptr %warp, i64 {self.slots[register.name]}")

    def read(self, operand: Operand, type_: str) -> str:
        """The operand as integers of the width of ``type_``."""
        width = bits(type_)
        match operand:
            case Register():
                return self.resize(self.load(operand), bits(operand.type), width)
            case Immediate(value=value, kind="f32") if width == 64:
                raise self.unsupported(f"an f32 constant {value:#x} where 64 bits are wanted")
            case Immediate(value=value, kind="f64") if width == _SINGLE:
                (double,) = struct.unpack("<d", value.to_bytes(8, "little"))
                single = np.float32(double).tobytes()
                return constant(int.from_bytes(single, "little"), width)
            case Immediate():
                return constant(operand.value, width)
            case Symbol():
                return constant(self.address_of(operand), width)
            case Special():
                return self.resize(*self._special(operand.name), width)
            case _:
                raise self.unsupported("this kind of operand")

    def read_float(self, operand: Operand, type_: str) -> str:
        return self.as_float(self.read(operand, type_), bits(type_))

    def predicate(self, operand: Operand) -> str:
        match operand:
            case Register():
                return self.load(operand)
            case Negated():
                return self._not(self.load(operand.register))
            case Immediate():
                return constant(-1 if operand.value else 0, 1)
            case _:
                raise self.unsupported("this kind of predicate")

    def address_of(self, symbol: Symbol) -> int:
        if symbol.name not in self.symbols:
            raise self.unsupported(f"the symbol `{symbol.name}`")
        return self.symbols[symbol.name] + symbol.offset

    def write(self, operand: Operand, value: str, type_: str) -> None:
        """``value`` has the width of ``type_``; a wider register is extended by its sign."""
        if isinstance(operand, Sink):
            return
        if not isinstance(operand, Register):
            raise self.unsupported("this kind of destination")
        value = self.resize(value, bits(type_), bits(operand.type), signed=type_[0] == "s")
        self.assign(operand, value)

    def write_float(self, operand: Operand, value: str, type_: str) -> None:
        self.write(operand, self.as_integer(value, bits(type_)), type_)

    def assign(self, register: Register, value: str) -> None:
        if self._guard is not None:
            type_ = vector("i1") if register.type == "pred" else integers(bits(register.type))
            old = self.load(register)
            value = self.code.let(
                f"select {vector('i1')} {self._guard}, {type_} {value}, {type_} {old}"
            )
        self.values[register.name] = value
        self.dirty[register.name] = register

    def flush(self, live: frozenset[str]) -> None:
        """Store what was written and outlives the block, in the active lanes only."""
        active = ""
        for name, register in self.dirty.items():
            if name not in live:
                continue
            active = active or self.code.let(f"bitcast i32 {self.block_mask} to {vector('i1')}")
            type_ = vector("i1") if register.type == "pred" else integers(bits(register.type))
            old = self.fetch(register)
            merged = self.code.let(
                f"select {vector('i1')} {active}, {type_} {self.values[name]}, {type_} {old}"
            )
            if register.type == "pred":
                merged, type_ = self.code.let(f"bitcast {type_} {merged} to i32"), "i32"
            self.code.do(f"store {type_} {merged}, ptr {self.slot(register)}, align 4")

    def resize(self, value: str, have: int, want: int, *, signed: bool = False) -> str:
        if have == want:
            return value
        how = "trunc" if have > want else "sext" if signed else "zext"
        return self.code.let(f"{how} {integers(have)} {value} to {integers(want)}")

    def as_float(self, value: str, width: int) -> str:
        return self.code.let(f"bitcast {integers(width)} {value} to {floats(width)}")

    def as_integer(self, value: str, width: int) -> str:
        return self.code.let(f"bitcast {floats(width)} {value} to {integers(width)}")

    def call(self, name: str, result: str, *arguments: str) -> str:
        """Call a function with typed arguments; ``result`` is a type, or void."""
        text = f"call {result} @{name}({', '.join(arguments)})"
        if result == "void":
            self.code.do(text)
            return ""
        return self.code.let(text)

    def map(self, name: str, width: int, *values: str) -> str:
        """Call an LLVM intrinsic on vectors of floats."""
        suffix = f"v32f{width}"
        arguments = (f"{floats(width)} {v}" for v in values)
        return self.call(f"llvm.{name}.{suffix}", floats(width), *arguments)

    def unsupported(self, what: str = "") -> UnsupportedPtx:
        i = self.instruction
        tail = f": {what}" if what else ""
        where = f" (line {i.line})" if i.line else ""
        return UnsupportedPtx(
            i.opcode, i.line, f"The emulator does not support `{i.opcode}`{tail}{where}."
        )

    def _special(self, name: str) -> tuple[str, int]:
        """The value and its width in bits."""
        root, _, axis = name[1:].partition(".")
        if root == "tid":
            pointer = self.code.let(f"getelementptr i8, ptr %warp, i64 {TID[axis]}")
            return self.code.let(f"load {integers(32)}, ptr {pointer}, align 16"), 32
        if root in ("ntid", "ctaid", "nctaid"):
            return self._uniform(f"{root}_{axis}"), 32
        if root == "laneid":
            return each(range(32), 32), 32
        if root.startswith("lanemask_"):
            masks = {
                "eq": [1 << i for i in range(32)],
                "lt": [(1 << i) - 1 for i in range(32)],
                "le": [(2 << i) - 1 for i in range(32)],
                "gt": [0xFFFFFFFF & ~((2 << i) - 1) for i in range(32)],
                "ge": [0xFFFFFFFF & ~((1 << i) - 1) for i in range(32)],
            }
            return each(masks[root.removeprefix("lanemask_")], 32), 32
        if root == "warpid":
            return self._uniform("warp"), 32
        if root == "nwarpid":
            return self._uniform("warps"), 32
        if root in ("clock", "clock64", "globaltimer", "globaltimer_lo", "clock_hi"):
            cycles = self.code.let("call i64 @llvm.readcyclecounter()")
            return self.code.splat(cycles, "i64"), 64
        if root in ("smid", "gridid", "globaltimer_hi"):
            return "zeroinitializer", 32
        if root == "nsmid":
            return constant(1, 32), 32
        if root in ("dynamic_smem_size", "total_smem_size"):
            field = "dynamic_shared" if root == "dynamic_smem_size" else "shared_size"
            size = self.code.get("%w", WORKER, field)
            return self.code.splat(size, "i64"), 64
        raise self.unsupported(f"the register {name}")

    def _uniform(self, field: str) -> str:
        return self.code.splat(self.code.get("%w", WORKER, field), "i32")
