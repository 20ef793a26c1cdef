"""Timing on a card: batches of launches between two events, each on buffers of its own.

A batch is one CUDA graph: launched one by one from Python, kernels of a few microseconds would wait
for the next launch, and the wait would be timed. Source: CUDA C++ Programming Guide, "CUDA Graphs".
"""

from __future__ import annotations

import secrets
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from optiml_magic.devices.base import Case
from optiml_magic.devices.memory import Memory, copied, places
from optiml_magic.devices.module import CudaModule
from optiml_magic.model.launch import LaunchPlan

_BATCH_SECONDS = 1e-3  # between two events, so that their resolution does not show
_MOST_LAUNCHES = 200
_MOST_COPIED = 2 << 30  # bytes of buffer sets


@dataclass(frozen=True)
class TimedRun:
    """A plan on a case, launched between two events once on each of the buffer sets.

    ``starts`` holds what in-out buffers and filled outputs hold before.
    """

    module: CudaModule
    plan: LaunchPlan
    case: Case
    starts: Mapping[str, Any]
    sets: Sequence[Mapping[str, Memory]]


class Clock:
    """Times runs on one stream of the current card."""

    def __init__(self, cupy: Any, stream: Any) -> None:
        self._cp = cupy
        self._stream = stream
        self._flushing = 2 * int(cupy.cuda.Device().attributes["L2CacheSize"])
        self._overwrite: Any = None  # of that many bytes

    def batch(self, run: TimedRun) -> float:
        """Seconds of one launch, the mean of a batch.

        Outputs and scratch are overwritten before, so that neither an earlier answer nor a note of
        one is left; then the L2 is.
        """
        cp = self._cp
        if self._overwrite is None:
            self._overwrite = cp.empty(self._flushing, cp.uint8)
        begin, end = cp.cuda.Event(), cp.cuda.Event()
        self._stream.begin_capture()
        for one in run.sets:
            run.module.run(run.plan, places(one), self._stream)
        graph = self._stream.end_capture()
        graph.upload(self._stream)
        with self._stream:
            for one in run.sets:
                self._refresh(run, one)
            self._overwrite.fill(0)
        begin.record(self._stream)
        graph.launch(self._stream)
        end.record(self._stream)
        end.synchronize()
        return float(cp.cuda.get_elapsed_time(begin, end)) / 1e3 / len(run.sets)

    def launches(self, run: TimedRun) -> int:
        """How many launches a batch should have; warms up as well."""
        # A function that was never launched may still have to be loaded, which a capture forbids.
        run.module.run(run.plan, places(run.sets[0]), self._stream)
        self._stream.synchronize()
        self.batch(run)
        once = max(min(self.batch(run) for _ in range(3)), 1e-7)
        return max(1, min(_MOST_LAUNCHES, int(_BATCH_SECONDS / once)))

    def copies(
        self, own: Mapping[str, Memory], launches: int, runs: int
    ) -> list[dict[str, Memory]]:
        """Further buffer sets, one for each launch of a batch.

        Fewer where so many would not fit beside those of the other ``runs``, but together at least
        twice the L2.
        """
        footprint = max(1, sum(memory.array.nbytes for memory in own.values()))
        free = int(self._cp.cuda.Device().mem_info[0])
        room = min(_MOST_COPIED, free // (4 * runs)) // footprint
        wanted = min(launches, max(-(-self._flushing // footprint), room))
        return [{name: copied(memory) for name, memory in own.items()} for _ in range(wanted - 1)]

    def _refresh(self, run: TimedRun, memories: Mapping[str, Memory]) -> None:
        """By a byte that is another each time: no bool, and no small number."""
        kept = {buffer.name for buffer in run.case.buffers if buffer.role == "input"}
        for name, memory in memories.items():
            if name in run.starts:
                memory.array[...] = run.starts[name]
            elif name not in kept:
                byte, array = secrets.randbelow(126) + 129, memory.array
                self._cp.cuda.runtime.memsetAsync(
                    array.data.ptr, byte, array.nbytes, self._stream.ptr
                )
