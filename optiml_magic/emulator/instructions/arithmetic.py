"""Arithmetic on integers; float types go on to ``floating``, pairs of integers to ``packed``.

Source: PTX ISA, "Integer Arithmetic Instructions", "Extended-Precision Integer Arithmetic".
"""

from __future__ import annotations

from optiml_magic.emulator.instructions import floating, packed
from optiml_magic.emulator.instructions.table import lowers
from optiml_magic.emulator.ir import constant, integers, vector
from optiml_magic.emulator.lanes import Lanes
from optiml_magic.ptx.nouns import Instruction, bits
from optiml_magic.ptx.traits import CARRY


def is_float(type_: str) -> bool:
    return "f" in type_


@lowers("add", "sub", takes="cc sat rn rz rm rp ftz")
def add(k: Lanes, i: Instruction) -> None:
    if is_float(i.type):
        floating.binary(k, i)
        return
    if i.type.endswith("x2"):
        packed.binary(k, i)
        return
    a, b = (k.read(o, i.type) for o in i.operands[1:3])
    if "cc" in i.parts:
        _with_carry(k, i, a, b, "")
    elif "sat" in i.parts:
        k.write(i.operands[0], _saturating(k, i.base, a, b), i.type)
    else:
        k.write(i.operands[0], k.code.let(f"{i.base} {integers(bits(i.type))} {a}, {b}"), i.type)


@lowers("addc", "subc", takes="cc")
def add_carry(k: Lanes, i: Instruction) -> None:
    a, b = (k.read(o, i.type) for o in i.operands[1:3])
    _with_carry(k, i, a, b, _carry_in(k, bits(i.type)))


def _carry_in(k: Lanes, width: int) -> str:
    return k.code.let(f"zext {vector('i1')} {k.load(CARRY)} to {integers(width)}")


def _with_carry(k: Lanes, i: Instruction, a: str, b: str, carry: str) -> None:
    """A + b + carry (or a - b - carry), and the carry (borrow) out of it."""
    t = integers(bits(i.type))
    operation = "sub" if i.base.startswith("sub") else "add"
    first = k.code.let(f"{operation} {t} {a}, {b}")
    out = k.code.let(
        f"icmp ult {t} {first}, {a}" if operation == "add" else f"icmp ult {t} {a}, {b}"
    )
    total = first
    if carry:
        total = k.code.let(f"{operation} {t} {first}, {carry}")
        again = f"icmp ult {t} " + (
            f"{total}, {first}" if operation == "add" else f"{first}, {carry}"
        )
        out = k.code.let(f"or {vector('i1')} {out}, {k.code.let(again)}")
    k.write(i.operands[0], total, i.type)
    if "cc" in i.parts:
        k.assign(CARRY, out)


def _saturating(k: Lanes, base: str, a: str, b: str) -> str:
    return k.call(
        f"llvm.s{base}.sat.v32i32", integers(32), f"{integers(32)} {a}", f"{integers(32)} {b}"
    )


@lowers("mul", "mul24", takes="lo hi wide rn rz rm rp ftz sat")
def multiply(k: Lanes, i: Instruction) -> None:
    if is_float(i.type):
        floating.binary(k, i)
        return
    value, type_ = _product(k, i)
    k.write(i.operands[0], value, type_)


@lowers("mad", "madc", "mad24", takes="lo hi wide cc sat rn rz rm rp ftz")
def multiply_add(k: Lanes, i: Instruction) -> None:
    if is_float(i.type):
        floating.fused(k, i)
        return
    product, type_ = _product(k, i)
    width = bits(type_)
    c = k.read(i.operands[3], type_)
    if i.base == "madc" or "cc" in i.parts:
        _with_carry(k, i, product, c, _carry_in(k, width) if i.base == "madc" else "")
    elif "sat" in i.parts:
        k.write(i.operands[0], _saturating(k, "add", product, c), type_)
    else:
        k.write(i.operands[0], k.code.let(f"add {integers(width)} {product}, {c}"), type_)


