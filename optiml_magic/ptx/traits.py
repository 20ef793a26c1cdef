"""What an instruction is, without saying what it does: registers, class, operations."""

from __future__ import annotations

from collections.abc import Iterator

from optiml_magic.ptx.nouns import (
    Address,
    Instruction,
    Negated,
    Operand,
    Pair,
    Register,
    Vector,
)

CARRY = Register("%CC", "pred")  # the carry flag of add.cc (PTX ISA, "Extended-Precision")

_NO_RESULT = frozenset(
    [
        "st",
        "red",
        "bra",
        "brx",
        "ret",
        "exit",
        "trap",
        "membar",
        "fence",
        "nanosleep",
        "prefetch",
        "prefetchu",
        "discard",
        "applypriority",
        "assertfail",
        "vprintf",
        "cp",
        "brkpt",
        "pmevent",
        "bar",
        "barrier",
    ]
)


def is_barrier(instruction: Instruction) -> bool:
    """``bar.sync`` and its kin, where warps wait for each other; not ``bar.warp.sync``."""
    return instruction.base in ("bar", "barrier") and "warp" not in instruction.parts


def is_exchange(instruction: Instruction) -> bool:
    """Lanes of a warp wait for each other in it: shuffles, votes, ``bar.warp.sync``."""
    if instruction.base in ("bar", "barrier"):
        return "warp" in instruction.parts
    return instruction.base in ("shfl", "vote", "match", "redux", "elect", "activemask")


def has_result(instruction: Instruction) -> bool:
    if instruction.base == "mbarrier":
        return not isinstance(instruction.operands[0], Address)
    return instruction.base not in _NO_RESULT


def registers(operand: Operand) -> Iterator[Register]:
    match operand:
        case Register():
            yield operand
        case Address(base=Register() as base):
            yield base
        case Negated():
            yield operand.register
        case Vector():
            for item in operand.items:
                yield from registers(item)
        case Pair():
            yield from registers(operand.first)
            yield from registers(operand.second)


def defined(instruction: Instruction) -> Iterator[Register]:
    if has_result(instruction) and instruction.operands:
        yield from registers(instruction.operands[0])
    if "cc" in instruction.parts:
        yield CARRY


def used(instruction: Instruction) -> Iterator[Register]:
    """Registers that are read; a predicated instruction keeps, so reads, its old result."""
    sources = instruction.operands[1:] if has_result(instruction) else instruction.operands
    for operand in sources:
        yield from registers(operand)
    if instruction.guard is not None:
        yield instruction.guard
        yield from defined(instruction)
    if instruction.base in ("addc", "subc", "madc"):
        yield CARRY


_CONTROL = frozenset(
    ["bra", "brx", "ret", "exit", "trap", "call", "assertfail", "vprintf", "brkpt", "nanosleep"]
)
_MEMORY = frozenset(
    [
        "ld",
        "st",
        "ldu",
        "atom",
        "red",
        "prefetch",
        "prefetchu",
        "cp",
        "mbarrier",
        "ldmatrix",
        "stmatrix",
        "discard",
        "applypriority",
    ]
)
_SFU = frozenset(["rcp", "rsqrt", "sqrt", "sin", "cos", "ex2", "lg2", "tanh"])
_FLOATS = {"f16": "fp16", "bf16": "fp16", "f32": "fp32", "f64": "fp64"}


def kind(instruction: Instruction) -> str:
    """fp32 fp64 fp16 int sfu memory control barrier other: the classes of KernelCounters."""
    base = instruction.base
    if base in ("bar", "barrier", "membar", "fence"):
        return "barrier"
    if base in _CONTROL:
        return "control"
    if base in _MEMORY:
        return "memory"
    float_ = _FLOATS.get(instruction.type.removesuffix("x2"))
    if base in _SFU or (base == "div" and float_):
        return "sfu" if float_ != "fp64" else "fp64"
    if base in ("mov", "cvta", "shfl", "vote", "match", "activemask", "redux", "elect", "isspacep"):
        return "other"
    return float_ or "int"


def flops(instruction: Instruction) -> tuple[str, int]:
    """Operations of one lane by dtype: add, sub, mul count one and fma two, as ncu counts them."""
    type_ = instruction.type
    name = type_.removesuffix("x2").removeprefix("b")
    if name not in ("f16", "f32", "f64"):
        return "", 0
    count = {"add": 1, "sub": 1, "mul": 1, "fma": 2, "mad": 2}.get(instruction.base, 0)
    return name, count * (2 if type_.endswith("x2") else 1)
