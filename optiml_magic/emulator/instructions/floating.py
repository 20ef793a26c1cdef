"""f32 and f64 arithmetic: single rounding, ``.ftz``, ``.sat`` and directed rounding as asked.

Nothing is contracted: ``mul`` and ``add`` round each, ``fma`` rounds once.
``.approx`` forms are computed to full precision; the hardware's differ in the last bits.
Source: PTX ISA, "Floating Point Instructions".
"""

from __future__ import annotations

from optiml_magic.emulator.instructions import half
from optiml_magic.emulator.instructions.table import lowers
from optiml_magic.emulator.ir import constant, floats, integers, vector
from optiml_magic.emulator.lanes import Lanes
from optiml_magic.ptx.nouns import Instruction, bits

DIRECTED = ("rz", "rm", "rp")
_OPERATION = {"add": "fadd", "sub": "fsub", "mul": "fmul", "div": "fdiv"}


def _operands(k: Lanes, i: Instruction, count: int) -> tuple[int, list[str]]:
    """The width, and the sources as floats (subnormals flushed where ``.ftz`` says so)."""
    width = bits(i.type)
    values = [k.read_float(o, i.type) for o in i.operands[1 : 1 + count]]
    return width, [flushed(k, i, v, width) for v in values]


def flushed(k: Lanes, i: Instruction, value: str, width: int) -> str:
    """With ``.ftz``, subnormal numbers become zeros of their sign."""
    if "ftz" not in i.parts or width != 32:
        return value
    t = integers(32)
    raw = k.as_integer(value, 32)
    exponent = k.code.let(f"and {t} {raw}, {constant(0x7F800000, 32)}")
    tiny = k.code.let(f"icmp eq {t} {exponent}, zeroinitializer")
    sign = k.code.let(f"and {t} {raw}, {constant(0x80000000, 32)}")
    return k.as_float(k.code.let(f"select {vector('i1')} {tiny}, {t} {sign}, {t} {raw}"), 32)


def finish(k: Lanes, i: Instruction, value: str, width: int) -> None:
    """Apply ``.ftz`` and ``.sat`` to a result and write it."""
    value = flushed(k, i, value, width)
    if "sat" in i.parts:
        value = saturated(k, value, width)
    k.write_float(i.operands[0], value, i.type)


def saturated(k: Lanes, value: str, width: int) -> str:
    """Clamped to [0, 1]; NaN becomes 0."""
    t = floats(width)
    one = k.as_float(constant(0x3F800000 if width == 32 else 0x3FF0000000000000, width), width)
    positive = k.code.let(f"fcmp ogt {t} {value}, zeroinitializer")
    low = k.code.let(f"select {vector('i1')} {positive}, {t} {value}, {t} zeroinitializer")
    less = k.code.let(f"fcmp olt {t} {low}, {one}")
    return k.code.let(f"select {vector('i1')} {less}, {t} {low}, {t} {one}")


def _directed(i: Instruction) -> str:
    return next((p for p in i.parts if p in DIRECTED), "")


def _rounded(k: Lanes, name: str, mode: str, width: int, values: list[str]) -> str:
    """An operation in another rounding mode than to nearest."""
    arguments = (f"{floats(width)} {v}" for v in values)
    return k.call(f"om_{name}_{mode}_f{width}", floats(width), *arguments)


def binary(k: Lanes, i: Instruction) -> None:
    if half.is_half(i.type):
        half.binary(k, i)
        return
    width, (a, b) = _operands(k, i, 2)
    if mode := _directed(i):
        result = _rounded(k, i.base, mode, width, [a, b])
    else:
        result = k.code.let(f"{_OPERATION[i.base]} {floats(width)} {a}, {b}")
    finish(k, i, result, width)


@lowers("fma", takes="rn rz rm rp ftz sat relu")
def fused(k: Lanes, i: Instruction) -> None:
    if half.is_half(i.type):
        half.fused(k, i)
        return
    width, values = _operands(k, i, 3)
    if mode := _directed(i):
        result = _rounded(k, "fma", mode, width, values)
    else:
        result = k.map("fma", width, *values)
    finish(k, i, result, width)


def divide(k: Lanes, i: Instruction) -> None:
    if half.is_half(i.type):
        raise k.unsupported()
    binary(k, i)


def extreme(k: Lanes, i: Instruction) -> None:
    """min, max: a number wins over NaN (unless ``.NaN``), and -0 is less than +0."""
    if len(i.operands) != 3 or "relu" in i.parts:
        raise k.unsupported()
    if half.is_half(i.type):
        half.extreme(k, i, lambda a, b: _extreme_of(k, i, a, b, 64))
        return
    width, (a, b) = _operands(k, i, 2)
    finish(k, i, _extreme_of(k, i, a, b, width), width)


