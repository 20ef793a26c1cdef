"""cvt between integers and floats. Source: PTX ISA, "cvt"."""

from __future__ import annotations

from optiml_magic.emulator.instructions import half
from optiml_magic.emulator.instructions.floating import flushed, saturated
from optiml_magic.emulator.instructions.table import lowers
from optiml_magic.emulator.ir import constant, floats, integers, vector
from optiml_magic.emulator.lanes import Lanes
from optiml_magic.ptx.nouns import Instruction, Operand, bits, is_type

_INTEGRAL = {"rni": "roundeven", "rzi": "trunc", "rmi": "floor", "rpi": "ceil"}
_MODES = ("rz", "rm", "rp")
_INTEGERS = frozenset(f"{sign}{width}" for sign in "sub" for width in (8, 16, 32, 64))
_FLOATS = frozenset(("f16", "bf16", "f32", "f64"))


@lowers("cvt", takes="rn rz rm rp rna rni rzi rmi rpi sat ftz relu")
def convert(k: Lanes, i: Instruction) -> None:
    to, from_ = (p for p in i.parts if is_type(p))
    if to.endswith("x2"):
        _pack(k, i, to, from_)
    elif (to, from_) == ("tf32", "f32"):
        _to_tf32(k, i)
    elif not {to, from_} <= _INTEGERS | _FLOATS or "rna" in i.parts:
        raise k.unsupported()
    elif from_ in _FLOATS and to in _FLOATS:
        _float_to_float(k, i, from_, to)
    elif from_ in _FLOATS:
        value, width = _source(k, i, i.operands[1], from_)
        k.write(i.operands[0], _float_to_integer(k, i, value, width, to), to)
    elif to in _FLOATS:
        _integer_to_float(k, i, from_, to)
    else:
        k.write(i.operands[0], _integer_to_integer(k, i, from_, to), to)


def _source(k: Lanes, i: Instruction, operand: Operand, type_: str) -> tuple[str, int]:
    """A float operand and its width; halves are widened to f32."""
    if half.is_half(type_):
        return half.single(k, k.read(operand, "b16"), type_), 32
    width = bits(type_)
    return flushed(k, i, k.read_float(operand, type_), width), width


def _mode(i: Instruction) -> str:
    return next((p for p in i.parts if p in _MODES), "rn")


def _pack(k: Lanes, i: Instruction, to: str, from_: str) -> None:
    """cvt.rn.f16x2.f32 d, a, b: a goes to the upper half."""
    if not half.is_half(to) or from_ != "f32":
        raise k.unsupported()
    halves = []
    for operand in (i.operands[2], i.operands[1]):
        value, _ = _source(k, i, operand, from_)
        halves.append(_half_of(k, i, value, 32, half.kind_of(to)))
    half.join(k, i.operands[0], halves)


def _half_of(k: Lanes, i: Instruction, value: str, width: int, kind: str) -> str:
    wide = k.code.let(f"fpext {floats(32)} {value} to {floats(64)}") if width == 32 else value
    return half.narrowed(k, half.clamped(k, i, wide), kind, _mode(i))


def _to_tf32(k: Lanes, i: Instruction) -> None:
    """An f32 with ten bits of fraction; the others are zero here, the ISA leaves them open."""
    t = integers(32)
    raw = k.read(i.operands[1], "b32")
    size = k.code.let(f"and {t} {raw}, {constant(0x7FFFFFFF, 32)}")
    special = k.code.let(f"icmp uge {t} {size}, {constant(0x7F800000, 32)}")
    up = constant(0x1000, 32)
    if "rn" in i.parts:
        odd = k.code.let(f"lshr {t} {size}, {constant(13, 32)}")
        odd = k.code.let(f"and {t} {odd}, {constant(1, 32)}")
        up = k.code.let(f"add {t} {odd}, {constant(0xFFF, 32)}")
    elif "rz" in i.parts:
        up = "zeroinitializer"
    moved = k.code.let(f"add {t} {raw}, {up}")
    moved = k.code.let(f"and {t} {moved}, {constant(~0x1FFF, 32)}")
    value = k.code.let(f"select {vector('i1')} {special}, {t} {raw}, {t} {moved}")
    nan = k.code.let(f"icmp ugt {t} {size}, {constant(0x7F800000, 32)}")
    value = k.code.let(f"select {vector('i1')} {nan}, {t} {constant(0x7FFFFFFF, 32)}, {t} {value}")
    if "relu" in i.parts:
        minus = k.code.let(f"icmp slt {t} {value}, zeroinitializer")
        value = k.code.let(f"select {vector('i1')} {minus}, {t} zeroinitializer, {t} {value}")
    k.write(i.operands[0], value, "b32")


def _integer_to_integer(k: Lanes, i: Instruction, from_: str, to: str) -> str:
    have, want = bits(from_), bits(to)
    value = k.read(i.operands[1], from_)
    if "sat" in i.parts:
        wide = k.resize(value, have, 64, signed=from_[0] == "s") if have < 64 else value
        return k.resize(_clamped(k, wide, from_, to), 64, want)
    return k.resize(value, have, want, signed=from_[0] == "s")


