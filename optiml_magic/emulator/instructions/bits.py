"""Logic, shifts and bit fields.

Source: PTX ISA, "Logic and Shift Instructions", "bfe", "bfi", "bfind", "popc", "clz", "brev".
"""

from __future__ import annotations

from optiml_magic.emulator.instructions.table import lowers
from optiml_magic.emulator.ir import constant, integers, vector
from optiml_magic.emulator.lanes import Lanes
from optiml_magic.ptx.nouns import Immediate, Instruction, bits


@lowers("and", "or", "xor")
def logic(k: Lanes, i: Instruction) -> None:
    if i.type == "pred":
        a, b = (k.predicate(o) for o in i.operands[1:3])
    else:
        a, b = (k.read(o, i.type) for o in i.operands[1:3])
    k.write(i.operands[0], k.code.let(f"{i.base} {integers(bits(i.type))} {a}, {b}"), i.type)


@lowers("not")
def invert(k: Lanes, i: Instruction) -> None:
    a = k.predicate(i.operands[1]) if i.type == "pred" else k.read(i.operands[1], i.type)
    width = bits(i.type)
    k.write(i.operands[0], k.code.let(f"xor {integers(width)} {a}, {constant(-1, width)}"), i.type)


@lowers("cnot")
def is_zero(k: Lanes, i: Instruction) -> None:
    t = integers(bits(i.type))
    zero = k.code.let(f"icmp eq {t} {k.read(i.operands[1], i.type)}, zeroinitializer")
    k.write(i.operands[0], k.code.let(f"zext {vector('i1')} {zero} to {t}"), i.type)


@lowers("lop3", takes="and or")
def truth_table(k: Lanes, i: Instruction) -> None:
    """Any function of three bits: the or of the table's rows."""
    table = i.operands[-1]
    if not isinstance(table, Immediate) or len(i.operands) != 5:
        raise k.unsupported("this form")
    t = integers(32)
    values = [k.read(o, "b32") for o in i.operands[1:4]]
    inverse = [k.code.let(f"xor {t} {v}, {constant(-1, 32)}") for v in values]
    total = "zeroinitializer"
    for row in range(8):
        if table.value >> row & 1:
            x, y, z = ((values if row >> (2 - n) & 1 else inverse)[n] for n in range(3))
            both = k.code.let(f"and {t} {k.code.let(f'and {t} {x}, {y}')}, {z}")
            total = k.code.let(f"or {t} {total}, {both}")
    k.write(i.operands[0], total, "b32")


@lowers("shl", "shr")
def shift(k: Lanes, i: Instruction) -> None:
    """Amounts beyond the width count as the width; LLVM leaves that undefined."""
    width = bits(i.type)
    t = integers(width)
    value = k.read(i.operands[1], i.type)
    amount = k.resize(k.read(i.operands[2], "u32"), 32, width)
    if width == 16:
        amount = k.resize(_umin(k, k.read(i.operands[2], "u32"), 16, 32), 32, 16)
    elif isinstance(i.operands[2], Immediate) and 0 <= i.operands[2].value < width:
        how = "shl" if i.base == "shl" else "ashr" if i.type[0] == "s" else "lshr"
        k.write(i.operands[0], k.code.let(f"{how} {t} {value}, {amount}"), i.type)
        return
    if i.base == "shr" and i.type[0] == "s":
        k.write(
            i.operands[0],
            k.code.let(f"ashr {t} {value}, {_umin(k, amount, width - 1, width)}"),
            i.type,
        )
        return
    inside = k.code.let(f"icmp ult {t} {amount}, {constant(width, width)}")
    safe = _umin(k, amount, width - 1, width)
    moved = k.code.let(f"{'shl' if i.base == 'shl' else 'lshr'} {t} {value}, {safe}")
    k.write(
        i.operands[0],
        k.code.let(f"select {vector('i1')} {inside}, {t} {moved}, {t} zeroinitializer"),
        i.type,
    )


def _umin(k: Lanes, value: str, limit: int, width: int) -> str:
    t = integers(width)
    less = k.code.let(f"icmp ult {t} {value}, {constant(limit, width)}")
    return k.code.let(f"select {vector('i1')} {less}, {t} {value}, {t} {constant(limit, width)}")


@lowers("shf", takes="l r wrap clamp")
def funnel(k: Lanes, i: Instruction) -> None:
    """shf.{l,r}.{wrap,clamp}: 32 bits out of the 64 of b:a."""
    t, wide = integers(32), integers(64)
    a, b, c = (k.read(o, "b32") for o in i.operands[1:4])
    n = _umin(k, c, 32, 32)
    if "wrap" in i.parts:
        n = k.code.let(f"and {t} {c}, {constant(31, 32)}")
    high = k.code.let(f"shl {wide} {k.resize(b, 32, 64)}, {constant(32, 64)}")
    both = k.code.let(f"or {wide} {high}, {k.resize(a, 32, 64)}")
    amount = k.resize(n, 32, 64)
    if "r" in i.parts:
        moved = k.code.let(f"lshr {wide} {both}, {amount}")
    else:
        moved = k.code.let(f"shl {wide} {both}, {amount}")
        moved = k.code.let(f"lshr {wide} {moved}, {constant(32, 64)}")
    k.write(i.operands[0], k.resize(moved, 64, 32), "b32")


