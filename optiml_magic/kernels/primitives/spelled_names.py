"""Names in text: of functions of ours beside the macros of a program, of locals in lines."""

from __future__ import annotations

import re

from optiml_magic.kernels.tree import Declare, Function, walk

_WORD = re.compile(r"[A-Za-z_]\w*")
_MACRO = re.compile(r"^\s*#\s*define\s+(\w+)", re.MULTILINE)
_TUNED = re.compile(r"^\s*#\s*pragma\s+optiml\s.*", re.MULTILINE)
_CALLED = re.compile(r"(\w+)\s*\(")
_DEFINED = re.compile(r"__device__[^;{}()]*?\b(\w+)\s*\(")
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
    macros = {*_MACRO.findall(program)}
    taken = own | macros | {w for line in _TUNED.findall(program) for w in _WORD.findall(line)}
    for name in sorted(own & macros):
        number = 2  # what functions call their own is free, so that one made twice is the same
        while f"{name}_{number}" in taken:
            number += 1
        helper = re.sub(rf"\b{name}\b", f"{name}_{number}", helper)
    if _TEMPLATE.search(helper) and _C_BLOCK.search(program):
        return f'extern "C++" {{\n{helper.strip()}\n}}'
    return helper


def hidden(helper: str, function: Function) -> str:
    """A function of ours whose name a variable of the kernel has; empty for none."""
    declared = (v for s in walk(function.body) if isinstance(s, Declare) for v in s.variables)
    names = {v.name for v in (*function.parameters, *declared)}
    return next((name for name in _DEFINED.findall(helper) if name in names), "")


def stands(name: str, words: str) -> bool:
    """Whether a name stands in some lines."""
    return re.search(rf"\b{re.escape(name)}\b", words) is not None
