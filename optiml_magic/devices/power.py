"""A run repeated on a card for a while: how long each takes then, and what the card draws."""

from __future__ import annotations

import statistics
import time
from typing import Any

from optiml_magic.devices.base import Draw
from optiml_magic.devices.clock import TimedRun
from optiml_magic.devices.memory import places
from optiml_magic.devices.nvml import Nvml

_SLICE_SECONDS = 0.05  # of work queued at a time, between two looks at the clocks
_MOST_LAUNCHES = 200  # in one graph


def draw(cupy: Any, stream: Any, run: TimedRun, seconds: float) -> Draw:
    """Launch the plan of a run on its first buffers again and again for ``seconds``.

    In-out buffers and outputs are not set back in between: work that depends on what they hold may
    change with the launches.
    """
    graph, launches = _graph(cupy, stream, run)
    nvml = Nvml(str(cupy.cuda.Device().pci_bus_id))
    sm, memory, celsius = list[int](), list[int](), list[int]()
    begin, end = cupy.cuda.Event(), cupy.cuda.Event()
    repeats = _repeats(cupy, stream, graph)
    count, elapsed, before, began = 0, 0.0, nvml.joules(), time.monotonic()
    while not count or time.monotonic() - began < seconds:
        begin.record(stream)
        for _ in range(repeats):
            graph.launch(stream)
        end.record(stream)
        sm.append(nvml.sm_clock() or 0)
        memory.append(nvml.memory_clock() or 0)
        celsius.append(nvml.celsius() or 0)
        end.synchronize()
        elapsed += float(cupy.cuda.get_elapsed_time(begin, end)) / 1e3
        count += repeats * launches
    after, wall = nvml.joules(), time.monotonic() - began
    run.module.note_changes()
    joules = after - before if after is not None and before is not None else None
    return Draw(
        launches=count,
        seconds=wall,
        busy=elapsed,
        joules=joules,
        refused=nvml.refused,
        sm_hertz=1e6 * statistics.mean(sm),
        memory_hertz=1e6 * statistics.mean(memory),
        celsius=max(celsius),
    )


def _graph(cupy: Any, stream: Any, run: TimedRun) -> tuple[Any, int]:
    """A graph of several launches, so that short kernels follow each other without a gap."""
    begin, end = cupy.cuda.Event(), cupy.cuda.Event()
    run.module.run(run.plan, places(run.sets[0]), stream)
    begin.record(stream)
    run.module.run(run.plan, places(run.sets[0]), stream)
    end.record(stream)
    end.synchronize()
    once = max(float(cupy.cuda.get_elapsed_time(begin, end)) / 1e3, 1e-6)
    launches = max(1, min(_MOST_LAUNCHES, int(_SLICE_SECONDS / 10 / once)))
    stream.begin_capture()
    for _ in range(launches):
        run.module.run(run.plan, places(run.sets[0]), stream)
    graph = stream.end_capture()
    graph.upload(stream)
    return graph, launches


def _repeats(cupy: Any, stream: Any, graph: Any) -> int:
    """How many launches of the graph fill a slice."""
    begin, end = cupy.cuda.Event(), cupy.cuda.Event()
    graph.launch(stream)
    begin.record(stream)
    graph.launch(stream)
    end.record(stream)
    end.synchronize()
    once = max(float(cupy.cuda.get_elapsed_time(begin, end)) / 1e3, 1e-6)
    return max(1, int(_SLICE_SECONDS / once))
