"""Floating-point instructions: exact value, then one rounding, then the modifiers.

Approximate functions are computed in double precision and rounded; a test compares them within the
error that the ISA states. Source: PTX ISA, "Floating Point", "Half Precision", "cvt".
"""

import math
from fractions import Fraction

from . import integers
from .numbers import (
    FORMATS,
    NAN,
    add,
    decode,
    div,
    encode,
    is_nan,
    mul,
    negative,
    root,
    special,
)
from .text import width_of

ROUNDING = {"rn", "rz", "rm", "rp", "rna"}
TO_INTEGER = {
    "rni": round,
    "rzi": math.trunc,
    "rmi": math.floor,
    "rpi": math.ceil,
}


def mode_of(op):
    return next((p for p in op.parts if p in ROUNDING), "rn")


def flush(op, bits, fmt, flushing="ftz"):
    """Subnormal numbers to zeros of their sign."""
    if flushing not in op.parts or fmt.width == 64:
        return bits
    x = decode(bits, fmt)
    if not isinstance(x, float) and abs(x) < Fraction(2) ** fmt.low:
        return bits & 1 << fmt.width - 1
    return bits


def saturate(op, bits, fmt):
    x = decode(bits, fmt)
    if "sat" in op.parts:
        if is_nan(x) or negative(x):
            return 0
        return encode(Fraction(1), fmt) if x > 1 else bits
    if "relu" in op.parts:
        return fmt.nan if is_nan(x) else 0 if negative(x) else bits
    return bits


def fused(a, b, c, mode):
    return add(mul(a, b), c, mode)


def approximate(function):
    """A function of math, with its limits at the ends instead of exceptions."""

    def call(x):
        if is_nan(x):
            return NAN
        try:
            y = function(float(x))
        except OverflowError:
            return math.inf
        except ValueError:
            return NAN
        return Fraction(y) if math.isfinite(y) and y else y

    return call


def lg2(x):
    if x == 0:
        return -math.inf
    return math.log2(x) if x > 0 else NAN


FUNCTIONS = {
    "ex2": approximate(lambda x: 2.0**x),
    "lg2": approximate(lg2),
    "sin": approximate(lambda x: x if x == 0 else math.sin(x)),
    "cos": approximate(math.cos),
    "tanh": approximate(lambda x: x if x == 0 else math.tanh(x)),
}


def turned(op, x):
    """``.2pi`` counts full turns: the fraction of a turn in radians, whole turns taken off."""
    if "2pi" not in op.parts or special(x):
        return x
    rest = Fraction(x) - round(Fraction(x))
    return Fraction(math.tau) * rest if rest else 0.0


def minimum(op, fmt, values):
    """A number wins over NaN unless .NaN; -0 is less than +0; .xorsign takes the signs' xor."""
    sign = 0
    if "xorsign" in op.parts:
        sign = (values[0] ^ values[1]) & 1 << fmt.width - 1
    if "abs" in op.parts:
        values = [v & (1 << fmt.width - 1) - 1 for v in values]
    numbers = [v for v in values if not is_nan(decode(v, fmt))]
    if not numbers or ("NaN" in op.parts and len(numbers) < len(values)):
        return fmt.nan
    key = lambda v: (decode(v, fmt), not negative(decode(v, fmt)))  # noqa: E731
    chosen = (min if op.parts[0] == "min" else max)(numbers, key=key)
    return chosen | sign if "xorsign" in op.parts else chosen


def scalar(op, fmt, values):
    """Raw bits in one format to raw bits in the same format."""
    base, mode = op.parts[0], mode_of(op)
    top = 1 << fmt.width - 1
    if base == "copysign":
        return values[0] & top | values[1] & top - 1
    values = [flush(op, v, fmt) for v in values]
    if base == "neg":
        return values[0] ^ top
    if base == "abs":
        return values[0] & top - 1
    if base in ("min", "max"):
        return saturate(op, minimum(op, fmt, values), fmt)
    x = [decode(v, fmt) for v in values]
    if base == "sqrt":
        result = root(x[0], fmt, mode)
    elif base == "rsqrt":
        low = root(x[0], FORMATS["f64"], "rn")
        result = encode(div(Fraction(1), decode(low, FORMATS["f64"])), fmt)
    else:
        exact = {
            "add": lambda: add(x[0], x[1], mode),
            "sub": lambda: add(x[0], mul(Fraction(-1), x[1]), mode),
            "mul": lambda: mul(x[0], x[1]),
            "fma": lambda: fused(*x, mode),
            "mad": lambda: fused(*x, mode),
            "div": lambda: div(x[0], x[1]),
            "rcp": lambda: div(Fraction(1), x[0]),
        }.get(base, lambda: FUNCTIONS[base](turned(op, x[0])))
        result = encode(exact(), fmt, mode)
    return saturate(op, flush(op, result, fmt), fmt)


