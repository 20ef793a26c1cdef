"""Float instructions against exact rationals, rounded once by an oracle of our own."""

from __future__ import annotations

import math
import struct
from fractions import Fraction
from functools import cache

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from optiml_magic.emulator import jit
from optiml_magic.emulator.ternlog import without_avx512

from .programs import Program

FORMATS = {"f16": ("<e", 10, -14, 15), "f32": ("<f", 23, -126, 127), "f64": ("<d", 52, -1022, 1023)}


def value(bits: int, kind: str) -> float:
    code = FORMATS[kind][0]
    size = struct.calcsize(code)
    return struct.unpack(code, (bits & (1 << 8 * size) - 1).to_bytes(size, "little"))[0]


def bits_of(x: float, kind: str) -> int:
    return int.from_bytes(struct.pack(FORMATS[kind][0], x), "little")


def rounded(x: Fraction, mode: str, kind: str) -> float:
    """PTX rounding modes: rn to nearest even, rz to zero, rm down, rp up."""
    _, fraction, low, high = FORMATS[kind]
    if x == 0:
        return 0.0
    exponent = max(_exponent(abs(x)), low)
    unit = Fraction(2) ** (exponent - fraction)
    count = {"rn": round, "rz": math.trunc, "rm": math.floor, "rp": math.ceil}[mode](x / unit)
    largest = (2 - Fraction(1, 2**fraction)) * Fraction(2) ** high
    result = count * unit
    if abs(result) > largest:
        to_infinity = mode == "rn" or mode == ("rp" if x > 0 else "rm")
        return math.copysign(math.inf if to_infinity else float(largest), 1 if x > 0 else -1)
    return float(result)


def _exponent(x: Fraction) -> int:
    guess = x.numerator.bit_length() - x.denominator.bit_length()
    return guess if Fraction(2) ** guess <= x else guess - 1


EXACT = {
    "add": lambda a, b, c: a + b,
    "sub": lambda a, b, c: a - b,
    "mul": lambda a, b, c: a * b,
    "fma": lambda a, b, c: a * b + c,
    "div": lambda a, b, c: a / b if b else None,
}
MODES = ("rn", "rz", "rm", "rp")
WIDE = {"f32": ("fd", "fa", "fb", "fc"), "f64": ("Fd", "Fa", "Fb", "Fc")}
ARITHMETIC = [(op, mode, kind) for op in EXACT for mode in MODES for kind in ("f32", "f64")]


def text(op: str, mode: str, kind: str) -> str:
    d, a, b, c = WIDE[kind]
    operands = [d, a, b, c] if op == "fma" else [d, a, b]
    return f"{op}.{mode}.{kind} {', '.join(operands)}; -> {d}"


HALF = {
    "add": "add.f16 d16, a16, b16; -> d16",
    "sub": "sub.f16 d16, a16, b16; -> d16",
    "mul": "mul.f16 d16, a16, b16; -> d16",
    "fma": "fma.rn.f16 d16, a16, b16, c16; -> d16",
}


@cache
def program() -> Program:
    cases = {"-".join(case): text(*case) for case in ARITHMETIC}
    cases |= {f"half-{op}": body for op, body in HALF.items()}
    cases["half2-fma"] = "fma.rn.f16x2 d, a, b, c; -> d"
    cases["half-of"] = "cvt.rn.f16.f32 d16, fa; -> d16"
    cases["half-to"] = "cvt.f32.f16 fd, a16; -> fd"
    cases["narrow"] = "cvt.rn.f32.f64 fd, Fa; -> fd"
    cases["narrow-rp"] = "cvt.rp.f32.f64 fd, Fa; -> fd"
    cases["sqrt-f32"] = "sqrt.rn.f32 fd, fa; -> fd"
    cases["sqrt-f64"] = "sqrt.rn.f64 Fd, Fa; -> Fd"
    cases["int-rz"] = "cvt.rz.f32.s64 fd, A; -> fd"
    cases["int-rn"] = "cvt.rn.f32.u32 fd, a; -> fd"
    return Program(cases)


finite = st.floats(allow_nan=False, allow_infinity=False)
single = st.floats(allow_nan=False, allow_infinity=False, width=32).map(lambda x: bits_of(x, "f32"))
near = st.floats(-4, 4, width=32).map(lambda x: bits_of(x, "f32"))
halves = st.tuples(*[st.floats(width=16, allow_nan=False, allow_infinity=False)] * 2).map(
    lambda p: bits_of(p[0], "f16") | bits_of(p[1], "f16") << 16
)
double = st.one_of(finite, st.floats(-8, 8)).map(lambda x: bits_of(x, "f64"))
word = st.one_of(single, near, halves, double, double)
triples = st.lists(st.tuples(word, word, word), min_size=1, max_size=40)


def same(got: float, wanted: float) -> bool:
    return got == wanted or (math.isnan(got) and math.isnan(wanted))


def check(name, kind, mode, exact, operands, got):
    for triple, raw in zip(operands, got, strict=True):
        x = [value(v, kind) for v in triple]
        if not all(map(math.isfinite, x)):
            continue
        wanted = exact(*map(Fraction, x))
        if wanted is None:
            continue
        result = value(raw, kind)
        assert same(result, rounded(wanted, mode, kind)), (name, x, result)


