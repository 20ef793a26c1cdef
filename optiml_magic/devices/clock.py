"""Timing on a card: batches of launches between two events, each on buffers of its own.

A batch is one CUDA graph: launched one by one from Python, kernels of a few microseconds would wait
for the next launch, and the wait would be timed. Source: CUDA C++ Programming Guide, "CUDA Graphs".
"""

from __future__ import annotations

import secrets
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from optiml_magic.devices.base import Case, Sampling
from optiml_magic.devices.cold import ColdCache
from optiml_magic.devices.memory import Memory, copied, places
from optiml_magic.devices.module import CudaModule
from optiml_magic.devices.rounds import LASTING, sample, warm
from optiml_magic.devices.telemetry import Telemetry
from optiml_magic.model.condition import Conditions
from optiml_magic.model.launch import LaunchPlan

_BATCH_SECONDS = 1e-3  # between two events, so that their resolution does not show
_MOST_LAUNCHES = 200
_MOST_COPIED = 2 << 30  # bytes of buffer sets
_ESTIMATES = 3  # batches of one launch, where that is short
_LONG = 10  # times as long as a batch should be: no rise of the clock makes that one of two


@dataclass(frozen=True)
class TimedRun:
    """A plan on a case, launched between two events once on each of the buffer sets.

    ``starts`` holds what in-out buffers and filled outputs hold before. ``seconds`` is what such a
    batch takes, and ``fresh`` whether one was timed just now.
    """

    module: CudaModule
    plan: LaunchPlan
    case: Case
    starts: Mapping[str, Any]
    sets: Sequence[Mapping[str, Memory]]
    seconds: float = 0.0
    fresh: bool = False


class Clock:
    """Times runs on one stream of the current card."""

    def __init__(self, cupy: Any, stream: Any, telemetry: Telemetry) -> None:
        self._cp = cupy
        self._stream = stream
        self._telemetry = telemetry
        self._cold = ColdCache(cupy)
        self._lasting: dict[tuple[str, LaunchPlan], float] = {}  # seconds of slow plans

    def sampled(
        self, runs: Sequence[TimedRun], sampling: Sampling
    ) -> list[tuple[tuple[float, ...], Conditions]]:
        """Samples of each run, in seconds of one launch, and the state of the card meanwhile."""
        graphs = [self._captured(run) for run in runs]
        clocks: list[list[int]] = [[] for _ in runs]

        def batch(at: int) -> float:
            seconds = self._timed(runs[at], graphs[at])
            clocks[at].append(self._telemetry.sm_clock())
            return seconds

        if not any(run.fresh and run.seconds >= LASTING for run in runs):
            quickest = min(range(len(runs)), key=lambda at: runs[at].seconds)
            warm(lambda: self._timed(runs[quickest], graphs[quickest]))
        before = self._telemetry.read()
        found = sample(len(runs), batch, sampling)
        after = self._telemetry.read()
        medians = [statistics.median(mine) for mine in clocks]
        return [
            (
                tuple(seconds),
                Conditions(before, after, median, medians[0], self._telemetry.absent),
            )
            for seconds, median in zip(found, medians, strict=True)
        ]

    def batch(self, run: TimedRun) -> float:
        """Seconds of one launch, the mean of a batch."""
        return self._timed(run, self._captured(run))

    def _captured(self, run: TimedRun) -> Any:
        self._stream.begin_capture()
        for one in run.sets:
            run.module.run(run.plan, places(one), self._stream)
        graph = self._stream.end_capture()
        graph.upload(self._stream)
        return graph

    def _timed(self, run: TimedRun, graph: Any) -> float:
        """Seconds of one launch.

        Outputs and scratch are overwritten before, so that neither an earlier answer nor a note of
        one is left; then the L2 is: meanwhile the graph is queued, and need not be waited for
        between the events.
        """
        cp = self._cp
        begin, end = cp.cuda.Event(), cp.cuda.Event()
        with self._stream:
            for one in run.sets:
                self._refresh(run, one)
        self._cold.overwrite(self._stream)
        begin.record(self._stream)
        graph.launch(self._stream)
        end.record(self._stream)
        end.synchronize()
        return float(cp.cuda.get_elapsed_time(begin, end)) / 1e3 / len(run.sets)

    def looked(self, run: TimedRun) -> tuple[TimedRun, int]:
        """The run with its seconds, and how many launches a batch should have.

        What is slow is timed for that once.
        """
        module, plan = run.module, run.plan
        # A function that was never launched may still have to be loaded, which a capture forbids.
        if not module.launched.issuperset(launch.kernel for launch in plan.launches):
            module.run(plan, places(run.sets[0]), self._stream)
            self._stream.synchronize()
        known = self._lasting.get((module.digest, plan))
        if known is not None:
            return replace(run, seconds=known), 1
        graph = self._captured(run)
        once = self._timed(run, graph)
        if once < _BATCH_SECONDS:
            once = min(self._timed(run, graph) for _ in range(_ESTIMATES))
        if once > _LONG * _BATCH_SECONDS:
            self._lasting[module.digest, plan] = once
        launches = max(1, min(_MOST_LAUNCHES, int(_BATCH_SECONDS / max(once, 1e-7))))
        return replace(run, seconds=once * launches, fresh=True), launches

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
        wanted = min(launches, max(-(-self._cold.flushing // footprint), room))
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
