"""A known fault of LLVM's code for AVX-512, found in the finished machine code.

For ``select(mask, f(a, b, memory), a)`` LLVM emits a masked ``vpternlog`` whose table can be that
of another order of operands. Source: LLVM issue 157929, fixed by pull request 209782 in July 2026;
every LLVM that llvmlite ships so far has it.
"""

from __future__ import annotations

import re


def _bytes(keep: object) -> bytes:
    """A class of a regular expression: the bytes for which ``keep`` holds."""
    assert callable(keep)
    return b"[" + b"".join(rb"\x%02x" % byte for byte in range(256) if keep(byte)) + b"]"


# Intel SDM, "EVEX encoding": 62, P0 (map 0F3A), P1 (prefix 66), P2 (a mask), opcode 25, ModRM.
_MASKED_WITH_MEMORY = re.compile(
    rb"\x62"
    + _bytes(lambda p0: p0 & 0x0F == 0x03)
    + _bytes(lambda p1: p1 & 0x07 == 0x05)
    + _bytes(lambda p2: p2 & 0x07 != 0)
    + rb"\x25"
    + _bytes(lambda modrm: modrm >> 6 != 3),
    re.DOTALL,
)


def is_suspect(code: bytes) -> bool:
    """Whether object code may hold such an instruction; constants can look like one."""
    return _MASKED_WITH_MEMORY.search(code) is not None


def without_avx512(features: str) -> str:
    """The features of a processor, as LLVM writes them, with AVX-512 and AVX10 switched off."""
    return re.sub(r"\+(avx512|avx10|evex512)", r"-\1", features)
