"""Integer instructions against Python's unbounded integers."""

from __future__ import annotations

from functools import cache

from hypothesis import given, settings
from hypothesis import strategies as st

from .programs import Program


def u(x: int, w: int = 32) -> int:
    return x & (1 << w) - 1


def s(x: int, w: int = 32) -> int:
    x = u(x, w)
    return x - (1 << w) if x >> w - 1 else x


def quotient(a: int, b: int) -> int:
    """Truncated towards zero, as C divides."""
    return abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1)


def clamp(x: int, low: int, high: int) -> int:
    return max(low, min(high, x))


def bfe(a: int, pos: int, length: int, w: int, signed: bool) -> int:
    pos, length = pos & 255, length & 255
    if not length:
        return 0
    sign = u(a, w) >> min(pos + length - 1, w - 1) & 1 if signed else 0
    bits = 0
    for i in range(w):
        bit = u(a, w) >> pos + i & 1 if i < length and pos + i < w else sign
        bits |= bit << i
    return bits


def bfi(a: int, b: int, pos: int, length: int, w: int) -> int:
    pos, length = pos & 255, length & 255
    for i in range(length):
        if pos + i < w:
            b = b & ~(1 << pos + i) | (a >> i & 1) << pos + i
    return u(b, w)


def prmt(a: int, b: int, c: int) -> int:
    source = (u(a) | u(b) << 32).to_bytes(8, "little")
    out = []
    for i in range(4):
        nibble = c >> 4 * i & 15
        byte = source[nibble & 7]
        out.append((255 if byte >> 7 else 0) if nibble & 8 else byte)
    return int.from_bytes(bytes(out), "little")


def bfind(a: int, w: int, signed: bool) -> int:
    a = ~a if signed and s(a, w) < 0 else a
    return u(u(a, w).bit_length() - 1)


def reverse(a: int, w: int) -> int:
    return int(f"{u(a, w):0{w}b}"[::-1], 2)


def funnel(a: int, b: int, n: int, left: bool) -> int:
    both = u(a) | u(b) << 32
    return u(both << n >> 32) if left else u(both >> n)


def dp4a(a: int, b: int, c: int) -> int:
    x, y = (u(v).to_bytes(4, "little") for v in (a, b))
    return u(c + sum(s(i, 8) * s(j, 8) for i, j in zip(x, y, strict=True)))


