"""What a kernel printed, as text: C's printf on the bytes that each call left behind.

Source: CUDA C++ Programming Guide, "Formatted Output".
"""

from __future__ import annotations

import re
import struct
from collections.abc import Callable

from optiml_magic.emulator.layout import PRINT, PRINT_ARGUMENTS
from optiml_magic.emulator.memory import Bytes

_ROOM = PRINT.size + PRINT_ARGUMENTS
_CONVERSION = re.compile(r"%([-+ #0]*)(\d*)((?:\.\d*)?)(hh|h|ll|l|j|z|t)?([a-zA-Z%])")


def printed(buffers: list[tuple[Bytes, int]], text_at: Callable[[int], str]) -> str:
    """The text of all calls, block by block, in each block in the order of its calls.

    ``buffers`` are (records, bytes used) of each worker; ``text_at`` reads a string of the device.
    """
    calls: list[tuple[int, str]] = []
    formats: dict[int, str] = {}
    for buffer, used in buffers:
        for at in range(0, used, _ROOM):
            address, block, _ = struct.unpack("<qqi", bytes(buffer[at : at + 20]))
            if address not in formats:
                formats[address] = text_at(address)
            start = at + PRINT.size
            raw = bytes(buffer[start : start + PRINT_ARGUMENTS])
            calls.append((block, _formatted(formats[address], raw, text_at)))
    return "".join(text for _, text in sorted(calls, key=lambda c: c[0]))


def _formatted(text: str, raw: bytes, text_at: Callable[[int], str]) -> str:
    at = 0

    def one(match: re.Match[str]) -> str:
        nonlocal at
        flags, width, precision, length, kind = match.groups()
        if kind == "%":
            return "%"
        wide = kind in "fFeEgGaAsp" or length in ("l", "ll", "j", "z", "t")
        size = 8 if wide else 4
        at = -(-at // size) * size
        if at + size > len(raw):
            return match[0]
        value = int.from_bytes(raw[at : at + size], "little")
        at += size
        spec = f"%{flags}{width}{precision}"
        if kind in "fFeEgG":
            number: float = struct.unpack("<d", value.to_bytes(8, "little"))[0]
            return (spec + kind) % number
        if kind in "aA":
            return float.hex(struct.unpack("<d", value.to_bytes(8, "little"))[0])
        if kind == "s":
            return (spec + "s") % (text_at(value) if value else "(null)")
        if kind == "c":
            return (spec + "c") % chr(value & 255)
        if kind == "p":
            return f"%{width}s" % hex(value)
        if kind in "di" and value >> 8 * size - 1:
            value -= 1 << 8 * size
        value = _narrowed(value, length, signed=kind in "di")
        return (
            (spec + {"i": "d", "u": "d"}.get(kind, kind)) % value if kind in "diuoxX" else match[0]
        )

    return _CONVERSION.sub(one, text)


def _narrowed(value: int, length: str | None, *, signed: bool) -> int:
    """Hh and h name char and short, which travel as int."""
    bits = {"hh": 8, "h": 16}.get(length or "")
    if bits is None:
        return value
    value &= (1 << bits) - 1
    return value - (1 << bits) if signed and value >> bits - 1 else value
