"""What can go wrong while a kernel runs: faults, which are values."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

FaultKind = Literal[
    "out_of_bounds",
    "misaligned",
    "trap",
    "assertion",
    "barrier_divergence",
    "deadlock",
    "instruction_limit",
    "invalid_launch",
    "too_large",
]

# The machine code reports a fault as an index into this table; 0 means that none happened.
KINDS: tuple[FaultKind | None, ...] = (
    None,
    "out_of_bounds",
    "misaligned",
    "trap",
    "assertion",
    "barrier_divergence",
    "deadlock",
    "instruction_limit",
    "invalid_launch",
    "too_large",
)


def code(kind: FaultKind) -> int:
    """The number by which the machine code knows ``kind``."""
    return KINDS.index(kind)


@dataclass(frozen=True)
class Fault:
    """Why a launch ended early: the first fault of the lowest block that reported one."""

    kind: FaultKind
    message: str
    line: int = 0  # 1-based line of the compiled text; 0 when unknown
    block: tuple[int, int, int] | None = None
    thread: tuple[int, int, int] | None = None
    address: int | None = None  # a device address, or an offset into shared or local memory