@lowers("popc", "clz", "brev")
def count(k: Lanes, i: Instruction) -> None:
    width = bits(i.type)
    t = integers(width)
    value = k.read(i.operands[1], i.type)
    if i.base == "clz":
        result = k.call(f"llvm.ctlz.v32i{width}", t, f"{t} {value}", "i1 false")
    else:
        name = {"popc": "ctpop", "brev": "bitreverse"}[i.base]
        result = k.call(f"llvm.{name}.v32i{width}", t, f"{t} {value}")
    if i.base == "brev":
        k.write(i.operands[0], result, i.type)
    else:
        k.write(i.operands[0], k.resize(result, width, 32), "u32")


@lowers("bfind", takes="shiftamt")
def highest_bit(k: Lanes, i: Instruction) -> None:
    """The highest set bit (of a negative number: the highest clear one), or all ones."""
    width = bits(i.type)
    t = integers(width)
    value = k.read(i.operands[1], i.type)
    if i.type[0] == "s":
        sign = k.code.let(f"ashr {t} {value}, {constant(width - 1, width)}")
        value = k.code.let(f"xor {t} {value}, {sign}")
    zeros = k.call(f"llvm.ctlz.v32i{width}", t, f"{t} {value}", "i1 false")
    result = zeros
    if "shiftamt" not in i.parts:
        result = k.code.let(f"sub {t} {constant(width - 1, width)}, {zeros}")
    none = k.code.let(f"icmp eq {t} {value}, zeroinitializer")
    result = k.code.let(f"select {vector('i1')} {none}, {t} {constant(-1, width)}, {t} {result}")
    k.write(i.operands[0], k.resize(result, width, 32), "u32")


def _field(k: Lanes, i: Instruction, first: int) -> tuple[str, str, str]:
    """Position and length (clamped to the width), and a mask of that length, all in the width."""
    width = bits(i.type)
    t = integers(width)
    clamped = []
    for operand in i.operands[first : first + 2]:
        low = k.code.let(f"and {integers(32)} {k.read(operand, 'u32')}, {constant(255, 32)}")
        clamped.append(k.resize(_umin(k, low, width, 32), 32, width))
    position, length = clamped
    full = k.code.let(f"icmp uge {t} {length}, {constant(width, width)}")
    one = k.code.let(f"shl {t} {constant(1, width)}, {_umin(k, length, width - 1, width)}")
    ones = k.code.let(f"sub {t} {one}, {constant(1, width)}")
    mask = k.code.let(f"select {vector('i1')} {full}, {t} {constant(-1, width)}, {t} {ones}")
    return position, length, mask


def _shift_or_zero(k: Lanes, how: str, value: str, amount: str, width: int) -> str:
    t = integers(width)
    moved = k.code.let(f"{how} {t} {value}, {_umin(k, amount, width - 1, width)}")
    inside = k.code.let(f"icmp ult {t} {amount}, {constant(width, width)}")
    return k.code.let(f"select {vector('i1')} {inside}, {t} {moved}, {t} zeroinitializer")


@lowers("bfe")
def extract_field(k: Lanes, i: Instruction) -> None:
    """Beyond the highest bit a signed field is filled with the sign, an unsigned one with 0."""
    width = bits(i.type)
    t = integers(width)
    value = k.read(i.operands[1], i.type)
    position, length, mask = _field(k, i, 2)
    if i.type[0] != "s":
        moved = _shift_or_zero(k, "lshr", value, position, width)
        k.write(i.operands[0], k.code.let(f"and {t} {moved}, {mask}"), i.type)
        return
    moved = k.code.let(f"ashr {t} {value}, {_umin(k, position, width - 1, width)}")
    # The sign bit of the field is bit min(position + length - 1, width - 1) of the value.
    room = k.code.let(f"sub {t} {constant(width, width)}, {length}")
    room = _umin(k, room, width - 1, width)
    up = k.code.let(f"shl {t} {moved}, {room}")
    signed = k.code.let(f"ashr {t} {up}, {room}")
    empty = k.code.let(f"icmp eq {t} {length}, zeroinitializer")
    result = k.code.let(f"select {vector('i1')} {empty}, {t} zeroinitializer, {t} {signed}")
    k.write(i.operands[0], result, i.type)


@lowers("bfi")
def insert_field(k: Lanes, i: Instruction) -> None:
    width = bits(i.type)
    t = integers(width)
    a, b = (k.read(o, i.type) for o in i.operands[1:3])
    position, _, mask = _field(k, i, 3)
    place = _shift_or_zero(k, "shl", mask, position, width)
    value = k.code.let(f"and {t} {_shift_or_zero(k, 'shl', a, position, width)}, {place}")
    hole = k.code.let(f"xor {t} {place}, {constant(-1, width)}")
    kept = k.code.let(f"and {t} {b}, {hole}")
    k.write(i.operands[0], k.code.let(f"or {t} {value}, {kept}"), i.type)


