"""Text of models and kernels made safe to show: control characters become visible escapes.

An escape sequence could repaint a terminal or hide lines of a program, and a bidirectional override
shows code in another order than a compiler reads it (Boucher and Anderson, "Trojan Source", 2021).
"""

from __future__ import annotations

import re

_HIDDEN = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff\ud800-\udfff]"
)


def printable(text: str) -> str:
    """``text`` with every hidden character spelled out; line breaks and tabs stay."""
    return _HIDDEN.sub(_spelled, text.replace("\r\n", "\n"))


def _spelled(match: re.Match[str]) -> str:
    code = ord(match[0])
    return f"\\x{code:02x}" if code < 256 else f"\\u{code:04x}"