def compute(op, type_, values):
    """``type_`` may be a pair: each half on its own."""
    fmt = FORMATS[type_.removesuffix("x2")]
    if not type_.endswith("x2"):
        return scalar(op, fmt, [integers.wrap(v, fmt.width) for v in values])
    pairs = zip(*(integers.halves(v) for v in values), strict=True)
    return integers.joined(scalar(op, fmt, list(p)) for p in pairs)


ORDERS = {
    "eq": lambda a, b: a == b,
    "ne": lambda a, b: a != b,
    "lt": lambda a, b: a < b,
    "le": lambda a, b: a <= b,
    "gt": lambda a, b: a > b,
    "ge": lambda a, b: a >= b,
}


def compare(op, name, type_, a, b):
    fmt = FORMATS[type_]
    x, y = (decode(flush(op, integers.wrap(v, fmt.width), fmt), fmt) for v in (a, b))
    unordered = is_nan(x) or is_nan(y)
    if name in ("num", "nan"):
        return unordered == (name == "nan")
    if unordered:
        return name.endswith("u")
    return ORDERS[name.removesuffix("u")](x, y)


def property_of(op, type_, bits):
    fmt = FORMATS[type_]
    x = decode(bits, fmt)
    tiny = not isinstance(x, float) and abs(x) < Fraction(2) ** fmt.low
    return {
        "finite": not is_nan(x) and abs(x) != math.inf,
        "infinite": not is_nan(x) and abs(x) == math.inf,
        "number": not is_nan(x),
        "notanumber": is_nan(x),
        "normal": not isinstance(x, float) and not tiny,
        "subnormal": tiny,
    }[op.parts[1]]


def convert(op, to, from_, values):
    """Cvt: ``values`` has one source, or two for a packed destination (the first is the high)."""
    if to.endswith("x2"):
        return integers.joined([convert(op, to[:-2], from_, [v]) for v in reversed(values)])
    bits = integers.wrap(values[0], width_of(from_))
    if to == "tf32":
        low = encode_tf32(bits, mode_of(op))
        return saturate(op, low, FORMATS["f32"])
    if "f" not in from_ and "f" not in to:
        value = integers.read(bits, from_)
        value = integers.clamp(value, to) if "sat" in op.parts else value
        return integers.wrap(value, width_of(to))
    if "f" not in from_:
        value = integers.read(bits, from_)
        exact = Fraction(value) if value else 0.0
        fmt = FORMATS[to]
        return saturate(op, encode(exact, fmt, mode_of(op)), fmt)
    bits = flush(op, bits, FORMATS[from_]) if from_ == "f32" else bits
    x = decode(bits, FORMATS[from_])
    rule = next((p for p in op.parts if p in TO_INTEGER), None)
    if "f" not in to:
        return to_integer(x, rule, to, from_)
    fmt = FORMATS[to]
    if rule and not isinstance(x, float):
        whole = TO_INTEGER[rule](x)
        x = Fraction(whole) if whole else math.copysign(0.0, x)
    result = encode(x, fmt, mode_of(op))
    result = flush(op, result, fmt) if to == "f32" else result
    return saturate(op, result, fmt)


def to_integer(x, rule, to, from_):
    width = width_of(to)
    if is_nan(x):
        return 1 << width - 1 if from_ == "f64" or width == 64 else 0
    low, high = integers.bounds(to)
    if isinstance(x, float) and x != 0:
        return integers.wrap(high if x > 0 else low, width)
    return integers.wrap(integers.clamp(TO_INTEGER[rule](Fraction(x)), to), width)


def encode_tf32(bits, mode):
    """F32 with ten bits of fraction; the low thirteen are zero here (the ISA leaves them open)."""
    x = decode(bits, FORMATS["f32"])
    if isinstance(x, float):
        return FORMATS["f32"].nan if is_nan(x) else bits
    size = bits & 0x7FFFFFFF
    left, kept = size & 0x1FFF, size & ~0x1FFF
    if mode == "rz":
        return bits & ~0x1FFF
    up = left >= 0x1000 if mode == "rna" else left > 0x1000 or (left == 0x1000 and kept >> 13 & 1)
    return bits & 0x80000000 | kept + (0x2000 if up else 0)
