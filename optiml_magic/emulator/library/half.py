"""f16 and bf16 without the compiler's support functions, which a JIT cannot link.

A half travels as its 16 bits; arithmetic is done in f64, and rounded here once.
"""

from __future__ import annotations

from dataclasses import dataclass

from optiml_magic.emulator.ir import constant, each, floats, integers, vector
from optiml_magic.emulator.library import family


@dataclass(frozen=True)
class Format:
    """``fraction``: explicit bits; ``low`` and ``high``: exponents of normal numbers."""

    fraction: int
    low: int
    high: int

    @property
    def infinity(self) -> int:
        return 0x7FFF >> self.fraction << self.fraction


FORMATS = {"f16": Format(10, -14, 15), "bf16": Format(7, -126, 127)}
NAN = 0x7FFF


@family("om_wide_f16")
def widen() -> str:
    """Exact: a half's fraction and exponent as an f32 scaled by 2**112; subnormals included."""
    t, f = integers(32), floats(32)
    scale = f"<{', '.join(['float 0x46F0000000000000'] * 32)}>"  # 2**112
    return f"""
define internal {f} @om_wide_f16({integers(16)} %r) alwaysinline {{
  %w = zext {integers(16)} %r to {t}
  %m = and {t} %w, {constant(0x7FFF, 32)}
  %up = shl {t} %m, {each([13] * 32, 32)}
  %fu = bitcast {t} %up to {f}
  %v = fmul {f} %fu, {scale}
  %vi = bitcast {f} %v to {t}
  %special = icmp uge {t} %m, {constant(0x7C00, 32)}
  %inf = or {t} %up, {constant(0x7F800000, 32)}
  %value = select <32 x i1> %special, {t} %inf, {t} %vi
  %s0 = and {t} %w, {constant(0x8000, 32)}
  %s = shl {t} %s0, {constant(16, 32)}
  %all = or {t} %value, %s
  %x = bitcast {t} %all to {f}
  ret {f} %x
}}"""


@family("om_wide_bf16")
def widen_brain() -> str:
    """A bf16 is the upper half of an f32."""
    t, f = integers(32), floats(32)
    return f"""
define internal {f} @om_wide_bf16({integers(16)} %r) alwaysinline {{
  %w = zext {integers(16)} %r to {t}
  %up = shl {t} %w, {constant(16, 32)}
  %x = bitcast {t} %up to {f}
  ret {f} %x
}}"""


@family(r"om_narrow_(f16|bf16)_rn")
def narrow(kind: str) -> str:
    """F64 to nearest even: add a number whose last bit is the half's last bit."""
    f = FORMATS[kind]
    t, double = integers(64), floats(64)
    return f"""
define internal {integers(16)} @om_narrow_{kind}_rn({double} %a) noinline {{
  %raw = bitcast {double} %a to {t}
  %abs = and {t} %raw, {constant((1 << 63) - 1, 64)}
  %nan = icmp ugt {t} %abs, {constant(0x7FF << 52, 64)}
  %e0 = lshr {t} %abs, {constant(52, 64)}
  ; below the smallest normal half the last bit stays where it is
  %low = icmp ult {t} %e0, {constant(1023 + f.low, 64)}
  %e = select <32 x i1> %low, {t} {constant(1023 + f.low, 64)}, {t} %e0
  %over = icmp ugt {t} %e0, {constant(1023 + f.high, 64)}
  %ec = select <32 x i1> %over, {t} {constant(1023 + f.high, 64)}, {t} %e
  %me = add {t} %ec, {constant(52 - f.fraction, 64)}
  %mb = shl {t} %me, {constant(52, 64)}
  %magic = bitcast {t} %mb to {double}
  %x = bitcast {t} %abs to {double}
  %sum = fadd {double} %magic, %x
  %si = bitcast {double} %sum to {t}
  %units = sub {t} %si, %mb
  ; units of the last place: of a normal number they start at the implicit bit
  %lead = sub {t} %ec, {constant(1023 + f.low, 64)}
  %shifted = shl {t} %lead, {constant(f.fraction, 64)}
  %h = add {t} %units, %shifted
  %big = icmp ugt {t} %h, {constant(f.infinity, 64)}
  %inf0 = or <32 x i1> %big, %over
  %h1 = select <32 x i1> %inf0, {t} {constant(f.infinity, 64)}, {t} %h
{_signed(t)}
}}"""


