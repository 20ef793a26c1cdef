"""What of inline assembly is known to do no more than compute.

Source: PTX ISA, "Floating Point Instructions", those that the special function unit has.
"""

from __future__ import annotations

import re
from collections.abc import Callable

from optiml_magic.kernels.expressions import Assign, Call, Name, Span
from optiml_magic.kernels.tree import Variable

_ONE = re.compile(
    r'asm\s*\(\s*"((?:rsqrt|sqrt|rcp|ex2|lg2|sin|cos|tanh)\.approx(?:\.ftz)?\.f32) %0, %1;"\s*'
    r':\s*"=f"\s*\((\w+)\)\s*:\s*"f"\s*\((\w+)\)\s*\)'
)


def but_in_registers(text: str) -> str:
    """A text without the assembly that is known to do no more than compute."""
    return _ONE.sub(" ", text)


def in_registers(code: str, span: Span, resolve: Callable[[str], Variable | None]) -> Assign | None:
    """An instruction of one number, as what it assigns to the local that it writes.

    None for any other assembly, and for what is none.
    """
    found = _ONE.fullmatch(code)
    if found is None:
        return None
    target, value = (Name(None, found[n], resolve(found[n])) for n in (2, 3))
    return Assign(span, "=", target, Call(None, found[1], (value,)))