@lowers("bmsk", takes="clamp wrap")
def make_mask(k: Lanes, i: Instruction) -> None:
    position, length = (k.read(o, "u32") for o in i.operands[1:3])
    if "wrap" in i.parts:
        low = constant(31, 32)
        position, length = (
            k.code.let(f"and {integers(32)} {v}, {low}") for v in (position, length)
        )
    ones = _shift_or_zero(k, "shl", constant(1, 32), length, 32)
    ones = k.code.let(f"sub {integers(32)} {ones}, {constant(1, 32)}")
    k.write(i.operands[0], _shift_or_zero(k, "shl", ones, position, 32), "b32")


_PICKS = {  # the nibbles that each mode of prmt stands for, by the two low bits of c
    "f4e": (0x3210, 0x4321, 0x5432, 0x6543),
    "b4e": (0x5670, 0x6701, 0x7012, 0x0123),
    "rc8": (0x0000, 0x1111, 0x2222, 0x3333),
    "ecl": (0x3210, 0x3211, 0x3222, 0x3333),
    "ecr": (0x0000, 0x1110, 0x2210, 0x3210),
    "rc16": (0x1010, 0x3232, 0x1010, 0x3232),
}


def _selector(k: Lanes, c: str, picks: tuple[int, ...]) -> str:
    t = integers(32)
    low = k.code.let(f"and {t} {c}, {constant(3, 32)}")
    chosen = constant(picks[3], 32)
    for number in range(3):
        here = k.code.let(f"icmp eq {t} {low}, {constant(number, 32)}")
        one = constant(picks[number], 32)
        chosen = k.code.let(f"select {vector('i1')} {here}, {t} {one}, {t} {chosen}")
    return chosen


@lowers("prmt", takes=" ".join(_PICKS))
def permute_bytes(k: Lanes, i: Instruction) -> None:
    """Four bytes picked out of b:a by four nibbles; bit 3 of a nibble spreads the byte's sign."""
    t, wide = integers(32), integers(64)
    a, b, c = (k.read(o, "b32") for o in i.operands[1:4])
    if mode := next((p for p in i.parts if p in _PICKS), None):
        c = _selector(k, c, _PICKS[mode])
    high = k.code.let(f"shl {wide} {k.resize(b, 32, 64)}, {constant(32, 64)}")
    both = k.code.let(f"or {wide} {high}, {k.resize(a, 32, 64)}")
    total = "zeroinitializer"
    for byte in range(4):
        nibble = k.code.let(f"lshr {t} {c}, {constant(4 * byte, 32)}")
        index = k.code.let(f"and {t} {nibble}, {constant(7, 32)}")
        amount = k.resize(k.code.let(f"shl {t} {index}, {constant(3, 32)}"), 32, 64)
        moved = k.resize(k.code.let(f"lshr {wide} {both}, {amount}"), 64, 32)
        plain = k.code.let(f"and {t} {moved}, {constant(255, 32)}")
        up = k.code.let(f"shl {t} {moved}, {constant(24, 32)}")
        sign = k.code.let(f"ashr {t} {up}, {constant(31, 32)}")
        sign = k.code.let(f"and {t} {sign}, {constant(255, 32)}")
        spread = k.code.let(f"and {t} {nibble}, {constant(8, 32)}")
        signed = k.code.let(f"icmp ne {t} {spread}, zeroinitializer")
        value = k.code.let(f"select {vector('i1')} {signed}, {t} {sign}, {t} {plain}")
        placed = k.code.let(f"shl {t} {value}, {constant(8 * byte, 32)}")
        total = k.code.let(f"or {t} {total}, {placed}")
    k.write(i.operands[0], total, "b32")


@lowers("szext", takes="clamp wrap")
def extend_field(k: Lanes, i: Instruction) -> None:
    """The low b bits of a, extended by their sign or by zeros."""
    t = integers(32)
    value, n = k.read(i.operands[1], "b32"), k.read(i.operands[2], "u32")
    if "wrap" in i.parts:
        n = k.code.let(f"and {t} {n}, {constant(31, 32)}")
    n = _umin(k, n, 32, 32)
    room = k.code.let(f"sub {t} {constant(32, 32)}, {n}")
    by = _umin(k, room, 31, 32)
    up = k.code.let(f"shl {t} {value}, {by}")
    result = k.code.let(f"{'ashr' if i.type[0] == 's' else 'lshr'} {t} {up}, {by}")
    none = k.code.let(f"icmp eq {t} {n}, zeroinitializer")
    result = k.code.let(f"select {vector('i1')} {none}, {t} zeroinitializer, {t} {result}")
    k.write(i.operands[0], result, "b32")


@lowers("fns")
def find_nth(k: Lanes, i: Instruction) -> None:
    mask, base, offset = (f"{integers(32)} {k.read(o, 'b32')}" for o in i.operands[1:4])
    k.write(i.operands[0], k.call("om_fns", integers(32), mask, base, offset), "b32")
