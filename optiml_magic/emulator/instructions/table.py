"""The table of instructions: base opcode -> the function that lowers it."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from importlib import import_module

from optiml_magic.emulator.lanes import Lanes
from optiml_magic.ptx.nouns import Instruction, is_type

Lowering = Callable[[Lanes, Instruction], None]

_TABLE: dict[str, tuple[Lowering, frozenset[str]]] = {}
_HOMES = (
    "access",
    "arithmetic",
    "asynchronous",
    "bits",
    "comparison",
    "conversion",
    "floating",
    "moves",
    "packed",
    "warp",
)


def lowers(*bases: str, takes: str = "") -> Callable[[Lowering], Lowering]:
    """Register a function for instructions by their base opcode (``ld`` of ``ld.global.f32``).

    ``takes`` lists the modifiers that it heeds beside types; with any other it is refused.
    """

    def register(function: Lowering) -> Lowering:
        for base in bases:
            _TABLE[base] = function, frozenset(takes.split())
        return function

    return register


@cache
def _loaded() -> dict[str, tuple[Lowering, frozenset[str]]]:
    for home in _HOMES:
        import_module(f"{__package__}.{home}")
    return _TABLE


def lower(lanes: Lanes, instruction: Instruction) -> None:
    """Emit the code of one instruction; raises UnsupportedPtx for an unknown one."""
    lanes.begin(instruction)
    if instruction.base not in _loaded():
        raise lanes.unsupported()
    function, takes = _loaded()[instruction.base]
    for part in instruction.parts[1:]:
        if part not in takes and not is_type(part):
            raise lanes.unsupported(f"the modifier `.{part}`")
    try:
        function(lanes, instruction)
    except (KeyError, ValueError, IndexError) as unknown:
        raise lanes.unsupported() from unknown
