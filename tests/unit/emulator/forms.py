"""Every instruction form that computes on registers, as one statement each, and how to run them.

A form is ``(statement, result register, type of the result, lowest sm, tolerance)``. The register
of an operand follows from its type: a16 b16 c16, a b c (32 bits), A B C (64), p (predicates).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product

REGISTERS = {1: "{}p", 8: "{}", 16: "{}16", 32: "{}"}
SIZES = {"pred": 1, "f16x2": 32, "bf16x2": 32, "u16x2": 32, "s16x2": 32, "tf32": 32, "bf16": 16}


@dataclass(frozen=True)
class Form:
    text: str
    result: str  # register
    type: str
    sm: int = 75
    error: float = 0.0  # relative or absolute, whichever is larger; 0 means the same bits


def size(type_: str) -> int:
    return SIZES.get(type_) or int(type_[1:])


def register(letter: str, type_: str) -> str:
    width = size(type_)
    return letter.upper() if width == 64 else REGISTERS[width].format(letter)


def form(op: str, to: str, *sources: str, sm: int = 75, error: float = 0.0) -> Form:
    """``op`` with a result of type ``to`` and sources of these types."""
    target = "p" if to == "pred" else register("d", to)
    operands = ", ".join(register(c, t) for c, t in zip("abc", sources, strict=False))
    return Form(f"{op} {target}, {operands};", target, to, sm, error)


def integer_forms() -> Iterator[Form]:
    wide = {"16": "32", "32": "64"}
    for sign, bits in product("us", ("16", "32", "64")):
        t = sign + bits
        for op in ("add", "sub", "mul.lo", "mul.hi", "div", "rem", "min", "max"):
            yield form(f"{op}.{t}", t, t, t)
        for op in ("mad.lo", "mad.hi", "sad"):
            yield form(f"{op}.{t}", t, t, t, t)
        yield form(f"shr.{t}", t, t, "u32")
        if bits != "64":
            yield form(f"mul.wide.{t}", sign + wide[bits], t, t)
            yield form(f"mad.wide.{t}", sign + wide[bits], t, t, sign + wide[bits])
        if bits != "16":
            yield form(f"bfe.{t}", t, t, "u32", "u32")
            yield form(f"bfind.{t}", "u32", t)
            yield form(f"bfind.shiftamt.{t}", "u32", t)
    for bits in ("16", "32", "64"):
        yield form(f"abs.s{bits}", f"s{bits}", f"s{bits}")
        yield form(f"neg.s{bits}", f"s{bits}", f"s{bits}")
        for op in ("and", "or", "xor"):
            yield form(f"{op}.b{bits}", f"b{bits}", f"b{bits}", f"b{bits}")
        yield form(f"not.b{bits}", f"b{bits}", f"b{bits}")
        yield form(f"cnot.b{bits}", f"b{bits}", f"b{bits}")
        yield form(f"shl.b{bits}", f"b{bits}", f"b{bits}", "u32")
    for bits in ("32", "64"):
        yield form(f"popc.b{bits}", "u32", f"b{bits}")
        yield form(f"clz.b{bits}", "u32", f"b{bits}")
        yield form(f"brev.b{bits}", f"b{bits}", f"b{bits}")
        a, b = ("a", "b") if bits == "32" else ("A", "B")
        d = a.replace("a", "d").replace("A", "D")
        yield Form(f"bfi.b{bits} {d}, {a}, {b}, c, e;", d, f"b{bits}")
    yield form("add.sat.s32", "s32", "s32", "s32")
    yield form("sub.sat.s32", "s32", "s32", "s32")
    yield form("mad.hi.sat.s32", "s32", "s32", "s32", "s32")
    for op, sign, part in product(("mul24", "mad24"), "us", ("lo", "hi")):
        sources = [f"{sign}32"] * (2 if op == "mul24" else 3)
        yield form(f"{op}.{part}.{sign}32", f"{sign}32", *sources)
    for x, y in product("us", "us"):
        yield form(f"dp4a.{x}32.{y}32", "b32", "b32", "b32", "b32")
        yield form(f"dp2a.lo.{x}32.{y}32", "b32", "b32", "b32", "b32")
        yield form(f"dp2a.hi.{x}32.{y}32", "b32", "b32", "b32", "b32")
    for table in (0x00, 0x80, 0xCA, 0x96, 0xE8, 0x1B, 0xFF):
        yield Form(f"lop3.b32 d, a, b, c, {table};", "d", "b32")
    for mode in ("", ".f4e", ".b4e", ".rc8", ".ecl", ".ecr", ".rc16"):
        yield form(f"prmt.b32{mode}", "b32", "b32", "b32", "b32")
    for way, mode in product("lr", ("wrap", "clamp")):
        yield form(f"shf.{way}.{mode}.b32", "b32", "b32", "b32", "b32")
    for mode in ("clamp", "wrap"):
        yield form(f"bmsk.{mode}.b32", "b32", "b32", "b32")
        yield form(f"szext.{mode}.s32", "s32", "s32", "u32")
        yield form(f"szext.{mode}.u32", "u32", "u32", "u32")
    yield Form("and.b32 b, b, 31; fns.b32 d, a, b, c;", "d", "b32")
    yield Form("and.b32 b, b, 31; and.b32 c, c, 7; fns.b32 d, a, b, c;", "d", "b32")
    for kind in ("u16x2", "s16x2"):
        for op in ("add", "min", "max"):
            yield form(f"{op}.{kind}", kind, kind, kind, sm=90)
    for op in ("min", "max"):
        yield form(f"{op}.s16x2.relu", "s16x2", "s16x2", "s16x2", sm=90)
        yield form(f"{op}.s32.relu", "s32", "s32", "s32", sm=90)
    for n, types in product("24", ("u32.u32.u32", "s32.s32.s32", "u32.s32.u32")):
        yield form(f"vabsdiff{n}.{types}", "b32", "b32", "b32", "b32")
        yield form(f"vabsdiff{n}.{types}.sat", "b32", "b32", "b32", "b32")
        yield form(f"vabsdiff{n}.{types}.add", "b32", "b32", "b32", "b32")
    yield Form("add.cc.u32 d, a, b; addc.cc.u32 e, a, c; addc.u32 d, d, e;", "d", "u32")
    yield Form("sub.cc.u32 d, a, b; subc.cc.u32 e, a, c; subc.u32 d, d, e;", "d", "u32")
    yield Form("add.cc.u64 D, A, B; addc.u64 D, D, C;", "D", "u64")
    yield Form("mad.lo.cc.u32 d, a, b, c; madc.hi.cc.u32 e, a, b, c; addc.u32 d, d, e;", "d", "u32")
    yield Form("mad.hi.cc.u32 d, a, b, c; madc.lo.u32 d, d, b, a;", "d", "u32")
    yield Form("sub.cc.s64 D, A, B; subc.s64 D, D, C;", "D", "s64")


FLOATS = ("f32", "f64")
MODES = ("rn", "rz", "rm", "rp")
HALVES = {"f16": 75, "f16x2": 75, "bf16": 90, "bf16x2": 90}


def float_forms() -> Iterator[Form]:
    for t, mode in product(FLOATS, MODES):
        for op in ("add", "sub", "mul", "div"):
            yield form(f"{op}.{mode}.{t}", t, t, t)
        yield form(f"fma.{mode}.{t}", t, t, t, t)
        yield form(f"rcp.{mode}.{t}", t, t)
        yield form(f"sqrt.{mode}.{t}", t, t)
        if t == "f32":
            for op in ("add", "sub", "mul"):
                yield form(f"{op}.{mode}.ftz.{t}", t, t, t)
                yield form(f"{op}.{mode}.sat.{t}", t, t, t)
                yield form(f"{op}.{mode}.ftz.sat.{t}", t, t, t)
            yield form(f"fma.{mode}.ftz.{t}", t, t, t, t)
            yield form(f"fma.{mode}.ftz.sat.{t}", t, t, t, t)
            yield form(f"div.{mode}.ftz.{t}", t, t, t)
            yield form(f"rcp.{mode}.ftz.{t}", t, t)
            yield form(f"sqrt.{mode}.ftz.{t}", t, t)
    for t in FLOATS:
        for op in ("add", "sub", "mul", "min", "max", "copysign"):
            yield form(f"{op}.{t}", t, t, t)
        yield form(f"abs.{t}", t, t)
        yield form(f"neg.{t}", t, t)
        for name in ("finite", "infinite", "number", "notanumber", "normal", "subnormal"):
            yield form(f"testp.{name}.{t}", "pred", t)
    for op in ("abs", "neg"):
        yield form(f"{op}.ftz.f32", "f32", "f32")
    for op in ("min", "max"):
        yield form(f"{op}.ftz.f32", "f32", "f32", "f32")
        yield form(f"{op}.NaN.f32", "f32", "f32", "f32", sm=80)
        yield form(f"{op}.xorsign.abs.f32", "f32", "f32", "f32", sm=86)
        yield form(f"{op}.NaN.xorsign.abs.f32", "f32", "f32", "f32", sm=86)
    for flush in ("", ".ftz"):
        for op, error in (("rcp", 2**-22), ("sqrt", 2**-22), ("rsqrt", 2**-22), ("ex2", 2**-21)):
            yield form(f"{op}.approx{flush}.f32", "f32", "f32", error=error)
        yield form(f"lg2.approx{flush}.f32", "f32", "f32", error=2**-21)
        yield Form(
            f"and.b32 a, a, 0xC0FFFFFF; sin.approx{flush}.f32 d, a;", "d", "f32", 75, 2**-20.5
        )
        yield Form(
            f"and.b32 a, a, 0xC0FFFFFF; cos.approx{flush}.f32 d, a;", "d", "f32", 75, 2**-20.5
        )
        yield form(f"div.approx{flush}.f32", "f32", "f32", "f32", error=2**-22)
        yield form(f"div.full{flush}.f32", "f32", "f32", "f32", error=2**-22)
    for op in ("sin", "cos"):
        yield form(f"{op}.approx.2pi.ftz.f32", "f32", "f32", error=2**-20.5)
    yield form("tanh.approx.f32", "f32", "f32", error=2**-11)
    yield form("rcp.approx.ftz.f64", "f64", "f64", error=2**-20)
    yield form("rsqrt.approx.f64", "f64", "f64", error=2**-20)


def half_forms() -> Iterator[Form]:
    for t, sm in HALVES.items():
        fused = 80 if t.startswith("bf") else sm
        for op in ("add", "sub", "mul"):
            yield form(f"{op}.{t}", t, t, t, sm=sm)
            if not t.startswith("bf"):
                yield form(f"{op}.ftz.{t}", t, t, t)
                yield form(f"{op}.sat.{t}", t, t, t)
        yield form(f"fma.rn.{t}", t, t, t, t, sm=fused)
        yield form(f"fma.rn.relu.{t}", t, t, t, t, sm=80)
        if not t.startswith("bf"):
            yield form(f"fma.rn.ftz.sat.{t}", t, t, t, t)
        for op in ("abs", "neg"):
            yield form(f"{op}.{t}", t, t, sm=fused)
        for op in ("min", "max"):
            yield form(f"{op}.{t}", t, t, t, sm=80)
            yield form(f"{op}.NaN.{t}", t, t, t, sm=80)
            yield form(f"{op}.xorsign.abs.{t}", t, t, t, sm=86)
        error = 2**-7 if t.startswith("bf") else 2**-9.9
        yield form(f"tanh.approx.{t}", t, t, sm=sm, error=error)
        flush = ".ftz" if t.startswith("bf") else ""
        yield form(f"ex2.approx{flush}.{t}", t, t, sm=sm, error=error)


def holds(to: str, from_: str) -> bool:
    """Every value of one integer type is one of the other; ptxas takes no .sat then."""
    if from_[0] == "s":
        return to[0] == "s" and size(to) >= size(from_)
    return size(to) > size(from_) or (to[0] == "u" and size(to) >= size(from_))


def conversion_forms() -> Iterator[Form]:
    integers = [s + b for s in "us" for b in ("8", "16", "32", "64")]
    for to, from_ in product(integers, integers):
        if to != from_:
            yield form(f"cvt.{to}.{from_}", to, from_)
            if not holds(to, from_):
                yield form(f"cvt.sat.{to}.{from_}", to, from_)
    for mode, to, from_ in product(("rni", "rzi", "rmi", "rpi"), integers, ("f16", "f32", "f64")):
        yield form(f"cvt.{mode}.{to}.{from_}", to, from_)
        if from_ == "f32":
            yield form(f"cvt.{mode}.ftz.sat.{to}.{from_}", to, from_)
    for mode, to, from_ in product(MODES, ("f16", "f32", "f64"), integers):
        yield form(f"cvt.{mode}.{to}.{from_}", to, from_)
    for mode in MODES:
        yield form(f"cvt.{mode}.f32.f64", "f32", "f64")
        yield form(f"cvt.{mode}.ftz.sat.f32.f64", "f32", "f64")
        yield form(f"cvt.{mode}.f16.f32", "f16", "f32")
        yield form(f"cvt.{mode}.f16.f64", "f16", "f64")
        for from_ in ("u16", "s32", "u64", "s64"):
            yield form(f"cvt.{mode}.bf16.{from_}", "bf16", from_, sm=90)
        yield form(f"cvt.{mode}.bf16.f32", "bf16", "f32", sm=80 if mode in ("rn", "rz") else 90)
    for mode, t in product(("rni", "rzi", "rmi", "rpi"), ("f16", "f32", "f64")):
        yield form(f"cvt.{mode}.{t}.{t}", t, t)
    for mode, to in product(("rni", "rzi", "rmi", "rpi"), ("s16", "u32", "s64")):
        yield form(f"cvt.{mode}.{to}.bf16", to, "bf16", sm=90)
    yield form("cvt.f32.f16", "f32", "f16")
    yield form("cvt.f64.f16", "f64", "f16")
    yield form("cvt.f32.bf16", "f32", "bf16", sm=90)
    yield form("cvt.f64.f32", "f64", "f32")
    yield form("cvt.ftz.f64.f32", "f64", "f32")
    yield form("cvt.sat.f32.f32", "f32", "f32")
    yield form("cvt.sat.f64.f64", "f64", "f64")
    for mode, relu in product(("rn", "rz"), ("", ".relu")):
        yield form(f"cvt.{mode}{relu}.f16x2.f32", "f16x2", "f32", "f32", sm=80)
        yield form(f"cvt.{mode}{relu}.bf16x2.f32", "bf16x2", "f32", "f32", sm=80)
        yield form(f"cvt.{mode}{relu}.bf16.f32", "bf16", "f32", sm=80)
        yield form(f"cvt.{mode}{relu}.tf32.f32", "tf32", "f32", sm=90)
    yield form("cvt.rna.tf32.f32", "tf32", "f32", sm=80)


ORDERS = ("eq", "ne", "lt", "le", "gt", "ge")
UNSIGNED = ("lo", "ls", "hi", "hs")
UNORDERED = ("equ", "neu", "ltu", "leu", "gtu", "geu", "num", "nan")


def comparison_forms() -> Iterator[Form]:
    for t in [s + b for s in "us" for b in ("16", "32", "64")]:
        for name in ORDERS + (UNSIGNED if t[0] == "u" else ()):
            yield form(f"setp.{name}.{t}", "pred", t, t)
    for t in ("b16", "b32", "b64"):
        yield form(f"setp.eq.{t}", "pred", t, t)
        yield form(f"setp.ne.{t}", "pred", t, t)
    for t, sm in (("f32", 75), ("f64", 75), ("f16", 75), ("bf16", 90)):
        for name in ORDERS + UNORDERED:
            yield form(f"setp.{name}.{t}", "pred", t, t, sm=sm)
    for t, sm in (("f16x2", 75), ("bf16x2", 90)):
        for name in ORDERS + UNORDERED:
            yield form(f"set.{name}.{t}.{t}", t, t, t, sm=sm)
            yield form(f"set.{name}.u32.{t}", "u32", t, t, sm=sm)
        yield Form(f"setp.lt.{t} p|q, a, b; xor.pred p, p, q;", "p", "pred", sm)
    for name in ("lt", "geu"):
        yield form(f"setp.{name}.ftz.f32", "pred", "f32", "f32")
        yield form(f"set.{name}.f32.f32", "f32", "f32", "f32")
        yield form(f"set.{name}.u32.f64", "u32", "f64", "f64")
        yield form(f"set.{name}.f16.f16", "f16", "f16", "f16")
    for combine in ("and", "or", "xor"):
        head = "setp.ne.s32 r, c, 0;"
        yield Form(f"{head} setp.lt.{combine}.s32 p|q, a, b, r;", "p", "pred")
        yield Form(f"{head} setp.lt.{combine}.s32 q|p, a, b, r;", "p", "pred")
        yield Form(f"{head} setp.leu.{combine}.f32 p|q, a, b, !r;", "q", "pred")
        yield Form(f"{head} set.lt.{combine}.u32.s32 d, a, b, r;", "d", "u32")
        yield Form(f"setp.lt.s32 p, a, b; {head} {combine}.pred p, p, r;", "p", "pred")
    yield Form("setp.lt.s32 p, a, b; not.pred p, p;", "p", "pred")
    for t, (a, b, d) in {"16": ("a16", "b16", "d16"), "32": ("a", "b", "d"), "64": "ABD"}.items():
        for kind in ("b", "u", "s") + (("f",) if t != "16" else ()):
            yield Form(f"setp.ne.s32 r, c, 0; selp.{kind}{t} {d}, {a}, {b}, r;", d, f"b{t}")
        yield Form(f"slct.b{t}.s32 {d}, {a}, {b}, c;", d, f"b{t}")
        yield Form(f"slct.u{t}.f32 {d}, {a}, {b}, c;", d, f"u{t}")
    yield Form("slct.ftz.s32.f32 d, a, b, c;", "d", "s32")


FAMILIES = {
    "integers": integer_forms,
    "floats": float_forms,
    "halves": half_forms,
    "conversions": conversion_forms,
    "comparisons": comparison_forms,
}

SCOPE = (
    "{ .reg .b16 a16, b16, c16, d16; .reg .b32 a, b, c, d, e; .reg .b64 A, B, C, D; "
    ".reg .pred p, q, r; mov.b64 A, %1; mov.b64 B, %2; mov.b64 C, %3; mov.b64 D, 0; "
    "mov.b64 {a, d}, A; mov.b64 {b, d}, B; mov.b64 {c, d}, C; mov.b32 d, 0; mov.b32 e, b; "
    "mov.b32 {a16, d16}, a; mov.b32 {b16, d16}, b; mov.b32 {c16, d16}, c; mov.b16 d16, 0; "
)
KEEP = {
    "d": "cvt.u64.u32 D, d;",
    "D": "",
    "d16": "cvt.u64.u16 D, d16;",
    "p": "selp.u64 D, 1, 0, p;",
    "q": "selp.u64 D, 1, 0, q;",
}


def source(forms: list[Form]) -> str:
    """A kernel that writes the result of each form for each thread's three 64-bit operands."""
    lines = [
        "using u64 = unsigned long long;",
        'extern "C" __global__ void k(const u64* in, u64* out) {',
    ]
    lines.append(
        "int n = blockDim.x, t = threadIdx.x; u64 x = in[t], y = in[n + t], z = in[2 * n + t], o;"
    )
    for at, each in enumerate(forms):
        text = f"{SCOPE}{each.text} {KEEP[each.result]} mov.b64 %0, D; }}"
        lines.append(
            f'asm volatile("{text}" : "=l"(o) : "l"(x), "l"(y), "l"(z)); out[{at} * n + t] = o;'
        )
    return "\n".join([*lines, "}"])
