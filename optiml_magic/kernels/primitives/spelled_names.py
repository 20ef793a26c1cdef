"""Names in text: of functions of ours beside the macros of a program, of locals in lines."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from optiml_magic.kernels.tree import Declare, Function, walk

_WORD = re.compile(r"[A-Za-z_]\w*")
_MACRO = re.compile(r"^\s*#\s*define\s+(\w+)", re.MULTILINE)
_TUNED = re.compile(r"^\s*#\s*pragma\s+optiml\s.*", re.MULTILINE)
_CALLED = re.compile(r"(\w+)\s*\(")
_DEFINED = re.compile(r"__device__[^;{}()]*?\b(\w+)\s*\(")
_TEMPLATE = re.compile(r"^\s*template\b", re.MULTILINE)
_OWN_TYPE = re.compile(r"\b(?:class|typename)\s+(\w+)")  # ``T(1)`` calls no function
_COUNTED = re.compile(r"^\s*template <int\b", re.MULTILINE)
_C_BLOCK = re.compile(r'\bextern\s*"C"\s*\{')


def beside_macros(helper: str, program: str) -> str:
    """A function of ours without names that the program has macros for, but for its own.

    A kernel that was made of the program's text has its macros on purpose. A template says that it
    is C++ where the program has blocks of ``extern "C"``, which may have none.
    """
    if "__global__" in helper:
        return helper
    called = set(_CALLED.findall(helper)) - set(_OWN_TYPE.findall(helper))
    own = set(_WORD.findall(helper)) - called
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


def apart(helpers: Sequence[str], program: str, function: Function, body: str) -> dict[str, str]:
    """Other names for functions of ours that the program has for something else.

    The empty name for one that a local of the kernel has, or that its ``body`` mentions, unless
    ours is called with numbers in angle brackets, and the program never writes it so. A function
    that stands in the program is itself; so is another form of it, by its comment.
    """
    words, asked = {*_WORD.findall(program)}, {*_WORD.findall(body)}
    if not (own := [helper for helper in helpers if "__global__" not in helper]):
        return {}
    found = dict[str, str]()
    for helper in own:
        local, comment = hidden(helper, function), helper.strip().partition("\n")[0]
        ours = comment.startswith("//") and comment in program
        if (ours or helper.strip() in program) and not local:
            continue
        taken = {*_DEFINED.findall(helper)} & words - {*found}
        for name in sorted(taken | ({local} if local else set())):
            number, other = 2, f"{name}_2"
            while other in words and renamed(helper, {**found, name: other}).strip() not in program:
                number, other = number + 1, f"{name}_{number + 1}"
            if name == local:
                called = _COUNTED.search(helper) and not re.search(rf"\b{name}<", program)
            else:
                called = _COUNTED.search(helper) and not re.search(rf"\b{name}\b(?!\s*\()", body)
            found[name] = other if called or (name not in asked and name != local) else ""
    return found


def renamed(words: str, names: Mapping[str, str], body: str = "") -> str:
    """A text with other names for those functions; of one that a ``body`` calls, for our calls."""
    told = {*_WORD.findall(body)}
    for name, other in names.items():
        words = re.sub(rf"\b{name}\b{'(?=<)' if name in told else ''}", other, words)
    return words


def hidden(helper: str, function: Function) -> str:
    """A function of ours whose name a variable of the kernel has; empty for none."""
    declared = (v for s in walk(function.body) if isinstance(s, Declare) for v in s.variables)
    names = {v.name for v in (*function.parameters, *declared)}
    return next((name for name in _DEFINED.findall(helper) if name in names), "")


def stands(name: str, words: str) -> bool:
    """Whether a name stands in some lines."""
    return re.search(rf"\b{re.escape(name)}\b", words) is not None
