"""How inserted code looks: indentation that follows the user's, and names that are not taken."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from optiml_magic.proposers.rewrites.kernel import Kernel


def fresh(wanted: str, text: str) -> str:
    """``wanted``, or ``wanted_2`` and so on where the program already says that word."""
    taken = set(re.findall(r"\w+", text))
    names = (wanted if n == 1 else f"{wanted}_{n}" for n in range(1, len(taken) + 2))
    return next(name for name in names if name not in taken)


def line_start(kernel: Kernel, at: int) -> int:
    """The offset at which the line of ``at`` begins."""
    return kernel.syntax.text.rfind(b"\n", 0, at) + 1


def line_end(kernel: Kernel, at: int) -> int:
    """The offset of the line break behind ``at``, or the end of the text."""
    found = kernel.syntax.text.find(b"\n", at)
    return found if found >= 0 else len(kernel.syntax.text)


def indentation(kernel: Kernel, at: int) -> str:
    """The blanks that the line of ``at`` begins with."""
    start = line_start(kernel, at)
    match = re.match(rb"[ \t]*", kernel.syntax.text[start:])
    return match[0].decode() if match else ""


def unit(kernel: Kernel) -> str:
    """One level of the user's indentation: that of the kernel's first statement."""
    first = next((c for c in kernel.body.named_children if c.type != "comment"), None)
    outer = indentation(kernel, kernel.body.start_byte)
    inner = indentation(kernel, first.start_byte) if first is not None else ""
    return inner.removeprefix(outer) or "    "


def indented(lines: str, blanks: str) -> str:
    """``lines`` with ``blanks`` before each that is not empty."""
    return "\n".join(blanks + line if line.strip() else line for line in lines.split("\n"))
