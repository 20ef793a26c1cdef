"""What reaches DRAM: the L2 as one cache of sectors, with least recently used ones going first.

The L1 is taken to keep whatever a block reads again, so the L2 sees each sector once a block. It
sees the blocks in the order of the grid, whatever threads ran them: the same launch always gives
the same figure. A grid whose data fit into the L2 misses each sector once and needs no model.
"""

from __future__ import annotations

import ctypes
import itertools
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from optiml_magic.emulator.layout import BLOCK_MARK
from optiml_magic.emulator.records import Worker

if TYPE_CHECKING:
    from optiml_magic.emulator.jit import Native

ROOM = 1 << 21  # runs of sectors in all logs, 8 bytes each; with more there is no figure


def misses(native: Native, workers: Sequence[Worker], sectors: int, capacity: int) -> int | None:
    """Sectors read from DRAM; None where a log ran full. ``capacity`` is the L2's, in sectors."""
    logs = [worker.log for worker in workers]
    if any(log is None for log in logs):
        return None
    runs = _in_grid_order([log for log in logs if log is not None])
    links = np.full((sectors + 1, 2), -1, np.int32)
    pointer, number = ctypes.c_void_p, ctypes.c_int64
    prototype = ctypes.CFUNCTYPE(number, pointer, number, pointer, ctypes.c_int32, number)
    replay = prototype(native.address("om_replay"))
    return int(replay(runs.ctypes.data, len(runs), links.ctypes.data, sectors, capacity))


def _in_grid_order(logs: Sequence[NDArray[np.uint32]]) -> NDArray[np.uint32]:
    """All runs, each block's together, without the marks."""
    parts: list[tuple[int, NDArray[np.uint32]]] = []
    for log in logs:
        marks = np.flatnonzero(log[:, 0] == BLOCK_MARK)
        for mark, end in itertools.pairwise([*marks.tolist(), len(log)]):
            parts.append((int(log[mark, 1]), log[mark + 1 : end]))
    ordered = [runs for _, runs in sorted(parts, key=lambda part: part[0])]
    return np.ascontiguousarray(np.concatenate(ordered)) if ordered else np.zeros((0, 2), np.uint32)
