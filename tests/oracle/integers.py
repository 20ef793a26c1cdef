"""Integer, logic, shift and comparison instructions on Python integers.

``compute(op, values, carry)`` takes the raw bits of the sources and gives (bits, carry out).
Source: PTX ISA, "Integer Arithmetic", "Extended-Precision", "Logic and Shift", "Video".
"""

from .text import width_of


def wrap(value, width):
    return value & (1 << width) - 1


def signed(value, width):
    value = wrap(value, width)
    return value - (1 << width) if value >> width - 1 else value


def read(value, type_):
    return signed(value, width_of(type_)) if type_[0] == "s" else wrap(value, width_of(type_))


def bounds(type_):
    w = width_of(type_)
    return (-(1 << w - 1), (1 << w - 1) - 1) if type_[0] == "s" else (0, (1 << w) - 1)


def clamp(value, type_):
    low, high = bounds(type_)
    return max(low, min(high, value))


def halves(value):
    return [value & 0xFFFF, value >> 16 & 0xFFFF]


def joined(parts, width=16):
    return sum(wrap(p, width) << width * i for i, p in enumerate(parts))


def truncated(a, b):
    """C's division: towards zero."""
    return abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1)


def add(op, t, w, v, carry):
    sign = -1 if op.parts[0].startswith("sub") else 1
    if t.endswith("x2"):
        return joined(x + sign * y for x, y in zip(halves(v[0]), halves(v[1]), strict=True)), None
    if "sat" in op.parts:
        return wrap(clamp(read(v[0], t) + sign * read(v[1], t), t), w), None
    given = carry if op.parts[0].endswith("c") else 0
    total = wrap(v[0], w) + sign * (wrap(v[1], w) + given)
    return wrap(total, w), int(not 0 <= total < 1 << w)


def product(op, t, w, v):
    a, b = read(v[0], t), read(v[1], t)
    if op.parts[0].endswith("24"):
        t24 = t[0] + "24"
        a, b = read(v[0], t24), read(v[1], t24)
        return a * b >> (16 if "hi" in op.parts else 0)
    return a * b >> (w if "hi" in op.parts else 0)


def mul(op, t, w, v, carry):
    wide = 2 * w if "wide" in op.parts else w
    return wrap(product(op, t, w, v), wide), None


def mad(op, t, w, v, carry):
    if "sat" in op.parts:
        return wrap(clamp(signed(product(op, t, w, v), w) + signed(v[2], w), t), w), None
    wide = 2 * w if "wide" in op.parts else w
    total = wrap(product(op, t, w, v), wide) + wrap(v[2], wide)
    total += carry if op.parts[0] == "madc" else 0
    return wrap(total, wide), int(total >> wide > 0)


def div(op, t, w, v, carry):
    """By zero the ISA leaves the result open; the hardware gives all ones, and a for rem."""
    a, b = read(v[0], t), read(v[1], t)
    if b == 0:
        return (wrap(-1, w) if op.parts[0] == "div" else wrap(a, w)), None
    q = truncated(a, b)
    return wrap(q if op.parts[0] == "div" else a - q * b, w), None


def extreme(op, t, w, v, carry):
    choose = min if op.parts[0] == "min" else max
    if t.endswith("x2"):
        t, parts = t[:-2], zip(halves(v[0]), halves(v[1]), strict=True)
    else:
        parts = [(v[0], v[1])]
    out = [choose(read(x, t), read(y, t)) for x, y in parts]
    if "relu" in op.parts:
        out = [max(x, 0) for x in out]
    return joined(out, width_of(t)), None


def single(compute):
    return lambda op, t, w, v, carry: (wrap(compute(op, t, w, v), w), None)


def sad(op, t, w, v):
    return v[2] + abs(read(v[0], t) - read(v[1], t))


