"""Where the atomics of a grid meet: their turns, and those at the line with the most of them.

Sectors beyond SLOTS share their slots, which adds a share of a SLOTS-th of all turns.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

_SECTORS = 4  # of a line of 128 bytes
_ERRORS = 2.0  # standard errors, by which a sample may have met a line too often


@dataclass(frozen=True)
class Met:
    """Turns of all global atomics of a grid, and of those at the busiest line."""

    turns: int
    of_a_line: int


def met(turns: NDArray[np.int64], blocks: NDArray[np.int64], ran: int, total: int) -> Met:
    """Turns of a whole grid.

    Args:
        turns: of each slot, by the blocks that were counted.
        blocks: how many of these made them.
        ran: how many were counted.
        total: how many there are.
    """
    rows = turns.reshape(-1, _SECTORS).sum(axis=1)
    lines = rows * _growth(blocks.reshape(-1, _SECTORS).max(axis=1), ran, total)
    return Met(int(turns.sum()) * total // ran, int(np.rint(lines.max())))


def _growth(blocks: NDArray[np.int64], ran: int, total: int) -> NDArray[np.float64]:
    """How many times as many the whole grid makes; what one block made alone is its own."""
    share = blocks / ran
    least = blocks - _ERRORS * np.sqrt(blocks * (1 - share))
    return np.maximum(least / np.maximum(blocks, 1) * (total / ran), 1.0)
