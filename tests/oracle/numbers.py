"""Floating point as exact rationals: bits to a value, a value to bits under a rounding mode.

A value is a nonzero Fraction, or a Python float for what a Fraction is not: zeros with their sign,
infinities, NaN. Source: IEEE 754-2019; PTX ISA, "Floating Point Instructions".
"""

import math
from dataclasses import dataclass
from fractions import Fraction

NAN = math.nan


@dataclass(frozen=True)
class Format:
    width: int
    fraction: int  # explicit bits of the significand
    low: int  # exponent of the smallest normal number
    high: int  # exponent of the largest
    nan: int  # the canonical NaN

    @property
    def bias(self):
        return 1 - self.low

    @property
    def largest(self):
        return (2 - Fraction(1, 1 << self.fraction)) * power(self.high)


F16 = Format(16, 10, -14, 15, 0x7FFF)
BF16 = Format(16, 7, -126, 127, 0x7FFF)
F32 = Format(32, 23, -126, 127, 0x7FFFFFFF)
F64 = Format(64, 52, -1022, 1023, 0x7FF8 << 48)
FORMATS = {"f16": F16, "bf16": BF16, "f32": F32, "f64": F64}


def power(n):
    return Fraction(1 << n) if n >= 0 else Fraction(1, 1 << -n)


def decode(bits, fmt):
    sign = -1 if bits >> (fmt.width - 1) & 1 else 1
    field = bits >> fmt.fraction & (1 << fmt.width - 1 - fmt.fraction) - 1
    rest = bits & (1 << fmt.fraction) - 1
    if field == (1 << fmt.width - 1 - fmt.fraction) - 1:
        return NAN if rest else sign * math.inf
    if field == 0:
        return sign * rest * power(fmt.low - fmt.fraction) if rest else math.copysign(0.0, sign)
    return sign * (rest + (1 << fmt.fraction)) * power(field - fmt.bias - fmt.fraction)


def exponent(x):
    """The e with 2**e <= |x| < 2**(e + 1)."""
    x = abs(x)
    guess = x.numerator.bit_length() - x.denominator.bit_length()
    return guess if power(guess) <= x else guess - 1


def encode(x, fmt, mode="rn"):
    """Round once: rn to nearest even, rna to nearest away, rz to zero, rm down, rp up."""
    if isinstance(x, float):
        if math.isnan(x):
            return fmt.nan
        sign = math.copysign(1, x) < 0
        if math.isinf(x):
            return sign << fmt.width - 1 | infinity(fmt)
        return sign << fmt.width - 1
    sign, size = x < 0, abs(x)
    unit = power(max(exponent(x), fmt.low) - fmt.fraction)
    down = math.floor(size / unit)
    left = size / unit - down
    if mode == "rn":
        up = left > Fraction(1, 2) or (left == Fraction(1, 2) and down % 2 == 1)
    elif mode == "rna":
        up = left >= Fraction(1, 2)
    else:
        up = left > 0 and ((mode == "rp" and not sign) or (mode == "rm" and sign))
    count = down + up
    if count * unit > fmt.largest:
        away = mode in ("rn", "rna") or (mode == "rp" and not sign) or (mode == "rm" and sign)
        return sign << fmt.width - 1 | (infinity(fmt) if away else infinity(fmt) - 1)
    if count == 0:
        return sign << fmt.width - 1
    e = exponent(count * unit)
    if e < fmt.low:
        return sign << fmt.width - 1 | count
    significand = count * unit / power(e - fmt.fraction)
    field = e + fmt.bias
    return sign << fmt.width - 1 | field << fmt.fraction | int(significand) - (1 << fmt.fraction)


def infinity(fmt):
    return (1 << fmt.width - 1) - (1 << fmt.fraction)


def negative(x):
    return math.copysign(1, x) < 0 if isinstance(x, float) else x < 0


def special(*values):
    return any(isinstance(v, float) and v != 0 for v in values)


def add(a, b, mode):
    if special(a, b):
        return float(a if special(a) else 0) + float(b if special(b) else 0)
    total = Fraction(a) + Fraction(b)
    if total:
        return total
    if a == 0 and b == 0 and negative(a) == negative(b):
        return a
    return -0.0 if mode == "rm" else 0.0


def mul(a, b):
    if special(a, b):
        if (isinstance(a, float) and math.isnan(a)) or (isinstance(b, float) and math.isnan(b)):
            return NAN
        if a == 0 or b == 0:
            return NAN
        return math.inf * (-1 if negative(a) != negative(b) else 1)
    if a == 0 or b == 0:
        return -0.0 if negative(a) != negative(b) else 0.0
    return a * b


def div(a, b):
    sign = -1 if negative(a) != negative(b) else 1
    if special(a, b):
        if (special(a) and special(b)) or is_nan(a) or is_nan(b):
            return NAN
        return sign * math.inf if special(a) else math.copysign(0.0, sign)
    if b == 0:
        return NAN if a == 0 else sign * math.inf
    return a / b if a else math.copysign(0.0, sign)


def is_nan(x):
    return isinstance(x, float) and math.isnan(x)


def root(x, fmt, mode):
    """The bits of the square root: enough digits that one rounding of them is exact."""
    if isinstance(x, float):
        return encode(x if x == 0 or not x < 0 else NAN, fmt)
    if x < 0:
        return fmt.nan
    places = 2 * (fmt.fraction + 4) + abs(exponent(x)) + 8
    scaled = x * 4**places
    floor = math.isqrt(math.floor(scaled))
    exact = floor * floor == scaled
    # A sticky half-unit stands for the digits that were cut off.
    return encode((floor + (0 if exact else Fraction(1, 2))) / Fraction(2**places), fmt, mode)
