"""The numbers of C++ source: their values and types. Source: the C++ standard, [lex.literal]."""

from __future__ import annotations

import re
from functools import lru_cache

_INTEGER = re.compile(r"(0[xX][0-9a-fA-F]+|0[bB][01]+|\d+)([uUlLzZ]*)")
_FLOATING = re.compile(
    r"((?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?|0[xX][\da-fA-F.]+[pP][-+]?\d+)([fFlL]?)"
)
_ESCAPES = {"n": 10, "t": 9, "0": 0, "r": 13, "\\": 92, "'": 39, '"': 34, "a": 7, "b": 8}


@lru_cache(maxsize=4096)
def number(text: str) -> tuple[int | float, str] | None:
    """The value of a literal and the name of its type; None for anything else."""
    if text.startswith(("-", "+")):  # the grammar takes a sign for a part of the number
        inner = number(text[1:].lstrip())
        return (-inner[0] if text[0] == "-" else inner[0], inner[1]) if inner else None
    text = text.replace("'", "") if not text.startswith("'") else text
    if match := _INTEGER.fullmatch(text):
        return _integer(match[1], match[2].lower())
    if match := _FLOATING.fullmatch(text):
        digits = match[1]
        hexadecimal = digits[:2] in ("0x", "0X")
        value = float.fromhex(digits) if hexadecimal else float(digits)
        return value, "float" if match[2] in ("f", "F") else "double"
    if len(text) == 3 and text[0] == text[2] == "'":
        return ord(text[1]), "char"
    if len(text) == 4 and text[:2] == "'\\" and text[2] in _ESCAPES:
        return _ESCAPES[text[2]], "char"
    return None


def _integer(digits: str, suffix: str) -> tuple[int, str]:
    decimal = digits[0] != "0" or digits == "0"
    base = 10 if decimal else {"x": 16, "b": 2}.get(digits[1].lower(), 8)
    try:
        value = int(digits[2:] if base in (2, 16) else digits, base)
    except ValueError:  # 08 and 09 are no octal numbers
        value = int(digits)
    unsigned, long = "u" in suffix, "l" in suffix or "z" in suffix
    for name, limit in (("int", 2**31), ("unsigned int", 2**32), ("long", 2**63)):
        if value < limit and not (long and "long" not in name):
            if name.startswith("unsigned") and decimal and not unsigned:
                continue
            if unsigned and name == "int":
                continue
            return value, "unsigned long" if unsigned and name == "long" else name
    return value, "unsigned long"
