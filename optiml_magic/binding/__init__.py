"""Names and values to a kernel's parameters, and a program to its launches."""

from __future__ import annotations

from optiml_magic.binding.interface import (
    BoundBuffer,
    Interface,
    check_array,
    check_values,
    interface,
    launched,
)
from optiml_magic.binding.plan import kernel_names, pack, plan

__all__ = [
    "BoundBuffer",
    "Interface",
    "check_array",
    "check_values",
    "interface",
    "kernel_names",
    "launched",
    "pack",
    "plan",
]
