"""From what the machine code counted to the nouns of ``model.counters``."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from optiml_magic.emulator.instructions.traits import flops, is_barrier, kind
from optiml_magic.emulator.lower import Lowered
from optiml_magic.emulator.ptx import Instruction
from optiml_magic.model.counters import KernelCounters, LineCounters, MemoryCounters

Counts = NDArray[np.int64]


@dataclass(frozen=True)
class Raw:
    """Summed over the workers."""

    blocks: Counts  # (basic blocks, 2): warps, lanes
    idle: Counts  # lanes that a predicate switched off, per predicated instruction
    sites: Counts  # (site records, COUNTS), in the order of SITE's fields
    read: int
    written: int
    read_per_block: int
    memory_warps: int


def tally(name: str, lowered: Lowered, raw: Raw) -> KernelCounters:
    """Executions of each basic block, times what stands in it, less the lanes predicated off.

    A predicated branch is executed by every active lane: each of them decides.
    """
    total = _Totals()
    barriers = 0
    for block, (warps, lanes) in zip(lowered.graph.blocks, raw.blocks.tolist(), strict=True):
        for instruction in block.every:
            if instruction.counted:
                total.add(instruction, warps, lanes)
        if block.end is not None and is_barrier(block.end):
            barriers += warps
    for instruction, off in zip(lowered.idle, raw.idle.tolist(), strict=False):
        total.add(instruction, 0, -off)
    return KernelCounters(
        kernel=name,
        warp_instructions=sum(total.kinds.values()),
        thread_instructions=sum(lanes for _, lanes in total.lines.values()),
        by_class=dict(total.kinds),
        flops=dict(total.flops),
        memory=_memory(lowered, raw.sites),
        lines=tuple(LineCounters(at, *counts) for at, counts in sorted(total.lines.items())),
        barriers=barriers,
        read_sectors_unique=raw.read,
        write_sectors_unique=raw.written,
        read_sectors_per_block=raw.read_per_block,
        memory_warps=raw.memory_warps,
    )


class _Totals:
    def __init__(self) -> None:
        self.kinds: dict[str, int] = defaultdict(int)
        self.flops: dict[str, int] = defaultdict(int)
        self.lines: dict[int, tuple[int, int]] = {}

    def add(self, instruction: Instruction, warps: int, lanes: int) -> None:
        self.kinds[kind(instruction)] += warps
        dtype, operations = flops(instruction)
        if operations:
            self.flops[dtype] += operations * lanes
        before = self.lines.get(instruction.line, (0, 0))
        self.lines[instruction.line] = before[0] + warps, before[1] + lanes


def _memory(lowered: Lowered, sites: Counts) -> tuple[MemoryCounters, ...]:
    """One entry per memory instruction and space that it met."""
    found = []
    rows = iter(sites.tolist())
    for site in lowered.sites:
        for space in site.spaces:
            counts = next(rows)
            if counts[0] and site.counted:
                found.append(MemoryCounters(site.line, space, site.access, site.width, *counts))
    return tuple(found)
