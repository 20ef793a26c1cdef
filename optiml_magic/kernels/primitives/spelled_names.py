"""Names in text: of functions of ours beside the macros of a program, of locals in lines."""

from __future__ import annotations

import re

_WORD = re.compile(r"[A-Za-z_]\w*")
_MACRO = re.compile(r"^\s*#\s*define\s+(\w+)", re.MULTILINE)
_CALLED = re.compile(r"(\w+)\s*\(")


def beside_macros(helper: str, program: str) -> str:
    """A function of ours without names that the program has macros for, but for its own.

    A kernel that was made of the program's text has its macros on purpose.
    """
    if "__global__" in helper:
        return helper
    own = set(_WORD.findall(helper)) - set(_CALLED.findall(helper))
    for name in sorted(own & set(_MACRO.findall(program))):
        number = 2
        while f"{name}_{number}" in own or re.search(rf"\b{name}_{number}\b", program):
            number += 1
        helper = re.sub(rf"\b{name}\b", f"{name}_{number}", helper)
    return helper


def stands(name: str, words: str) -> bool:
    """Whether a name stands in some lines."""
    return re.search(rf"\b{re.escape(name)}\b", words) is not None
