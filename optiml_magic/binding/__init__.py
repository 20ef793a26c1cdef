"""Names and values to a kernel's parameters, and a program to its launches."""

from __future__ import annotations

from optiml_magic.binding.interface import (
    BoundBuffer,
    Interface,
    check_array,
    check_values,
    content,
    expressions,
    interface,
    launched,
    scalars,
)
from optiml_magic.binding.layout import checked_text, misfit
from optiml_magic.binding.packing import pack
from optiml_magic.binding.plan import bound_variables, name_expressions, plan, planned, told

__all__ = [
    "BoundBuffer",
    "Interface",
    "bound_variables",
    "check_array",
    "check_values",
    "checked_text",
    "content",
    "expressions",
    "interface",
    "launched",
    "misfit",
    "name_expressions",
    "pack",
    "plan",
    "planned",
    "scalars",
    "told",
]
