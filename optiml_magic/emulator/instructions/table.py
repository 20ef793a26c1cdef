"""The table of instructions: base opcode -> the function that lowers it."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from importlib import import_module

from optiml_magic.emulator.lanes import Lanes
from optiml_magic.emulator.ptx import Instruction

Lowering = Callable[[Lanes, Instruction], None]

_TABLE: dict[str, Lowering] = {}
_HOMES = ("arithmetic", "bits", "comparison", "conversion", "floating", "moves", "access", "warp")


def lowers(*bases: str) -> Callable[[Lowering], Lowering]:
    """Register a function for instructions by their base opcode (``ld`` of ``ld.global.f32``)."""

    def register(function: Lowering) -> Lowering:
        for base in bases:
            _TABLE[base] = function
        return function

    return register


@cache
def _loaded() -> dict[str, Lowering]:
    for home in _HOMES:
        import_module(f"{__package__}.{home}")
    return _TABLE


def lower(lanes: Lanes, instruction: Instruction) -> None:
    """Emit the code of one instruction; raises UnsupportedPtx for an unknown one."""
    lanes.begin(instruction)
    function = _loaded().get(instruction.base)
    if function is None:
        raise lanes.unsupported()
    try:
        function(lanes, instruction)
    except (KeyError, ValueError, IndexError) as unknown:
        raise lanes.unsupported() from unknown