@settings(max_examples=40, deadline=None)
@given(triples)
def test_rounding(operands):
    got = program().results(*zip(*operands, strict=True))
    for op, mode, kind in ARITHMETIC:
        name = f"{op}-{mode}-{kind}"
        check(name, kind, mode, EXACT[op], operands, got[name])
    for op in HALF:
        check(op, "f16", "rn", EXACT[op], operands, got[f"half-{op}"])
    for half in range(2):
        check(
            "half2",
            "f16",
            "rn",
            EXACT["fma"],
            [tuple(v >> 16 * half for v in t) for t in operands],
            [v >> 16 * half for v in got["half2-fma"]],
        )
    for (a, _, _), narrow, up, half in zip(
        operands, got["narrow"], got["narrow-rp"], got["half-of"], strict=True
    ):
        x = value(a, "f64")
        if math.isfinite(x):
            assert same(value(narrow, "f32"), rounded(Fraction(x), "rn", "f32")), x
            assert same(value(up, "f32"), rounded(Fraction(x), "rp", "f32")), x
        y = value(a, "f32")
        if math.isfinite(y):
            assert same(value(half, "f16"), rounded(Fraction(y), "rn", "f16")), y
    with np.errstate(all="ignore"):
        a = np.array([t[0] & 2**64 - 1 for t in operands], np.uint64)
        low = a.astype(np.uint32)
        roots = {
            "sqrt-f32": np.sqrt(low.view(np.float32)).view(np.uint32),
            "sqrt-f64": np.sqrt(a.view(np.float64)).view(np.uint64),
            "half-to": a.astype(np.uint16).view(np.float16).astype(np.float32).view(np.uint32),
            "int-rn": low.astype(np.float32).view(np.uint32),
        }
    for name, wanted in roots.items():
        kind = "f64" if name == "sqrt-f64" else "f32"
        for raw, want in zip(got[name], wanted.tolist(), strict=True):
            assert same(value(raw, kind), value(want, kind)), name
    for (a, _, _), raw in zip(operands, got["int-rz"], strict=True):
        signed = (a & 2**64 - 1) - (2**64 if a >> 63 & 1 else 0)
        assert value(raw, "f32") == rounded(Fraction(signed), "rz", "f32")


TO_INTEGER = {
    "rni": lambda x: round(Fraction(x)),
    "rzi": math.trunc,
    "rmi": math.floor,
    "rpi": math.ceil,
}
RANGES = {
    "s32": (-(2**31), 2**31 - 1),
    "u32": (0, 2**32 - 1),
    "s64": (-(2**63), 2**63 - 1),
    "u64": (0, 2**64 - 1),
    "s16": (-(2**15), 2**15 - 1),
    "u8": (0, 255),
}
DESTINATION = {"s32": "d", "u32": "d", "s64": "D", "u64": "D", "s16": "d16", "u8": "d"}
CONVERSIONS = [(m, to, f) for m in TO_INTEGER for to in RANGES for f in ("f32", "f64")]
ORDERS = {
    "eq": lambda a, b: a == b,
    "ne": lambda a, b: a < b or a > b,
    "lt": lambda a, b: a < b,
    "geu": lambda a, b: not a < b,
    "neu": lambda a, b: a != b,
    "ltu": lambda a, b: not a >= b,
    "num": lambda a, b: a == a and b == b,
    "nan": lambda a, b: a != a or b != b,
}


@cache
def conversions() -> Program:
    cases = {
        f"{m}-{to}-{f}": f"cvt.{m}.{to}.{f} {DESTINATION[to]}, {'fa' if f == 'f32' else 'Fa'}; "
        f"-> {DESTINATION[to]}"
        for m, to, f in CONVERSIONS
    }
    cases |= {f"setp-{o}": f"setp.{o}.f32 p, fa, fb; -> p" for o in ORDERS}
    cases |= {
        "min": "min.f32 fd, fa, fb; -> fd",
        "max": "max.f64 Fd, Fa, Fb; -> Fd",
        "min.NaN": "min.NaN.f32 fd, fa, fb; -> fd",
        "abs": "abs.f32 fd, fa; -> fd",
        "neg": "neg.f64 Fd, Fa; -> Fd",
        "copysign": "copysign.f32 fd, fa, fb; -> fd",
        "sat": "cvt.sat.f32.f32 fd, fa; -> fd",
        "add.sat": "add.sat.f32 fd, fa, fb; -> fd",
        "mul.ftz": "mul.ftz.f32 fd, fa, fb; -> fd",
        "floor": "cvt.rmi.f32.f32 fd, fa; -> fd",
        "even": "cvt.rni.f64.f64 Fd, Fa; -> Fd",
        "widen": "cvt.f64.f32 Fd, fa; -> Fd",
        "number": "testp.number.f32 p, fa; -> p",
        "subnormal": "testp.subnormal.f32 p, fa; -> p",
    }
    return Program(cases)