def _product(k: Lanes, i: Instruction) -> tuple[str, str]:
    """The wanted part of a * b and its type: ``wide`` has twice the width."""
    width, sign = bits(i.type), i.type[0]
    a, b = (k.read(o, i.type) for o in i.operands[1:3])
    if i.base.endswith("24"):
        a, b = (_low24(k, v, sign) for v in (a, b))
        if "hi" in i.parts:
            return _high24(k, a, b, sign), i.type
    if "wide" not in i.parts and "hi" not in i.parts:
        return k.code.let(f"mul {integers(width)} {a}, {b}"), i.type
    twice = integers(2 * width)
    a, b = (k.resize(v, width, 2 * width, signed=sign == "s") for v in (a, b))
    whole = k.code.let(f"mul {twice} {a}, {b}")
    if "wide" in i.parts:
        return whole, f"{sign}{2 * width}"
    high = k.code.let(f"lshr {twice} {whole}, {constant(width, 2 * width)}")
    return k.resize(high, 2 * width, width), i.type


def _high24(k: Lanes, a: str, b: str, sign: str) -> str:
    """Bits 47 to 16 of the product of two 24-bit numbers."""
    wide = integers(64)
    a, b = (k.resize(v, 32, 64, signed=sign == "s") for v in (a, b))
    whole = k.code.let(f"mul {wide} {a}, {b}")
    return k.resize(k.code.let(f"lshr {wide} {whole}, {constant(16, 64)}"), 64, 32)


def _low24(k: Lanes, value: str, sign: str) -> str:
    up = k.code.let(f"shl {integers(32)} {value}, {constant(8, 32)}")
    return k.code.let(f"{'ashr' if sign == 's' else 'lshr'} {integers(32)} {up}, {constant(8, 32)}")


@lowers("div", "rem", takes="rn rz rm rp approx full ftz")
def divide(k: Lanes, i: Instruction) -> None:
    if is_float(i.type):
        floating.divide(k, i)
        return
    width = bits(i.type)
    t = integers(width)
    a, b = (k.read(o, i.type) for o in i.operands[1:3])
    name = f"om_{i.base}_{i.type[0]}{width}"
    k.write(i.operands[0], k.call(name, t, f"{t} {a}", f"{t} {b}"), i.type)


@lowers("min", "max", takes="ftz NaN xorsign abs relu")
def extreme(k: Lanes, i: Instruction) -> None:
    if is_float(i.type):
        floating.extreme(k, i)
        return
    if i.type.endswith("x2"):
        packed.binary(k, i)
        return
    a, b = (k.read(o, i.type) for o in i.operands[1:3])
    k.write(i.operands[0], packed.extreme_of(k, i, a, b, i.type), i.type)


@lowers("abs", takes="ftz")
def absolute(k: Lanes, i: Instruction) -> None:
    if is_float(i.type):
        floating.absolute(k, i)
        return
    k.write(i.operands[0], _abs(k, k.read(i.operands[1], i.type), bits(i.type)), i.type)


def _abs(k: Lanes, value: str, width: int) -> str:
    t = integers(width)
    negative = k.code.let(f"icmp slt {t} {value}, zeroinitializer")
    opposite = k.code.let(f"sub {t} zeroinitializer, {value}")
    return k.code.let(f"select {vector('i1')} {negative}, {t} {opposite}, {t} {value}")


@lowers("neg", takes="ftz")
def negate(k: Lanes, i: Instruction) -> None:
    if is_float(i.type):
        floating.negate(k, i)
        return
    value = k.read(i.operands[1], i.type)
    k.write(
        i.operands[0], k.code.let(f"sub {integers(bits(i.type))} zeroinitializer, {value}"), i.type
    )


@lowers("sad")
def sum_of_difference(k: Lanes, i: Instruction) -> None:
    """C + |a - b|, the difference taken without wrapping."""
    t = integers(bits(i.type))
    a, b, c = (k.read(o, i.type) for o in i.operands[1:4])
    order = "slt" if i.type[0] == "s" else "ult"
    less = k.code.let(f"icmp {order} {t} {a}, {b}")
    up, down = k.code.let(f"sub {t} {b}, {a}"), k.code.let(f"sub {t} {a}, {b}")
    apart = k.code.let(f"select {vector('i1')} {less}, {t} {up}, {t} {down}")
    k.write(i.operands[0], k.code.let(f"add {t} {c}, {apart}"), i.type)