def _extreme_of(k: Lanes, i: Instruction, a: str, b: str, width: int) -> str:
    t, raw = floats(width), integers(width)
    sign = ""
    if "xorsign" in i.parts:
        apart = k.code.let(f"xor {raw} {k.as_integer(a, width)}, {k.as_integer(b, width)}")
        sign = k.code.let(f"and {raw} {apart}, {constant(1 << width - 1, width)}")
        a, b = k.map("fabs", width, a), k.map("fabs", width, b)
    order, both = ("olt", "or") if i.base == "min" else ("ogt", "and")
    wins = k.code.let(f"fcmp {order} {t} {a}, {b}")
    value = k.code.let(f"select {vector('i1')} {wins}, {t} {a}, {t} {b}")
    equal = k.code.let(f"fcmp oeq {t} {a}, {b}")
    ia, ib = k.as_integer(a, width), k.as_integer(b, width)
    merged = k.as_float(k.code.let(f"{both} {raw} {ia}, {ib}"), width)
    value = k.code.let(f"select {vector('i1')} {equal}, {t} {merged}, {t} {value}")
    b_nan = k.code.let(f"fcmp uno {t} {b}, {b}")
    value = k.code.let(f"select {vector('i1')} {b_nan}, {t} {a}, {t} {value}")
    if "NaN" in i.parts:
        any_nan = k.code.let(f"fcmp uno {t} {a}, {b}")
        nan = k.as_float(constant(0x7FFFFFFF if width == 32 else 0x7FF8 << 48, width), width)
        value = k.code.let(f"select {vector('i1')} {any_nan}, {t} {nan}, {t} {value}")
    if sign:
        value = k.as_float(k.code.let(f"or {raw} {k.as_integer(value, width)}, {sign}"), width)
    return value


def absolute(k: Lanes, i: Instruction) -> None:
    _sign_bit(k, i, "and", -1)


def negate(k: Lanes, i: Instruction) -> None:
    _sign_bit(k, i, "xor", 0)


def _sign_bit(k: Lanes, i: Instruction, operation: str, base: int) -> None:
    """Change the sign bit (both of a pair of halves)."""
    width = bits(i.type)
    sign = 0x80008000 if i.type.endswith("x2") else 1 << width - 1
    mask = constant(base ^ sign, width)
    value = k.read(i.operands[1], i.type)
    if half.is_half(i.type) and "ftz" in i.parts:
        kind = half.kind_of(i.type)
        halves = [half.flushed(k, i, v, kind) for v in half.parts(k, i.operands[1], i.type)]
        t, one = integers(16), constant(base ^ 0x8000, 16)
        half.join(k, i.operands[0], [k.code.let(f"{operation} {t} {h}, {one}") for h in halves])
        return
    if not half.is_half(i.type):
        value = k.as_integer(flushed(k, i, k.as_float(value, width), width), width)
    k.write(i.operands[0], k.code.let(f"{operation} {integers(width)} {value}, {mask}"), i.type)


@lowers("copysign")
def copy_sign(k: Lanes, i: Instruction) -> None:
    """B with the sign of a."""
    width = bits(i.type)
    t = integers(width)
    a, b = (k.read(o, i.type) for o in i.operands[1:3])
    sign = k.code.let(f"and {t} {a}, {constant(1 << width - 1, width)}")
    rest = k.code.let(f"and {t} {b}, {constant((1 << width - 1) - 1, width)}")
    k.write(i.operands[0], k.code.let(f"or {t} {sign}, {rest}"), i.type)


@lowers("sqrt", "rcp", "rsqrt", takes="rn rz rm rp approx ftz")
def root(k: Lanes, i: Instruction) -> None:
    width, (a,) = _operands(k, i, 1)
    one = k.as_float(constant(0x3F800000 if width == 32 else 0x3FF0000000000000, width), width)
    mode = _directed(i)
    if i.base == "sqrt":
        result = _rounded(k, "sqrt", mode, width, [a]) if mode else k.map("sqrt", width, a)
    elif i.base == "rcp":
        if mode:
            result = _rounded(k, "div", mode, width, [one, a])
        else:
            result = k.code.let(f"fdiv {floats(width)} {one}, {a}")
    else:
        result = _inverse_root(k, a, one, width)
    finish(k, i, result, width)


def _inverse_root(k: Lanes, a: str, one: str, width: int) -> str:
    if width == 64:
        return k.code.let(f"fdiv {floats(64)} {one}, {k.map('sqrt', 64, a)}")
    wide = k.code.let(f"fpext {floats(32)} {a} to {floats(64)}")
    double_one = k.as_float(constant(0x3FF0000000000000, 64), 64)
    result = k.code.let(f"fdiv {floats(64)} {double_one}, {k.map('sqrt', 64, wide)}")
    return k.code.let(f"fptrunc {floats(64)} {result} to {floats(32)}")


@lowers("ex2", "lg2", "sin", "cos", "tanh", takes="approx ftz 2pi")
def transcendental(k: Lanes, i: Instruction) -> None:
    """``.2pi``: the angle counts full turns."""

    def compute(a: str) -> str:
        name = f"om_{i.base}{'_turns' if '2pi' in i.parts else ''}_f32"
        return k.call(name, floats(32), f"{floats(32)} {a}")

    if half.is_half(i.type):
        half.function(k, i, compute)
        return
    if i.type != "f32":
        raise k.unsupported()
    _, (a,) = _operands(k, i, 1)
    finish(k, i, compute(a), 32)