def least(a: float, b: float) -> float:
    """PTX: a number wins over NaN, and -0 is less than +0."""
    if math.isnan(a) or math.isnan(b):
        return b if math.isnan(a) else a
    return min(a, b, key=lambda x: (x, math.copysign(1, x)))


def saturate(x: float) -> float:
    return min(x, 1.0) if x > 0 else 0.0


def flush(x: float) -> float:
    return math.copysign(0.0, x) if abs(x) < 2.0**-126 else x


anything32 = st.floats(width=32).map(lambda x: bits_of(x, "f32"))
tiny = st.floats(-(2.0**-123), 2.0**-123, width=32).map(lambda x: bits_of(x, "f32"))
special = st.sampled_from([0, 1 << 31, 1 << 63, 0x7F800000, 0x7FF << 52, 0x7FC00000, 0x3F000000])
anything = st.one_of(anything32, tiny, special, st.floats().map(lambda x: bits_of(x, "f64")))


@settings(max_examples=40, deadline=None)
@given(st.lists(st.tuples(anything, anything), min_size=1, max_size=40))
def test_conversions_and_comparisons(operands):
    a, b = zip(*operands, strict=True)
    got = conversions().results(a, b, a)
    for at, (ra, rb) in enumerate(operands):
        x, y, wx, wy = value(ra, "f32"), value(rb, "f32"), value(ra, "f64"), value(rb, "f64")
        for mode, to, kind in CONVERSIONS:
            source, (low, high) = (x if kind == "f32" else wx), RANGES[to]
            if math.isnan(source):
                wide = "64" in to or kind == "f64"
                wanted = 1 << int(to[1:]) - 1 if wide else 0
            elif math.isinf(source):
                wanted = high if source > 0 else low
            else:
                wanted = max(low, min(high, TO_INTEGER[mode](source)))
            width = 32 if to == "u8" else int(to[1:])
            assert got[f"{mode}-{to}-{kind}"][at] == wanted & (1 << width) - 1, (mode, to, source)
        for order, oracle in ORDERS.items():
            assert got[f"setp-{order}"][at] == oracle(x, y), order
        with np.errstate(all="ignore"):
            total = float(np.float32(x) + np.float32(y))
            product = float(np.float32(flush(x)) * np.float32(flush(y)))
        singles = {
            "min": least(x, y),
            "min.NaN": math.nan if math.isnan(x) or math.isnan(y) else least(x, y),
            "abs": abs(x),
            "copysign": math.copysign(y, x),
            "sat": saturate(x),
            "add.sat": saturate(total),
            "mul.ftz": flush(product),
            "floor": float(np.floor(np.float32(x))),
        }
        for name, wanted in singles.items():
            result = value(got[name][at], "f32")
            assert same(result, wanted), (name, x, y)
            assert math.isnan(wanted) or math.copysign(1, result) == math.copysign(1, wanted), name
        assert same(value(got["max"][at], "f64"), -least(-wx, -wy))
        assert same(value(got["neg"][at], "f64"), -wx)
        assert same(value(got["even"][at], "f64"), float(np.rint(wx)))
        assert same(value(got["widen"][at], "f64"), x)
        assert got["number"][at] == (not math.isnan(x))
        assert got["subnormal"][at] == (0 < abs(x) < 2.0**-126)


INTEGERS = {"u8": "d", "s8": "d", "u32": "a", "s32": "a", "u64": "A", "s64": "A"}
DIRECTED = [(m, to, f) for m in ("rz", "rm", "rp") for to in ("f32", "f64") for f in INTEGERS]


@pytest.mark.parametrize("change", [str, without_avx512], ids=["here", "without AVX-512"])
def test_integers_become_floats_in_every_mode(change, monkeypatch):
    """Not all processors have one instruction for it, and what LLVM makes of several rounds too."""
    cpu, features = jit._processor()
    monkeypatch.setattr(jit, "_processor", lambda: (cpu, change(features)))
    program = Program(
        {
            f"{m}-{to}-{f}": f"cvt.u32.{'u8' if f == 'u8' else 's8'} d, a; "
            f"cvt.{m}.{to}.{f} {WIDE[to][0]}, {INTEGERS[f]}; -> {WIDE[to][0]}"
            for m, to, f in DIRECTED
        }
    )
    values = [0, 1, -1, 127, 128, 255, 2**24 + 1, 2**31 - 1, 2**31, 2**32 - 1, 2**53 + 1]
    values += [2**63 - 1, 2**63, 2**63 + 1025, 2**64 - 1, 0x0123456789ABCDEF, 0xFEDCBA9876543210]
    got = program.results(values, values, values)
    for m, to, f in DIRECTED:
        width = int(f[1:])
        for given_, raw in zip(values, got[f"{m}-{to}-{f}"], strict=True):
            low = given_ % 2**width
            x = low - 2**width if f[0] == "s" and low >> width - 1 else low
            wanted = bits_of(rounded(Fraction(x), m, to), to)
            assert raw == wanted, (f"cvt.{m}.{to}.{f}", x, hex(raw), hex(wanted))
