"""Names in text: of functions of ours beside the macros of a program, of locals in lines."""

from __future__ import annotations

import re

_WORD = re.compile(r"[A-Za-z_]\w*")
_MACRO = re.compile(r"^\s*#\s*define\s+(\w+)", re.MULTILINE)
_CALLED = re.compile(r"(\w+)\s*\(")
_TEMPLATE = re.compile(r"^\s*template\b", re.MULTILINE)
_C_BLOCK = re.compile(r'\bextern\s*"C"\s*\{')


def beside_macros(helper: str, program: str) -> str:
    """A function of ours without names that the program has macros for, but for its own.

    A kernel that was made of the program's text has its macros on purpose. A template says that it
    is C++ where the program has blocks of ``extern "C"``, which may have none.
    """
    if "__global__" in helper:
        return helper
    own = set(_WORD.findall(helper)) - set(_CALLED.findall(helper))
    for name in sorted(own & set(_MACRO.findall(program))):
        number = 2
        while f"{name}_{number}" in own or re.search(rf"\b{name}_{number}\b", program):
            number += 1
        helper = re.sub(rf"\b{name}\b", f"{name}_{number}", helper)
    if _TEMPLATE.search(helper) and _C_BLOCK.search(program):
        return f'extern "C++" {{\n{helper.strip()}\n}}'
    return helper


def stands(name: str, words: str) -> bool:
    """Whether a name stands in some lines."""
    return re.search(rf"\b{re.escape(name)}\b", words) is not None
