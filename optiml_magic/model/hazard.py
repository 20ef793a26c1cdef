"""What a check found in a run that may well have given the right answer."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

HazardKind = Literal[
    "race",
    "uninitialised",
    "barrier_divergence",
    "missed_phase",
    "invalid_lane",
    "exited_lanes",
    "out_of_bounds",
    "misaligned",
    "deadlock",
    "instruction_limit",
    "trap",
]
Severity = Literal["error", "warning"]  # a warning is legal on the chips that run this
Index = tuple[int, int, int]


@dataclass(frozen=True)
class Hazard:
    """One defect, found ``count`` times; block and threads are those of the first time.

    ``line`` and ``other_line`` are 1-based lines of the compiled text, 0 where there is none. Of a
    race they are the two accesses; of an uninitialised value where it was loaded, and used.
    """

    kind: HazardKind
    message: str
    fix: str
    line: int = 0
    other_line: int = 0
    block: Index | None = None
    thread: Index | None = None
    other_block: Index | None = None
    other_thread: Index | None = None
    count: int = 1
    severity: Severity = "error"

    @property
    def lines(self) -> tuple[int, ...]:
        """The lines at fault, in the order of the text: where a value is only used, is not one."""
        uses = self.kind in ("uninitialised", "invalid_lane")
        return tuple(sorted({self.line, 0 if uses else self.other_line} - {0}))
