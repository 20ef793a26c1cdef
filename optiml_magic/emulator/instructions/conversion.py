"""cvt between integers and floats. Source: PTX ISA, "cvt"."""

from __future__ import annotations

from optiml_magic.emulator.instructions import half
from optiml_magic.emulator.instructions.floating import flushed, saturated
from optiml_magic.emulator.instructions.table import lowers
from optiml_magic.emulator.ir import constant, floats, integers, vector
from optiml_magic.emulator.lanes import Lanes
from optiml_magic.emulator.ptx import Instruction, bits, is_type

_INTEGRAL = {"rni": "roundeven", "rzi": "trunc", "rmi": "floor", "rpi": "ceil"}
_MODES = ("rz", "rm", "rp")


@lowers("cvt")
def convert(k: Lanes, i: Instruction) -> None:
    types = [p for p in i.parts if is_type(p)]
    if types == ["f16x2", "f32"] and i.parts[1] == "rn" and len(i.parts) == 4:
        _pack_halves(k, i)
        return
    if len(types) != 2 or any(t not in _KNOWN for t in types):
        raise k.unsupported()
    to, from_ = types
    if "f" in from_:
        value = flushed(k, i, _source(k, i, from_), bits(from_))
        if "f" in to:
            _float_to_float(k, i, value, from_, to)
        else:
            k.write(i.operands[0], _float_to_integer(k, i, value, from_, to), to)
    elif "f" in to:
        _write_float(k, i, _integer_to_float(k, i, from_, to), to)
    else:
        k.write(i.operands[0], _integer_to_integer(k, i, from_, to), to)


_KNOWN = frozenset(
    [
        "s8",
        "s16",
        "s32",
        "s64",
        "u8",
        "u16",
        "u32",
        "u64",
        "b8",
        "b16",
        "b32",
        "b64",
        "f32",
        "f64",
        "f16",
    ]
)


def _pack_halves(k: Lanes, i: Instruction) -> None:
    """cvt.rn.f16x2.f32 d, a, b: a goes to the upper half."""
    high, low = (k.read_float(o, "f32") for o in i.operands[1:3])
    wide = [k.code.let(f"fpext {floats(32)} {v} to {floats(64)}") for v in (low, high)]
    half.join(k, i.operands[0], [half.narrowed(k, w) for w in wide])


def _source(k: Lanes, i: Instruction, type_: str) -> str:
    return k.read_float(i.operands[1], type_)


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


def _float_to_integer(k: Lanes, i: Instruction, value: str, from_: str, to: str) -> str:
    """Rounded, then saturated; NaN gives 0, or the highest bit where 64 bits take part."""
    width, want = bits(from_), bits(to)
    mode = next((p for p in i.parts if p in _INTEGRAL), "rzi")
    if width == 16:
        value, width = k.call("om_f32_of_half", floats(32), f"{floats(16)} {value}"), 32
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


def _integer_to_float(k: Lanes, i: Instruction, from_: str, to: str) -> str:
    have, want = bits(from_), bits(to)
    value = k.read(i.operands[1], from_)
    sign = "s" if from_[0] == "s" else "u"
    mode = next((p for p in i.parts if p in _MODES), "")
    if mode:
        if want == 16:
            raise k.unsupported()
        value = k.resize(value, have, max(have, 32), signed=sign == "s")
        have = max(have, 32)
        return k.call(
            f"om_{sign}itofp_{mode}_i{have}_f{want}", floats(want), f"{integers(have)} {value}"
        )
    if want == 16:
        # Through f64: exact for up to 53 bits, and what is larger overflows f16 in any case.
        wide = k.code.let(f"{sign}itofp {integers(have)} {value} to {floats(64)}")
        return half.narrowed(k, wide)
    return k.code.let(f"{sign}itofp {integers(have)} {value} to {floats(want)}")


def _float_to_float(k: Lanes, i: Instruction, value: str, from_: str, to: str) -> None:
    have, want = bits(from_), bits(to)
    integral = next((p for p in i.parts if p in _INTEGRAL), None)
    mode = next((p for p in i.parts if p in _MODES), "")
    if have == 16 or want == 16:
        if integral or mode or "sat" in i.parts or have == want:
            raise k.unsupported()
        if want == 16:
            wide = (
                k.code.let(f"fpext {floats(have)} {value} to {floats(64)}") if have < 64 else value
            )
            value = half.narrowed(k, wide)
        else:
            value = k.call("om_f32_of_half", floats(32), f"{floats(16)} {value}")
            if want == 64:
                value = k.code.let(f"fpext {floats(32)} {value} to {floats(64)}")
        k.write_float(i.operands[0], value, to)
        return
    if integral:
        value = k.map(_INTEGRAL[integral], have, value)
    if want > have:
        value = k.code.let(f"fpext {floats(have)} {value} to {floats(want)}")
    elif want < have and mode:
        value = k.call(f"om_fptrunc_{mode}_f32", floats(32), f"{floats(64)} {value}")
    elif want < have:
        value = k.code.let(f"fptrunc {floats(have)} {value} to {floats(want)}")
    _write_float(k, i, value, to)


def _write_float(k: Lanes, i: Instruction, value: str, to: str) -> None:
    width = bits(to)
    value = flushed(k, i, value, width)
    if "sat" in i.parts:
        value = saturated(k, value, width)
    k.write_float(i.operands[0], value, to)
