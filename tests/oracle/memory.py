"""Segments of bytes in one generic address space; what lies in none raises."""

import bisect

from .numbers import FORMATS, decode, encode
from .numbers import add as float_add
from .text import width_of

SHARED, LOCAL, GLOBAL, CODE = 1 << 40, 1 << 44, 1 << 50, 1 << 56


class Memory:
    def __init__(self):
        self.starts, self.parts = [], []

    def add(self, base, size, data=None):
        """A new segment at ``base``; returns its bytes, which the caller may share."""
        part = bytearray(size) if data is None else data
        at = bisect.bisect(self.starts, base)
        self.starts.insert(at, base)
        self.parts.insert(at, part)
        return part

    def find(self, address, size):
        at = bisect.bisect(self.starts, address) - 1
        assert at >= 0, f"nothing at {address:#x}"
        offset = address - self.starts[at]
        assert offset + size <= len(self.parts[at]), f"nothing at {address:#x}"
        assert address % size == 0, f"misaligned {address:#x}"
        return self.parts[at], offset

    def load(self, address, size):
        part, offset = self.find(address, size)
        return int.from_bytes(part[offset : offset + size], "little")

    def store(self, address, size, value):
        part, offset = self.find(address, size)
        part[offset : offset + size] = (value & (1 << 8 * size) - 1).to_bytes(size, "little")


def combined(name, type_, old, b, c):
    """What an atomic operation leaves behind. PTX ISA, "atom"."""
    w = width_of(type_)
    if type_.endswith("x2"):
        half = [combined(name, type_[:-2], old >> s & 0xFFFF, b >> s & 0xFFFF, 0) for s in (0, 16)]
        return half[0] | half[1] << 16
    if "f" in type_:
        fmt = FORMATS[type_]
        x, y = decode(old, fmt), decode(b & (1 << w) - 1, fmt)
        if name == "add":
            return encode(float_add(x, y, "rn"), fmt)
        pick = min if name == "min" else max
        return encode(pick(x, y), fmt)
    sign = lambda v: v - (1 << w) if type_[0] == "s" and v >> w - 1 & 1 else v  # noqa: E731
    b &= (1 << w) - 1
    return {
        "add": lambda: old + b,
        "and": lambda: old & b,
        "or": lambda: old | b,
        "xor": lambda: old ^ b,
        "exch": lambda: b,
        "cas": lambda: c if old == b else old,
        "min": lambda: min(sign(old), sign(b)),
        "max": lambda: max(sign(old), sign(b)),
        "inc": lambda: 0 if old >= b else old + 1,
        "dec": lambda: b if old == 0 or old > b else old - 1,
    }[name]()
