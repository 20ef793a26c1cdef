"""Integers in the parts of a 32-bit register: pairs of 16 bits, dot products, video instructions.

Source: PTX ISA, "dp4a", "dp2a", "min, max" (.s16x2, .u16x2), "vabsdiff2", "vabsdiff4".
"""

from __future__ import annotations

from optiml_magic.emulator.instructions.table import lowers
from optiml_magic.emulator.ir import constant, integers, vector
from optiml_magic.emulator.lanes import Lanes
from optiml_magic.ptx.nouns import Instruction, bits

_I32 = integers(32)


def extreme_of(k: Lanes, i: Instruction, a: str, b: str, type_: str) -> str:
    """The smaller or larger of two integers; ``.relu`` keeps it from being negative."""
    t = integers(bits(type_))
    order = ("s" if type_[0] == "s" else "u") + ("lt" if i.base == "min" else "gt")
    less = k.code.let(f"icmp {order} {t} {a}, {b}")
    value = k.code.let(f"select {vector('i1')} {less}, {t} {a}, {t} {b}")
    if "relu" not in i.parts:
        return value
    minus = k.code.let(f"icmp slt {t} {value}, zeroinitializer")
    return k.code.let(f"select {vector('i1')} {minus}, {t} zeroinitializer, {t} {value}")


def binary(k: Lanes, i: Instruction) -> None:
    """add, min, max on pairs of 16-bit integers."""
    type_, t = i.type[:-2], integers(16)
    a, b = (k.read(o, "b32") for o in i.operands[1:3])
    total = "zeroinitializer"
    for at in (0, 16):
        x, y = (k.resize(_moved(k, v, at), 32, 16) for v in (a, b))
        if i.base in ("min", "max"):
            part = extreme_of(k, i, x, y, type_)
        else:
            part = k.code.let(f"{i.base} {t} {x}, {y}")
        total = _placed(k, total, k.resize(part, 16, 32), at)
    k.write(i.operands[0], total, "b32")


def _moved(k: Lanes, value: str, by: int) -> str:
    return k.code.let(f"lshr {_I32} {value}, {constant(by, 32)}") if by else value


def _placed(k: Lanes, total: str, part: str, at: int) -> str:
    up = k.code.let(f"shl {_I32} {part}, {constant(at, 32)}")
    return k.code.let(f"or {_I32} {total}, {up}")


def _part(k: Lanes, value: str, at: int, width: int, sign: str) -> str:
    """``width`` bits of a register from bit ``at``, extended to 32."""
    up = k.code.let(f"shl {_I32} {value}, {constant(32 - width - at, 32)}")
    how = "ashr" if sign == "s" else "lshr"
    return k.code.let(f"{how} {_I32} {up}, {constant(32 - width, 32)}")


@lowers("dp4a", "dp2a", takes="lo hi")
def dot(k: Lanes, i: Instruction) -> None:
    """C plus the products of a's parts with bytes of b; dp2a takes two of them, .lo or .hi."""
    signs = [p[0] for p in i.parts[-2:]]
    a, b, total = (k.read(o, "b32") for o in i.operands[1:4])
    size = 8 if i.base == "dp4a" else 16
    first = 16 if "hi" in i.parts else 0
    for at in range(32 // size):
        x = _part(k, a, size * at, size, signs[0])
        y = _part(k, b, first + 8 * at, 8, signs[1])
        total = k.code.let(f"add {_I32} {total}, {k.code.let(f'mul {_I32} {x}, {y}')}")
    k.write(i.operands[0], total, "b32")


@lowers("vabsdiff2", "vabsdiff4", takes="sat add")
def differences(k: Lanes, i: Instruction) -> None:
    """|a - b| of each part; ``.add`` sums them onto c."""
    to, *signs = (p[0] for p in i.parts[1:] if p in ("u32", "s32"))
    size = 16 if i.base == "vabsdiff2" else 8
    a, b, c = (k.read(o, "b32") for o in i.operands[1:4])
    total = c if "add" in i.parts else "zeroinitializer"
    for at in range(0, 32, size):
        x, y = (_part(k, v, at, size, s) for v, s in zip((a, b), signs, strict=True))
        up, down = k.code.let(f"sub {_I32} {x}, {y}"), k.code.let(f"sub {_I32} {y}, {x}")
        minus = k.code.let(f"icmp slt {_I32} {up}, zeroinitializer")
        part = k.code.let(f"select {vector('i1')} {minus}, {_I32} {down}, {_I32} {up}")
        if "sat" in i.parts:
            most = constant((1 << size - (to == "s")) - 1, 32)
            over = k.code.let(f"icmp ugt {_I32} {part}, {most}")
            part = k.code.let(f"select {vector('i1')} {over}, {_I32} {most}, {_I32} {part}")
        if "add" in i.parts:
            total = k.code.let(f"add {_I32} {total}, {part}")
        else:
            kept = k.code.let(f"and {_I32} {part}, {constant((1 << size) - 1, 32)}")
            total = _placed(k, total, kept, at)
    k.write(i.operands[0], total, "b32")
