"""The records of ``layout`` in host memory: what the workers of one launch read and write."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from optiml_magic.emulator.layout import (
    ALLOCATION,
    BARRIERS,
    COUNTS,
    MEETING,
    PRINT_CAPACITY,
    SITE,
    SLICE,
    SLOTS,
    TID,
    WARP,
    WORKER,
    Record,
)
from optiml_magic.emulator.lower import Lowered
from optiml_magic.emulator.memory import Bytes
from optiml_magic.emulator.places import Area


@dataclass(frozen=True)
class Kernel:
    name: str
    symbol: str  # of the machine code
    lowered: Lowered
    parameters: tuple[tuple[int, int], ...]  # offset and size of each, in bytes
    parameter_address: int
    parameter_bytes: int
    shared_bytes: int
    local_bytes: int
    shared: tuple[Area, ...] = ()  # its shared variables, by their offsets
    most_threads: int | None = None  # of a block, where the kernel says so
    block: tuple[int, int, int] | None = None  # the only one it may be launched with


_FORMATS = {"i32": "<i4", "i64": "<i8", "ptr": "<i8"}


class Fields:
    """One record in memory, its fields by name."""

    def __init__(self, record: Record, **values: int) -> None:
        self._record = record
        raw = np.zeros(record.size + 64, np.uint8)
        start = -raw.ctypes.data % 64
        self.bytes = raw[start : start + record.size]
        self.set(**values)

    @property
    def address(self) -> int:
        return self.bytes.ctypes.data

    def set(self, **values: int) -> None:
        for name, value in values.items():
            self._slot(name)[0] = value

    def get(self, name: str) -> int:
        return int(self._slot(name)[0])

    def _slot(self, name: str) -> NDArray[np.int64]:
        format_ = np.dtype(_FORMATS[self._record.type[name]])
        at = self._record.offset[name]
        return self.bytes[at : at + format_.itemsize].view(format_)


def table_of(areas: Sequence[tuple[int, Bytes]]) -> tuple[Bytes, int]:
    """The allocation table, and how many 32-byte sectors it spans."""
    table = np.zeros(max(len(areas), 1) * ALLOCATION.size // 8, np.int64)
    rows = table.reshape(-1, ALLOCATION.size // 8)
    sector = 0
    for row, (address, data) in zip(rows, areas, strict=False):
        row[:] = (address, data.nbytes, data.ctypes.data, sector)
        sector += -(-data.nbytes // 128) * 4  # a 128-byte line begins with every allocation
    return table.view(np.uint8), sector


class Worker:
    """All the memory that one host thread needs; counters are its own."""

    def __init__(
        self,
        kernel: Kernel,
        grid: tuple[int, int, int],
        block: tuple[int, int, int],
        dynamic_shared: int,
        instructions: int,
    ) -> None:
        lowered = kernel.lowered
        threads = block[0] * block[1] * block[2]
        warps = -(-threads // 32)
        shared_size = kernel.shared_bytes + dynamic_shared
        self.blocks = np.zeros((len(lowered.graph.blocks), 2), np.int64)
        self.idle = np.zeros(max(len(lowered.idle), 1), np.int64)
        self._site_records = _sites(lowered)
        self._shared = zeros(shared_size)
        self._local = zeros(warps * 32 * kernel.local_bytes)
        self._states = _warps(lowered.warp_size, block, self._local, kernel.local_bytes)
        self._status = np.zeros(warps + BARRIERS, np.int32)
        self.printed = zeros(PRINT_CAPACITY if lowered.prints else 0)
        meets = any(s.access == "atomic" and "global" in s.spaces for s in lowered.sites)
        self._met = zeros(SLOTS * MEETING.size if meets else 0)
        self._marks = zeros(shared_size // 4 + 1)
        self._warp_stamps = np.zeros(warps, np.uint32)
        self.record = Fields(
            WORKER,
            shared=self._shared.ctypes.data,
            shared_size=shared_size,
            dynamic_shared=dynamic_shared,
            fuel=min(instructions, SLICE),
            budget=max(instructions - SLICE, 0),
            nctaid_x=grid[0],
            nctaid_y=grid[1],
            nctaid_z=grid[2],
            ntid_x=block[0],
            ntid_y=block[1],
            ntid_z=block[2],
            warps=warps,
            warp_states=self._states.ctypes.data,
            warp_stride=lowered.warp_size,
            warp_status=self._status.ctypes.data,
            sites=self._site_records.ctypes.data,
            blocks=self.blocks.ctypes.data,
            idle=self.idle.ctypes.data,
            warp_stamps=self._warp_stamps.ctypes.data,
            met=self._met.ctypes.data,
            marks=self._marks.ctypes.data,
            printed=self.printed.ctypes.data,
            local_size=kernel.local_bytes,
        )

    def track(self, sectors: int) -> None:
        """Make room for a stamp on each sector of the allocation table."""
        self.stamps = np.zeros(max(sectors, 1), np.uint32)
        self.record.set(stamps=self.stamps.ctypes.data)

    def keep_log(self, room: int) -> None:
        """Log what each block reads first, in at most ``room`` runs."""
        self._log = np.zeros((room, 2), np.uint32)
        self.record.set(log=self._log.ctypes.data, log_room=room)

    @property
    def log(self) -> NDArray[np.uint32] | None:
        """The runs (first, count) between marks of blocks; None where there was no room."""
        used = self.record.get("log_used")
        return None if used < 0 else self._log[:used]

    @property
    def met(self) -> NDArray[np.int64]:
        """Of each slot the turns, and the blocks that made them; no slots without atomics."""
        rows = self._met.reshape(-1, MEETING.size)
        turns, blocks = (MEETING.offset[field] for field in ("turns", "blocks"))
        return np.stack(
            [
                rows[:, turns : turns + 8].copy().view(np.int64)[:, 0],
                rows[:, blocks : blocks + 4].copy().view(np.int32)[:, 0].astype(np.int64),
            ]
        )

    @property
    def sites(self) -> NDArray[np.int64]:
        """Of each site record the counts, in the order of the fields of SITE."""
        return self._site_records.view(np.int64).reshape(-1, SITE.size // 8)[:, :COUNTS]


def zeros(nbytes: int) -> Bytes:
    raw = np.zeros(nbytes + 64, np.uint8)
    start = -raw.ctypes.data % 64
    return raw[start : start + nbytes]


def _sites(lowered: Lowered) -> Bytes:
    lines = [site.line for site in lowered.sites for _ in site.spaces]
    records = zeros(max(len(lines), 1) * SITE.size)
    rows = records.reshape(-1, SITE.size)
    at = SITE.offset["line"]
    for row, line in zip(rows, lines, strict=False):
        row[at : at + 4].view(np.int32)[0] = line
    return records


def _warps(size: int, block: tuple[int, int, int], local: Bytes, local_bytes: int) -> Bytes:
    """The warp records of a block: lanes beyond the block's threads never live."""
    threads = block[0] * block[1] * block[2]
    warps = -(-threads // 32)
    linear = np.arange(warps * 32)
    tid = (linear % block[0], linear // block[0] % block[1], linear // (block[0] * block[1]))
    states = zeros(warps * size)
    for number, state in enumerate(states.reshape(warps, size)):
        for axis, values in zip("xyz", tid, strict=True):
            lanes = values[32 * number : 32 * number + 32].astype(np.int32)
            state[TID[axis] : TID[axis] + 128] = lanes.view(np.uint8)
        living = min(32, threads - 32 * number)
        base = local.ctypes.data + number * 32 * local_bytes
        state[: WARP.size] = 0
        state[WARP.offset["initial"] :][:4].view(np.uint32)[0] = (1 << living) - 1
        state[WARP.offset["index"] :][:4].view(np.int32)[0] = number
        state[WARP.offset["local"] :][:8].view(np.int64)[0] = base
    return states
