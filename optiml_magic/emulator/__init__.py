"""PTX on the CPU: NVRTC's output, run warp by warp through LLVM, checked and counted.

The flow, in file names: parser, of ptx/ -> calls -> cfg, of ptx/ -> lower (instructions/) -> jit
(library/) -> launch (crew, sampling) -> tally.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from optiml_magic.emulator.faults import Fault as Fault
    from optiml_magic.emulator.faults import FaultKind as FaultKind
    from optiml_magic.emulator.launch import Limits as Limits
    from optiml_magic.emulator.launch import Run as Run
    from optiml_magic.emulator.launch import Sample as Sample
    from optiml_magic.emulator.memory import Memory as Memory
    from optiml_magic.emulator.module import Module as Module
    from optiml_magic.emulator.module import load as load
    from optiml_magic.emulator.orders import Order as Order

_HOMES = {
    "Fault": "faults",
    "FaultKind": "faults",
    "Limits": "launch",
    "Run": "launch",
    "Sample": "launch",
    "Memory": "memory",
    "Order": "orders",
    "Module": "module",
    "load": "module",
}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
