"""Texts and directives that no compiler should ever get to see."""

from __future__ import annotations

from optiml_magic.model.verdict import Outcome
from optiml_magic.testing.hostile.base import Hostile, doubling

_INVALID = (Outcome.INVALID,)
_LAUNCH = "grid(cdiv(n, 128)) block(128)"


def _launched(launch: str) -> Hostile:
    return Hostile(doubling("", launch=launch), (Outcome.INVALID, Outcome.LAUNCH_ERROR))


def _directed(line: str) -> Hostile:
    return Hostile(doubling("", before=f"#pragma optiml {line}\n"), _INVALID)


UNFIT = {
    "empty": Hostile("", _INVALID),
    "not UTF-8": Hostile(doubling("// \udc80"), _INVALID),
    "null bytes": Hostile(doubling("\0"), _INVALID),
    "5 MB of text": Hostile(doubling("// " + "x" * 5_000_000), _INVALID),
    "binary": Hostile(bytes(range(1, 256)).decode("latin-1") * 100, _INVALID),
    "missing kernel": Hostile(doubling("").replace("launch twice", "launch thrice"), _INVALID),
    "other parameters": Hostile(doubling("").replace("int n", "int n, int* more"), _INVALID),
    "zero grid": _launched("grid(n - n) block(128)"),
    "negative grid": _launched("grid(0 - n) block(128)"),
    "grid beyond 64 bits": _launched("grid(99999999999999999999999999) block(128)"),
    "a block of 2048": _launched("grid(n) block(2048)"),
    "negative shared memory": _launched(f"{_LAUNCH} shared(0 - 1)"),
    "division by zero": _launched("grid(n / (n - n)) block(128)"),
    "deep expression": _launched(f"grid({'(' * 1000}n{')' * 1000}) block(128)"),
    "expression that calls Python": _launched("grid(__import__(n)) block(128)"),
    "half a dispatch": _launched(f"{_LAUNCH} if (n % 2 == 0)"),
    "an else of nothing": _launched(f"{_LAUNCH} else"),
    "a condition that calls Python": _launched(f"{_LAUNCH} if (__import__(n))"),
    "repeated a million times": _directed("repeat(1000000) swap(x, out)"),
    "scratch of terabytes": _directed("scratch t f4[1 << 42]"),
    "tuned over billions": _directed("tune T in {1..4000000000} = 1"),
}
