"""f16 without the compiler's support functions, which a JIT cannot link."""

from __future__ import annotations

from optiml_magic.emulator.ir import constant, each, floats, integers
from optiml_magic.emulator.library import family


@family("om_f32_of_half")
def widen() -> str:
    """Exact: a half's fraction and exponent as an f32 scaled by 2**112; subnormals included."""
    t, f = integers(32), floats(32)
    scale = f"<{', '.join(['float 0x46F0000000000000'] * 32)}>"  # 2**112
    return f"""
define internal {f} @om_f32_of_half({floats(16)} %h) alwaysinline {{
  %r = bitcast {floats(16)} %h to {integers(16)}
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


@family("om_half_of_f64")
def narrow() -> str:
    """To nearest even, in one rounding: add a number whose last bit is the half's last bit."""
    t, f = integers(64), floats(64)
    return f"""
define internal {floats(16)} @om_half_of_f64({f} %a) noinline {{
  %raw = bitcast {f} %a to {t}
  %abs = and {t} %raw, {constant((1 << 63) - 1, 64)}
  %nan = icmp ugt {t} %abs, {constant(0x7FF << 52, 64)}
  %e0 = lshr {t} %abs, {constant(52, 64)}
  ; below the smallest normal half (2**-14) the last bit stays at 2**-24
  %low = icmp ult {t} %e0, {constant(1023 - 14, 64)}
  %e = select <32 x i1> %low, {t} {constant(1023 - 14, 64)}, {t} %e0
  %over = icmp ugt {t} %e0, {constant(1023 + 15, 64)}
  %ec = select <32 x i1> %over, {t} {constant(1023 + 15, 64)}, {t} %e
  %me = add {t} %ec, {constant(42, 64)}
  %mb = shl {t} %me, {constant(52, 64)}
  %magic = bitcast {t} %mb to {f}
  %x = bitcast {t} %abs to {f}
  %sum = fadd {f} %magic, %x
  %si = bitcast {f} %sum to {t}
  %units = sub {t} %si, %mb
  ; units of the last place: 1024..2048 for normal numbers, whose exponent field is ec - 1008
  %lead = sub {t} %ec, {constant(1023 - 14, 64)}
  %shifted = shl {t} %lead, {constant(10, 64)}
  %h = add {t} %units, %shifted
  %big = icmp ugt {t} %h, {constant(0x7C00, 64)}
  %inf0 = or <32 x i1> %big, %over
  %h1 = select <32 x i1> %inf0, {t} {constant(0x7C00, 64)}, {t} %h
  %h2 = select <32 x i1> %nan, {t} {constant(0x7FFF, 64)}, {t} %h1
  %s0 = lshr {t} %raw, {constant(48, 64)}
  %s1 = and {t} %s0, {constant(0x8000, 64)}
  %sign = select <32 x i1> %nan, {t} zeroinitializer, {t} %s1
  %all = or {t} %h2, %sign
  %n = trunc {t} %all to {integers(16)}
  %r = bitcast {integers(16)} %n to {floats(16)}
  ret {floats(16)} %r
}}"""
