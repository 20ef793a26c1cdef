"""f16, alone and in pairs: computed in f64, where it is exact, and rounded once.

Source: PTX ISA, "Half Precision Floating-Point Instructions".
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from optiml_magic.emulator.ir import constant, floats, integers
from optiml_magic.emulator.lanes import Lanes
from optiml_magic.emulator.ptx import Instruction, Operand

_OPERATION = {"add": "fadd", "sub": "fsub", "mul": "fmul"}
_MODIFIERS = frozenset(("ftz", "sat", "relu", "oob"))


def is_half(type_: str) -> bool:
    return type_ in ("f16", "f16x2", "bf16", "bf16x2")


def binary(k: Lanes, i: Instruction) -> None:
    operation = _OPERATION[i.base]
    _each(k, i, 2, lambda v: k.code.let(f"{operation} {floats(64)} {v[0]}, {v[1]}"))


def fused(k: Lanes, i: Instruction) -> None:
    """A product of halves is exact in f64, and its sum is as exact as one rounding to f16 needs."""

    def compute(v: Sequence[str]) -> str:
        product = k.code.let(f"fmul {floats(64)} {v[0]}, {v[1]}")
        return k.code.let(f"fadd {floats(64)} {product}, {v[2]}")

    _each(k, i, 3, compute)


def extreme(k: Lanes, i: Instruction, choose: Callable[[str, str], str]) -> None:
    _each(k, i, 2, lambda v: choose(v[0], v[1]))


def _each(k: Lanes, i: Instruction, count: int, compute: Callable[[Sequence[str]], str]) -> None:
    """Run ``compute`` on f64 values for the half, or for both halves of a pair."""
    if i.type.startswith("bf") or _MODIFIERS & set(i.parts):
        raise k.unsupported()
    sources = [parts(k, operand, i.type) for operand in i.operands[1 : 1 + count]]
    results = [compute([widened(k, v) for v in values]) for values in zip(*sources, strict=True)]
    join(k, i.operands[0], [narrowed(k, r) for r in results])


def parts(k: Lanes, operand: Operand, type_: str) -> list[str]:
    """The halves that an operand holds, the low one first."""
    if not type_.endswith("x2"):
        return [k.read_float(operand, "f16")]
    both = k.read(operand, "b32")
    high = k.code.let(f"lshr {integers(32)} {both}, {constant(16, 32)}")
    return [k.as_float(k.resize(v, 32, 16), 16) for v in (both, high)]


def join(k: Lanes, target: Operand, halves: Sequence[str]) -> None:
    raw = [k.as_integer(h, 16) for h in halves]
    if len(raw) == 1:
        k.write(target, raw[0], "b16")
        return
    low, high = (k.resize(r, 16, 32) for r in raw)
    up = k.code.let(f"shl {integers(32)} {high}, {constant(16, 32)}")
    k.write(target, k.code.let(f"or {integers(32)} {up}, {low}"), "b32")


def widened(k: Lanes, half: str) -> str:
    """f16 to f64, exactly."""
    single = k.call("om_f32_of_half", floats(32), f"{floats(16)} {half}")
    return k.code.let(f"fpext {floats(32)} {single} to {floats(64)}")


def narrowed(k: Lanes, value: str) -> str:
    """f64 to f16, to nearest even."""
    return k.call("om_half_of_f64", floats(16), f"{floats(64)} {value}")
