"""f16 and bf16, alone and in pairs: computed in f64, where it is exact, and rounded once.

A half is its 16 bits until it is widened.
Source: PTX ISA, "Half Precision Floating-Point Instructions".
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from optiml_magic.emulator.ir import constant, floats, integers, vector
from optiml_magic.emulator.lanes import Lanes
from optiml_magic.emulator.library.half import FORMATS
from optiml_magic.ptx.nouns import Instruction, Operand

_OPERATION = {"add": "fadd", "sub": "fsub", "mul": "fmul"}


def is_half(type_: str) -> bool:
    return type_ in ("f16", "f16x2", "bf16", "bf16x2")


def kind_of(type_: str) -> str:
    """``f16`` or ``bf16``, also of a pair."""
    return type_.removesuffix("x2")


def binary(k: Lanes, i: Instruction) -> None:
    operation = _OPERATION[i.base]
    _each(k, i, 2, lambda v: k.code.let(f"{operation} {floats(64)} {v[0]}, {v[1]}"))


def fused(k: Lanes, i: Instruction) -> None:
    """A product of halves is exact in f64.

    With f16 the sum is as exact as one rounding to f16 needs; bf16 has so many exponents that the
    sum must be rounded to odd first.
    """

    def compute(v: Sequence[str]) -> str:
        if kind_of(i.type) == "bf16":
            arguments = ", ".join(f"{floats(64)} {x}" for x in v)
            return k.call("om_fma_odd", floats(64), arguments)
        product = k.code.let(f"fmul {floats(64)} {v[0]}, {v[1]}")
        return k.code.let(f"fadd {floats(64)} {product}, {v[2]}")

    _each(k, i, 3, compute)


def extreme(k: Lanes, i: Instruction, choose: Callable[[str, str], str]) -> None:
    _each(k, i, 2, lambda v: choose(v[0], v[1]))


def function(k: Lanes, i: Instruction, compute: Callable[[str], str]) -> None:
    """A function of f32, of each half."""

    def single(v: Sequence[str]) -> str:
        narrow = k.code.let(f"fptrunc {floats(64)} {v[0]} to {floats(32)}")
        return k.code.let(f"fpext {floats(32)} {compute(narrow)} to {floats(64)}")

    _each(k, i, 1, single)


def _each(k: Lanes, i: Instruction, count: int, compute: Callable[[Sequence[str]], str]) -> None:
    """Run ``compute`` on f64 values for the half, or for both halves of a pair."""
    kind = kind_of(i.type)
    sources = [parts(k, operand, i.type) for operand in i.operands[1 : 1 + count]]
    results = []
    for values in zip(*sources, strict=True):
        result = compute([widened(k, flushed(k, i, v, kind), kind) for v in values])
        results.append(flushed(k, i, narrowed(k, clamped(k, i, result), kind), kind))
    join(k, i.operands[0], results)


def parts(k: Lanes, operand: Operand, type_: str) -> list[str]:
    """The halves that an operand holds, the low one first."""
    if not type_.endswith("x2"):
        return [k.read(operand, "b16")]
    both = k.read(operand, "b32")
    high = k.code.let(f"lshr {integers(32)} {both}, {constant(16, 32)}")
    return [k.resize(v, 32, 16) for v in (both, high)]


def join(k: Lanes, target: Operand, halves: Sequence[str]) -> None:
    if len(halves) == 1:
        k.write(target, halves[0], "b16")
        return
    low, high = (k.resize(r, 16, 32) for r in halves)
    up = k.code.let(f"shl {integers(32)} {high}, {constant(16, 32)}")
    k.write(target, k.code.let(f"or {integers(32)} {up}, {low}"), "b32")


def single(k: Lanes, half: str, kind: str) -> str:
    """A half to f32, exactly."""
    return k.call(f"om_wide_{kind}", floats(32), f"{integers(16)} {half}")


def widened(k: Lanes, half: str, kind: str) -> str:
    """A half to f64, exactly."""
    return k.code.let(f"fpext {floats(32)} {single(k, half, kind)} to {floats(64)}")


def narrowed(k: Lanes, value: str, kind: str, mode: str = "rn") -> str:
    """F64 to a half, rounded once."""
    return k.call(f"om_narrow_{kind}_{mode}", integers(16), f"{floats(64)} {value}")


def clamped(k: Lanes, i: Instruction, value: str) -> str:
    """``.sat`` to [0, 1] and ``.relu`` to what is positive, of an f64 that is not yet rounded."""
    from optiml_magic.emulator.instructions.floating import saturated

    if "sat" in i.parts:
        return saturated(k, value, 64)
    if "relu" in i.parts:
        t = floats(64)
        low = k.code.let(f"fcmp ole {t} {value}, zeroinitializer")
        return k.code.let(f"select {vector('i1')} {low}, {t} zeroinitializer, {t} {value}")
    return value


def flushed(k: Lanes, i: Instruction, half: str, kind: str) -> str:
    """With ``.ftz``, subnormal halves become zeros of their sign."""
    if "ftz" not in i.parts:
        return half
    t = integers(16)
    exponent = k.code.let(f"and {t} {half}, {constant(FORMATS[kind].infinity, 16)}")
    tiny = k.code.let(f"icmp eq {t} {exponent}, zeroinitializer")
    sign = k.code.let(f"and {t} {half}, {constant(0x8000, 16)}")
    return k.code.let(f"select {vector('i1')} {tiny}, {t} {sign}, {t} {half}")