def _clamped(k: Lanes, value: str, from_: str, to: str) -> str:
    """64-bit ``value`` limited to the range of ``to``."""
    t, width = integers(64), bits(to)
    low, high = (-(1 << width - 1), (1 << width - 1) - 1) if to[0] == "s" else (0, (1 << width) - 1)
    sign = "s" if from_[0] == "s" else "u"
    if sign == "s":
        less = k.code.let(f"icmp slt {t} {value}, {constant(low, 64)}")
        value = k.code.let(f"select {vector('i1')} {less}, {t} {constant(low, 64)}, {t} {value}")
        if high >= 1 << 63:
            return value
    more = k.code.let(f"icmp {sign}gt {t} {value}, {constant(high, 64)}")
    return k.code.let(f"select {vector('i1')} {more}, {t} {constant(high, 64)}, {t} {value}")


def _float_to_integer(k: Lanes, i: Instruction, value: str, width: int, to: str) -> str:
    """Rounded, then saturated; NaN gives 0, or the highest bit where 64 bits take part."""
    want = bits(to)
    mode = next((p for p in i.parts if p in _INTEGRAL), "rzi")
    if mode != "rzi":
        value = k.map(_INTEGRAL[mode], width, value)
    sign = "s" if to[0] == "s" else "u"
    result = k.call(
        f"llvm.fpto{sign}i.sat.v32i{want}.v32f{width}", integers(want), f"{floats(width)} {value}"
    )
    if width == 64 or want == 64:
        nan = k.code.let(f"fcmp uno {floats(width)} {value}, {value}")
        t, highest = integers(want), constant(1 << want - 1, want)
        result = k.code.let(f"select {vector('i1')} {nan}, {t} {highest}, {t} {result}")
    return result


def _integer_to_float(k: Lanes, i: Instruction, from_: str, to: str) -> None:
    have, want = bits(from_), bits(to)
    value = k.read(i.operands[1], from_)
    sign = "s" if from_[0] == "s" else "u"
    mode = _mode(i)
    if half.is_half(to):
        if have == 64:
            value = _sticky(k, value, sign)
        wide = k.code.let(f"{sign}itofp {integers(have)} {value} to {floats(64)}")
        k.write(i.operands[0], half.narrowed(k, half.clamped(k, i, wide), to, mode), "b16")
        return
    if mode != "rn":
        value = k.resize(value, have, max(have, 32), signed=sign == "s")
        have = max(have, 32)
        result = k.call(
            f"om_{sign}itofp_{mode}_i{have}_f{want}", floats(want), f"{integers(have)} {value}"
        )
    else:
        result = k.code.let(f"{sign}itofp {integers(have)} {value} to {floats(want)}")
    _write_float(k, i, result, to)


def _sticky(k: Lanes, value: str, sign: str) -> str:
    """A 64-bit integer beyond 2**53 with its low bits as one: f64 holds it, a half rounds right."""
    t, p = integers(64), vector("i1")
    low = k.code.let(f"and {t} {value}, {constant(0xFFF, 64)}")
    some = k.code.let(f"icmp ne {t} {low}, zeroinitializer")
    bit = k.code.let(f"zext {p} {some} to {t}")
    bit = k.code.let(f"shl {t} {bit}, {constant(12, 64)}")
    high = k.code.let(f"and {t} {value}, {constant(~0xFFF, 64)}")
    odd = k.code.let(f"or {t} {high}, {bit}")
    near = k.code.let(f"add {t} {value}, {constant(1 << 52, 64)}") if sign == "s" else value
    small = k.code.let(f"icmp ult {t} {near}, {constant(1 << 53, 64)}")
    return k.code.let(f"select {p} {small}, {t} {value}, {t} {odd}")


def _float_to_float(k: Lanes, i: Instruction, from_: str, to: str) -> None:
    value, have = _source(k, i, i.operands[1], from_)
    if integral := next((p for p in i.parts if p in _INTEGRAL), None):
        value = k.map(_INTEGRAL[integral], have, value)
    if half.is_half(to):
        k.write(i.operands[0], _half_of(k, i, value, have, to), "b16")
        return
    want, mode = bits(to), _mode(i)
    if want > have:
        value = k.code.let(f"fpext {floats(have)} {value} to {floats(want)}")
    elif want < have and mode != "rn":
        value = k.call(f"om_fptrunc_{mode}_f32", floats(32), f"{floats(64)} {value}")
    elif want < have:
        value = k.code.let(f"fptrunc {floats(have)} {value} to {floats(want)}")
    _write_float(k, i, value, to)


def _write_float(k: Lanes, i: Instruction, value: str, to: str) -> None:
    width = bits(to)
    value = flushed(k, i, value, width)
    if "sat" in i.parts:
        value = saturated(k, value, width)
    elif "relu" in i.parts:
        raise k.unsupported()
    k.write_float(i.operands[0], value, to)