CASES = {
    "add": ("add.s32 d, a, b; -> d", lambda a, b, c: u(a + b)),
    "sub": ("sub.u32 d, a, b; -> d", lambda a, b, c: u(a - b)),
    "add.sat": (
        "add.sat.s32 d, a, b; -> d",
        lambda a, b, c: u(clamp(s(a) + s(b), -(2**31), 2**31 - 1)),
    ),
    "sub.sat": (
        "sub.sat.s32 d, a, b; -> d",
        lambda a, b, c: u(clamp(s(a) - s(b), -(2**31), 2**31 - 1)),
    ),
    "mul.lo": ("mul.lo.s32 d, a, b; -> d", lambda a, b, c: u(a * b)),
    "mul.hi.s": ("mul.hi.s32 d, a, b; -> d", lambda a, b, c: u(s(a) * s(b) >> 32)),
    "mul.hi.u": ("mul.hi.u32 d, a, b; -> d", lambda a, b, c: u(u(a) * u(b) >> 32)),
    "mul.wide.s": ("mul.wide.s32 D, a, b; -> D", lambda a, b, c: u(s(a) * s(b), 64)),
    "mul.wide.u": ("mul.wide.u32 D, a, b; -> D", lambda a, b, c: u(u(a) * u(b), 64)),
    "mul.wide.s16": ("mul.wide.s16 d, a16, b16; -> d", lambda a, b, c: u(s(a, 16) * s(b, 16))),
    "mul24": ("mul24.lo.u32 d, a, b; -> d", lambda a, b, c: u(u(a, 24) * u(b, 24))),
    "mad.lo": ("mad.lo.s32 d, a, b, c; -> d", lambda a, b, c: u(a * b + c)),
    "mad.hi": ("mad.hi.u32 d, a, b, c; -> d", lambda a, b, c: u((u(a) * u(b) >> 32) + c)),
    "mad.wide": ("mad.wide.s32 D, a, b, C; -> D", lambda a, b, c: u(s(a) * s(b) + c, 64)),
    "div.s": ("div.s32 d, a, b; -> d", lambda a, b, c: u(quotient(s(a), s(b)) if s(b) else -1)),
    "div.u": ("div.u32 d, a, b; -> d", lambda a, b, c: u(u(a) // u(b) if u(b) else -1)),
    "rem.s": (
        "rem.s32 d, a, b; -> d",
        lambda a, b, c: u(s(a) - quotient(s(a), s(b)) * s(b) if s(b) else a),
    ),
    "rem.u": ("rem.u32 d, a, b; -> d", lambda a, b, c: u(u(a) % u(b) if u(b) else a)),
    "div.s64": (
        "div.s64 D, A, B; -> D",
        lambda a, b, c: u(quotient(s(a, 64), s(b, 64)) if s(b, 64) else -1, 64),
    ),
    "rem.u64": (
        "rem.u64 D, A, B; -> D",
        lambda a, b, c: u(a, 64) % u(b, 64) if u(b, 64) else u(a, 64),
    ),
    "div.s16": (
        "div.s16 d16, a16, b16; -> d16",
        lambda a, b, c: u(quotient(s(a, 16), s(b, 16)) if s(b, 16) else -1, 16),
    ),
    "min.s": ("min.s32 d, a, b; -> d", lambda a, b, c: u(min(s(a), s(b)))),
    "max.u": ("max.u32 d, a, b; -> d", lambda a, b, c: max(u(a), u(b))),
    "max.s64": ("max.s64 D, A, B; -> D", lambda a, b, c: u(max(s(a, 64), s(b, 64)), 64)),
    "abs": ("abs.s32 d, a; -> d", lambda a, b, c: u(abs(s(a)))),
    "neg": ("neg.s64 D, A; -> D", lambda a, b, c: u(-a, 64)),
    "sad.s": ("sad.s32 d, a, b, c; -> d", lambda a, b, c: u(abs(s(a) - s(b)) + c)),
    "sad.u": ("sad.u32 d, a, b, c; -> d", lambda a, b, c: u(abs(u(a) - u(b)) + c)),
    "and": ("and.b32 d, a, b; -> d", lambda a, b, c: u(a & b)),
    "xor": ("xor.b64 D, A, B; -> D", lambda a, b, c: u(a ^ b, 64)),
    "not": ("not.b32 d, a; -> d", lambda a, b, c: u(~a)),
    "cnot": ("cnot.b32 d, a; -> d", lambda a, b, c: int(u(a) == 0)),
    "lop3": ("lop3.b32 d, a, b, c, 0xca; -> d", lambda a, b, c: u(a & b | ~a & c)),
    "shl": ("shl.b32 d, a, b; -> d", lambda a, b, c: u(a << u(b)) if u(b) < 32 else 0),
    "shl.small": ("and.b32 b, b, 63; shl.b32 d, a, b; -> d", lambda a, b, c: u(a << (b & 63))),
    "shr.u": ("and.b32 b, b, 63; shr.u32 d, a, b; -> d", lambda a, b, c: u(a) >> (b & 63)),
    "shr.s": ("and.b32 b, b, 63; shr.s32 d, a, b; -> d", lambda a, b, c: u(s(a) >> (b & 63))),
    "shr.s16": (
        "and.b32 b, b, 31; shr.s16 d16, a16, b; -> d16",
        lambda a, b, c: u(s(a, 16) >> (b & 31), 16),
    ),
    "shl.b16": (
        "and.b32 b, b, 31; shl.b16 d16, a16, b; -> d16",
        lambda a, b, c: u(a << (b & 31), 16),
    ),
    "shr.s64": (
        "and.b32 b, b, 127; shr.s64 D, A, b; -> D",
        lambda a, b, c: u(s(a, 64) >> (b & 127), 64),
    ),
    "shl.b64": ("and.b32 b, b, 127; shl.b64 D, A, b; -> D", lambda a, b, c: u(a << (b & 127), 64)),
    "shr.const": ("shr.s32 d, a, 35; -> d", lambda a, b, c: u(s(a) >> 31)),
    "shf.l.wrap": ("shf.l.wrap.b32 d, a, b, c; -> d", lambda a, b, c: funnel(a, b, c & 31, True)),
    "shf.r.clamp": (
        "shf.r.clamp.b32 d, a, b, c; -> d",
        lambda a, b, c: funnel(a, b, min(u(c), 32), False),
    ),
    "shf.l.clamp": (
        "shf.l.clamp.b32 d, a, b, c; -> d",
        lambda a, b, c: funnel(a, b, min(u(c), 32), True),
    ),
    "bfe.s": ("bfe.s32 d, a, b, c; -> d", lambda a, b, c: bfe(a, b, c, 32, True)),
    "bfe.small": (
        "and.b32 b, b, 31; and.b32 c, c, 31; bfe.s32 d, a, b, c; -> d",
        lambda a, b, c: bfe(a, b & 31, c & 31, 32, True),
    ),
    "bfe.u64": (
        "and.b32 b, b, 63; bfe.u64 D, A, b, c; -> D",
        lambda a, b, c: bfe(a, b & 63, c, 64, False),
    ),
    "bfi": (
        "and.b32 b, b, 31; and.b32 c, c, 63; bfi.b32 d, a, 12345678, b, c; -> d",
        lambda a, b, c: bfi(a, 12345678, b & 31, c & 63, 32),
    ),
    "bfind.s": ("bfind.s32 d, a; -> d", lambda a, b, c: bfind(a, 32, True)),
    "bfind.u64": ("bfind.u64 d, A; -> d", lambda a, b, c: bfind(a, 64, False)),
    "bfind.shift": (
        "bfind.shiftamt.u32 d, a; -> d",
        lambda a, b, c: 32 - u(a).bit_length() if u(a) else 2**32 - 1,
    ),
    "popc": ("popc.b32 d, a; -> d", lambda a, b, c: u(a).bit_count()),
    "popc64": ("popc.b64 d, A; -> d", lambda a, b, c: u(a, 64).bit_count()),
    "clz": ("clz.b32 d, a; -> d", lambda a, b, c: 32 - u(a).bit_length()),
    "brev": ("brev.b64 D, A; -> D", lambda a, b, c: reverse(a, 64)),
    "prmt": ("prmt.b32 d, a, b, c; -> d", lambda a, b, c: prmt(a, b, u(c))),
    "dp4a": ("dp4a.s32.s32 d, a, b, c; -> d", dp4a),
    "carry": (
        "add.cc.u32 d, a, b; addc.cc.u32 e, a, c; addc.u32 f, b, c; mov.b64 D, {e, f}; -> D",
        lambda a, b, c: u((u(a) + u(b) + (u(a) + u(c) << 32) + (u(b) + u(c) << 64)) >> 32, 64),
    ),
    "borrow": (
        "sub.cc.u32 d, a, b; subc.u32 e, a, c; mov.b64 D, {d, e}; -> D",
        lambda a, b, c: u((u(a) | u(a) << 32) - (u(b) | u(c) << 32), 64),
    ),
    "selp": (
        "setp.lt.s32 p, a, b; selp.b32 d, a, c, p; -> d",
        lambda a, b, c: u(a if s(a) < s(b) else c),
    ),
    "setp.hi": ("setp.hi.u32 p, a, b; -> p", lambda a, b, c: int(u(a) > u(b))),
    "setp.and": (
        "setp.ne.s32 r, c, 0; setp.le.and.s32 p|q, a, b, r; -> p",
        lambda a, b, c: int(s(a) <= s(b) and u(c) != 0),
    ),
    "setp.other": (
        "setp.ne.s32 r, c, 0; setp.le.xor.s32 q|p, a, b, !r; -> p",
        lambda a, b, c: int((not s(a) <= s(b)) ^ (u(c) == 0)),
    ),
    "set": ("set.gt.u32.s32 d, a, b; -> d", lambda a, b, c: u(-1) if s(a) > s(b) else 0),
    "slct": ("slct.b32.s32 d, a, b, c; -> d", lambda a, b, c: u(a if s(c) >= 0 else b)),
    "guard": (
        "setp.eq.s32 p, a, b; mov.b32 d, 1; @p add.s32 d, d, a; @!p sub.s32 d, d, c; -> d",
        lambda a, b, c: u(1 + a if u(a) == u(b) else 1 - c),
    ),
    "cvt.s8": ("cvt.s32.s8 d, a; -> d", lambda a, b, c: u(s(a, 8))),
    "cvt.u8": ("cvt.u32.u8 d, a; -> d", lambda a, b, c: u(a, 8)),
    "cvt.s64": ("cvt.s64.s32 D, a; -> D", lambda a, b, c: u(s(a), 64)),
    "cvt.sat": ("cvt.sat.s8.s32 d, a; -> d", lambda a, b, c: u(clamp(s(a), -128, 127))),
    "cvt.sat.u": ("cvt.sat.u16.s64 d16, A; -> d16", lambda a, b, c: clamp(s(a, 64), 0, 65535)),
    "cvt.sat.s": ("cvt.sat.s32.u32 d, a; -> d", lambda a, b, c: min(u(a), 2**31 - 1)),
    "mov.pack": ("mov.b32 d, {a16, b16}; -> d", lambda a, b, c: u(a, 16) | u(b, 16) << 16),
    "mov.unpack": ("mov.b64 {e, d}, A; -> d", lambda a, b, c: u(a, 64) >> 32),
}


@cache
def program() -> Program:
    return Program({name: text for name, (text, _) in CASES.items()})


edge = st.sampled_from([0, 1, -1, 2, 31, 32, 33, 2**31 - 1, 2**31, -(2**31), 2**63 - 1, -(2**63)])
number = st.one_of(edge, st.integers(-40, 40), st.integers(-(2**63), 2**64 - 1))
triples = st.lists(st.tuples(number, number, number), min_size=1, max_size=70)


@settings(max_examples=40, deadline=None)
@given(triples)
def test_against_python(operands):
    a, b, c = zip(*operands, strict=True)
    got = program().results(a, b, c)
    for name, (_, oracle) in CASES.items():
        assert got[name] == [oracle(*t) for t in operands], name