def dot(op, t, w, v):
    """dp4a, dp2a: the types of a and b stand in the opcode; dp2a takes bytes of b's half."""
    ta, tb = (p[0] for p in op.parts[-2:])
    size = 8 if op.parts[0] == "dp4a" else 16
    b = v[1] >> 16 if "hi" in op.parts else v[1]
    return v[2] + sum(
        read(v[0] >> size * i, f"{ta}{size}") * read(b >> 8 * i, f"{tb}8")
        for i in range(32 // size)
    )


def bfind(op, t, w, v):
    a = read(v[0], t)
    high = (a if a >= 0 else ~a).bit_length() - 1
    if high < 0:
        return -1
    return w - 1 - high if "shiftamt" in op.parts else high


def fns(op, t, w, v):
    """The n-th set bit of a mask from a base, upwards or downwards."""
    mask, base, offset = v[0], v[1], signed(v[2], 32)
    if offset == 0:
        return base if mask >> base & 1 else -1
    step = 1 if offset > 0 else -1
    left = abs(offset)
    at = base
    while 0 <= at < 32:
        if mask >> at & 1:
            left -= 1
            if left == 0:
                return at
        at += step
    return -1


def bfe(op, t, w, v):
    a, position, length = read(v[0], t), v[1] & 255, v[2] & 255
    if length == 0:
        return 0
    bit = min(position + length - 1, w - 1)
    sign = a >> bit & 1 if t[0] == "s" else 0
    at = lambda i: wrap(a, w) >> i & 1  # noqa: E731
    return sum(
        (at(position + i) if i < length and position + i < w else sign) << i for i in range(w)
    )


def bfi(op, t, w, v):
    a, b, position, length = wrap(v[0], w), wrap(v[1], w), v[2] & 255, v[3] & 255
    for i in range(length):
        if position + i < w:
            b = b & ~(1 << position + i) | (a >> i & 1) << position + i if i < w else b
    return b


def bmsk(op, t, w, v):
    a, b = v[0], v[1]
    if "wrap" in op.parts:
        a, b = a & 31, b & 31
    a, b = min(a, 32), min(b, 32)
    return ((1 << b) - 1) << a


def szext(op, t, w, v):
    n = v[1] & 31 if "wrap" in op.parts else v[1]
    if n >= 32:
        return v[0]
    if n == 0:
        return 0
    return signed(v[0], n) if t[0] == "s" else wrap(v[0], n)


def lop3(op, t, w, v):
    return sum((v[3] >> ((v[0] >> i & 1) * 4 + (v[1] >> i & 1) * 2 + (v[2] >> i & 1)) & 1) << i
               for i in range(32))  # fmt: skip


def shift(op, t, w, v):
    amount = v[1] & 0xFFFFFFFF
    if op.parts[0] == "shl":
        return v[0] << amount if amount < w else 0
    return read(v[0], t if t[0] == "s" else f"u{w}") >> min(amount, w)


def shf(op, t, w, v):
    n = v[2] & 31 if "wrap" in op.parts else min(v[2], 32)
    both = v[1] << 32 | v[0]
    return both << n >> 32 if op.parts[1] == "l" else both >> n


def prmt(op, t, w, v):
    a, b, c = v
    pool = [a >> 8 * i & 255 for i in range(4)] + [b >> 8 * i & 255 for i in range(4)]
    mode = next((p for p in op.parts if p in PICKS), None)
    if mode:
        return joined([pool[i] for i in PICKS[mode][c & 3]], 8)
    out = []
    for i in range(4):
        nibble = c >> 4 * i & 15
        byte = pool[nibble & 7]
        out.append((0xFF if byte & 0x80 else 0) if nibble & 8 else byte)
    return joined(out, 8)


PICKS = {  # PTX ISA, "prmt": bytes of {b, a} from the lowest, for c = 0..3
    "f4e": [(0, 1, 2, 3), (1, 2, 3, 4), (2, 3, 4, 5), (3, 4, 5, 6)],
    "b4e": [(0, 7, 6, 5), (1, 0, 7, 6), (2, 1, 0, 7), (3, 2, 1, 0)],
    "rc8": [(0, 0, 0, 0), (1, 1, 1, 1), (2, 2, 2, 2), (3, 3, 3, 3)],
    "ecl": [(0, 1, 2, 3), (1, 1, 2, 3), (2, 2, 2, 3), (3, 3, 3, 3)],
    "ecr": [(0, 0, 0, 0), (0, 1, 1, 1), (0, 1, 2, 2), (0, 1, 2, 3)],
    "rc16": [(0, 1, 0, 1), (2, 3, 2, 3), (0, 1, 0, 1), (2, 3, 2, 3)],
}


def vabsdiff(op, t, w, v):
    """vabsdiff2, vabsdiff4: differences of parts; .add sums them and c, .sat clamps to the type."""
    size = 8 if op.parts[0].endswith("4") else 16
    td, ta, tb = [p for p in op.parts if p[1:] == "32"]
    out = []
    for i in range(32 // size):
        part = read(v[0] >> size * i, f"{ta[0]}{size}") - read(v[1] >> size * i, f"{tb[0]}{size}")
        out.append(clamp(abs(part), f"{td[0]}{size}") if "sat" in op.parts else abs(part))
    return v[2] + sum(out) if "add" in op.parts else joined(out, size)


UNARY = {
    "abs": lambda op, t, w, v: abs(signed(v[0], w)),
    "neg": lambda op, t, w, v: -v[0],
    "not": lambda op, t, w, v: ~v[0],
    "cnot": lambda op, t, w, v: int(wrap(v[0], w) == 0),
    "popc": lambda op, t, w, v: wrap(v[0], w).bit_count(),
    "clz": lambda op, t, w, v: w - wrap(v[0], w).bit_length(),
    "brev": lambda op, t, w, v: int(f"{wrap(v[0], w):0{w}b}"[::-1], 2),
    "and": lambda op, t, w, v: v[0] & v[1],
    "or": lambda op, t, w, v: v[0] | v[1],
    "xor": lambda op, t, w, v: v[0] ^ v[1],
    "sad": sad,
    "dp4a": dot,
    "dp2a": dot,
    "fns": fns,
    "bfe": bfe,
    "bfi": bfi,
    "bmsk": bmsk,
    "szext": szext,
    "lop3": lop3,
    "shl": shift,
    "shr": shift,
    "shf": shf,
    "prmt": prmt,
    "vabsdiff2": vabsdiff,
    "vabsdiff4": vabsdiff,
}
TABLE = {name: single(f) for name, f in UNARY.items()}
TABLE["bfind"] = lambda op, t, w, v, carry: (wrap(bfind(op, t, w, v), 32), None)
TABLE |= dict.fromkeys(("add", "sub", "addc", "subc"), add)
TABLE |= dict.fromkeys(("mul", "mul24"), mul)
TABLE |= dict.fromkeys(("mad", "madc", "mad24"), mad)
TABLE |= dict.fromkeys(("div", "rem"), div)
TABLE |= dict.fromkeys(("min", "max"), extreme)


def compute(op, type_, values, carry):
    return TABLE[op.parts[0]](op, type_, width_of(type_), values, carry)


ORDERS = {
    "eq": lambda a, b: a == b,
    "ne": lambda a, b: a != b,
    "lt": lambda a, b: a < b,
    "le": lambda a, b: a <= b,
    "gt": lambda a, b: a > b,
    "ge": lambda a, b: a >= b,
    "lo": lambda a, b: a < b,
    "ls": lambda a, b: a <= b,
    "hi": lambda a, b: a > b,
    "hs": lambda a, b: a >= b,
}


def compare(name, type_, a, b):
    return ORDERS[name](read(a, type_), read(b, type_))
