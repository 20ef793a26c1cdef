"""What a kernel printed, set apart from what is said about it."""

from __future__ import annotations

from optiml_magic.printable import printable

_MOST = 40  # lines; a device hands on a few thousand characters at most


def block(text: str, most: int = _MOST) -> list[str]:
    """A heading and the lines that a kernel printed, at most so many; nothing where it was silent.

    Control characters are spelled out: a kernel cannot repaint the terminal.
    """
    if not text:
        return []
    lines = printable(text.rstrip("\n")).split("\n")
    rest = [f"  ... and {len(lines) - most} lines more"] if len(lines) > most else []
    return ["printed by the kernel:", *(f"  | {line}" for line in lines[:most]), *rest]
