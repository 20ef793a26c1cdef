"""Where the atomics of a grid meet: the word and the line of global memory with the most updates.

Words beyond SLOTS share their slots, which adds a share of a SLOTS-th of all updates.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

_WORDS = 32  # of a line of 128 bytes
_ERRORS = 2.0  # standard errors, by which a sample may have met a word too often


def hottest(
    updates: NDArray[np.int64], blocks: NDArray[np.int64], ran: int, total: int
) -> tuple[int, int]:
    """Updates of the busiest word and of the busiest line, by a whole grid.

    Args:
        updates: of each slot, by the blocks that were counted.
        blocks: how many of these made them.
        ran: how many were counted.
        total: how many there are.
    """
    words = updates * _growth(blocks, ran, total)
    rows = updates.reshape(-1, _WORDS).sum(axis=1)
    lines = rows * _growth(blocks.reshape(-1, _WORDS).max(axis=1), ran, total)
    return int(np.rint(words.max())), int(np.rint(lines.max()))


def _growth(blocks: NDArray[np.int64], ran: int, total: int) -> NDArray[np.float64]:
    """How many times as many the whole grid makes; what one block made alone is its own."""
    share = blocks / ran
    least = blocks - _ERRORS * np.sqrt(blocks * (1 - share))
    return np.maximum(least / np.maximum(blocks, 1) * (total / ran), 1.0)
