"""From what the machine code counted to the nouns of ``model.counters``."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from optiml_magic.emulator.lower import Lowered
from optiml_magic.model.counters import (
    BlockCounters,
    KernelCounters,
    LineCounters,
    MemoryCounters,
)
from optiml_magic.ptx.nouns import Instruction
from optiml_magic.ptx.traits import flops, is_barrier, kind

Counts = NDArray[np.int64]


@dataclass(frozen=True)
class Raw:
    """Summed over the workers."""

    blocks: Counts  # (basic blocks, 2): warps, lanes
    idle: Counts  # lanes that a predicate switched off, per predicated instruction
    sites: Counts  # (site records, COUNTS), in the order of SITE's fields
    read_per_block: int
    memory_warps: int


def combined(terms: Sequence[tuple[float, Raw]]) -> Raw:
    """A weighted sum, rounded."""

    def total(name: str) -> Counts:
        parts = [weight * np.asarray(getattr(raw, name)) for weight, raw in terms]
        return np.asarray(np.rint(np.sum(parts, axis=0)), np.int64)

    return Raw(
        blocks=total("blocks"),
        idle=total("idle"),
        sites=total("sites"),
        read_per_block=int(total("read_per_block")),
        memory_warps=int(total("memory_warps")),
    )


def tally(name: str, lowered: Lowered, raw: Raw, read: int, written: int) -> KernelCounters:
    """Executions of each basic block, times what stands in it, less the lanes predicated off.

    A predicated branch is executed by every active lane: each of them decides. ``read`` and
    ``written`` are distinct sectors of the whole grid.
    """
    total = _Totals()
    barriers = 0
    executed = []
    for block, (warps, lanes) in zip(lowered.graph.blocks, raw.blocks.tolist(), strict=True):
        own = [instruction for instruction in block.every if instruction.counted]
        for instruction in own:
            total.add(instruction, warps, lanes)
        executed.append(BlockCounters(tuple(i.ptx_line for i in own), warps))
        if block.end is not None and is_barrier(block.end):
            barriers += warps
    for instruction, off in zip(lowered.idle, raw.idle.tolist(), strict=False):
        total.add(instruction, 0, -off)
    return KernelCounters(
        kernel=name,
        warp_instructions=sum(total.kinds.values()),
        thread_instructions=sum(line.thread_instructions for line in total.lines),
        by_class=dict(total.kinds),
        flops=dict(total.flops),
        memory=_memory(lowered, raw.sites),
        lines=total.lines,
        barriers=barriers,
        read_sectors_unique=read,
        write_sectors_unique=written,
        read_sectors_per_block=raw.read_per_block,
        memory_warps=raw.memory_warps,
        blocks=tuple(executed),
    )


class _Totals:
    def __init__(self) -> None:
        self.kinds: dict[str, int] = defaultdict(int)
        self.flops: dict[str, int] = defaultdict(int)
        self._lines: dict[int, tuple[int, int]] = {}
        self._kinds_of: dict[int, dict[str, int]] = defaultdict(lambda: defaultdict(int))

    def add(self, instruction: Instruction, warps: int, lanes: int) -> None:
        class_ = kind(instruction)
        self.kinds[class_] += warps
        if warps:
            self._kinds_of[instruction.line][class_] += warps
        dtype, operations = flops(instruction)
        if operations:
            self.flops[dtype] += operations * lanes
        before = self._lines.get(instruction.line, (0, 0))
        self._lines[instruction.line] = before[0] + warps, before[1] + lanes

    @property
    def lines(self) -> tuple[LineCounters, ...]:
        """Of every line, in order."""
        return tuple(
            LineCounters(at, *counts, dict(self._kinds_of[at]))
            for at, counts in sorted(self._lines.items())
        )


def _memory(lowered: Lowered, sites: Counts) -> tuple[MemoryCounters, ...]:
    """One entry per memory instruction and space that it met."""
    found = []
    rows = iter(sites.tolist())
    for site in lowered.sites:
        for space in site.spaces:
            counts = next(rows)
            if counts[0] and site.counted:
                place = site.line, space, site.access, site.width
                found.append(MemoryCounters(*place, *counts, swaps=site.swaps))
    return tuple(found)