@family(r"om_narrow_(f16|bf16)_(rz|rm|rp)")
def narrow_directed(kind: str, mode: str) -> str:
    """F64 in another rounding mode: shift the significand down, and look at what falls out."""
    f = FORMATS[kind]
    t, p = integers(64), vector("i1")
    away = {
        "rz": f"and {p} %inexact, zeroinitializer",
        "rp": f"select {p} %minus, {p} zeroinitializer, {p} %inexact",
        "rm": f"select {p} %minus, {p} %inexact, {p} zeroinitializer",
    }[mode]
    # Too large: to infinity where the mode points there, to the largest number otherwise.
    top, most = constant(f.infinity, 64), constant(f.infinity - 1, 64)
    limit = {
        "rz": f"select {p} %isinf, {t} {top}, {t} {most}",
        "rp": f"select {p} %down, {t} {most}, {t} {top}",
        "rm": f"select {p} %up, {t} {most}, {t} {top}",
    }[mode]
    return f"""
define internal {integers(16)} @om_narrow_{kind}_{mode}({floats(64)} %a) noinline {{
  %raw = bitcast {floats(64)} %a to {t}
  %abs = and {t} %raw, {constant((1 << 63) - 1, 64)}
  %nan = icmp ugt {t} %abs, {constant(0x7FF << 52, 64)}
  %isinf = icmp eq {t} %abs, {constant(0x7FF << 52, 64)}
  %finite = xor {p} %isinf, {constant(-1, 1)}
  %minus = icmp slt {t} %raw, zeroinitializer
  %plus = xor {p} %minus, {constant(-1, 1)}
  %down = and {p} %minus, %finite
  %up = and {p} %plus, %finite
  %e0 = lshr {t} %abs, {constant(52, 64)}
  %some = icmp ne {t} %e0, zeroinitializer
  %lead = select {p} %some, {t} {constant(1 << 52, 64)}, {t} zeroinitializer
  %rest = and {t} %abs, {constant((1 << 52) - 1, 64)}
  %m = or {t} %rest, %lead
  %low = icmp ult {t} %e0, {constant(1023 + f.low, 64)}
  %e = select {p} %low, {t} {constant(1023 + f.low, 64)}, {t} %e0
  %under = sub {t} %e, %e0
  %by0 = add {t} %under, {constant(52 - f.fraction, 64)}
  %far = icmp ugt {t} %by0, {constant(63, 64)}
  %by = select {p} %far, {t} {constant(63, 64)}, {t} %by0
  %q = lshr {t} %m, %by
  %back = shl {t} %q, %by
  %inexact = icmp ne {t} %back, %m
  %away = {away}
  %step = zext {p} %away to {t}
  %q1 = add {t} %q, %step
  %place = sub {t} %e, {constant(1023 + f.low, 64)}
  %shifted = shl {t} %place, {constant(f.fraction, 64)}
  %h = add {t} %q1, %shifted
  %over0 = icmp uge {t} %h, {top}
  %over1 = icmp ugt {t} %e0, {constant(1023 + f.high, 64)}
  %over = or {p} %over0, %over1
  %limit = {limit}
  %h1 = select {p} %over, {t} %limit, {t} %h
{_signed(t)}
}}"""


def _signed(t: str) -> str:
    """The sign of %raw onto %h1, or the canonical NaN; returned as 16 bits."""
    return f"""
  %h2 = select <32 x i1> %nan, {t} {constant(NAN, 64)}, {t} %h1
  %s0 = lshr {t} %raw, {constant(48, 64)}
  %s1 = and {t} %s0, {constant(0x8000, 64)}
  %sign = select <32 x i1> %nan, {t} zeroinitializer, {t} %s1
  %all = or {t} %h2, %sign
  %n = trunc {t} %all to {integers(16)}
  ret {integers(16)} %n"""


@family("om_fma_odd")
def fused_odd() -> str:
    """An exact product plus c, rounded to odd: a later rounding to fewer bits is then right.

    Boldo and Melquiond, "Emulation of FMA and correctly rounded sums", 2008.
    """
    t, f, p = integers(64), floats(64), vector("i1")
    return f"""
define internal {f} @om_fma_odd({f} %a, {f} %b, {f} %c) noinline {{
  %m = fmul {f} %a, %b
  %s = fadd {f} %m, %c
  %bb = fsub {f} %s, %m
  %aa = fsub {f} %s, %bb
  %e0 = fsub {f} %m, %aa
  %e1 = fsub {f} %c, %bb
  %err = fadd {f} %e0, %e1
  %inexact = fcmp one {f} %err, zeroinitializer
  %raw = bitcast {f} %s to {t}
  %last = and {t} %raw, {constant(1, 64)}
  %even = icmp eq {t} %last, zeroinitializer
  %fix = and {p} %inexact, %even
  %ep = fcmp ogt {f} %err, zeroinitializer
  %sp = fcmp ogt {f} %s, zeroinitializer
  %apart = xor {p} %ep, %sp
  %step = select {p} %apart, {t} {constant(-1, 64)}, {t} {constant(1, 64)}
  %moved = add {t} %raw, %step
  %bits = select {p} %fix, {t} %moved, {t} %raw
  %r = bitcast {t} %bits to {f}
  ret {f} %r
}}"""


@family(r"om_halfadd_(f16|bf16)")
def scalar_sum(kind: str) -> str:
    """One sum, for atomics."""
    t = integers(16)
    return f"""
define internal i16 @om_halfadd_{kind}(i16 %a, i16 %b) noinline {{
  %av = insertelement {t} zeroinitializer, i16 %a, i32 0
  %bv = insertelement {t} zeroinitializer, i16 %b, i32 0
  %aw = call {floats(32)} @om_wide_{kind}({t} %av)
  %bw = call {floats(32)} @om_wide_{kind}({t} %bv)
  %ad = fpext {floats(32)} %aw to {floats(64)}
  %bd = fpext {floats(32)} %bw to {floats(64)}
  %s = fadd {floats(64)} %ad, %bd
  %n = call {t} @om_narrow_{kind}_rn({floats(64)} %s)
  %r = extractelement {t} %n, i32 0
  ret i16 %r
}}"""
