"""Functions that launch on a card by themselves, timed as programs are (``clock.py``).

Launches are captured as one graph, each on arrays of its own, and timed between two events behind
an overwritten L2. Whatever cannot be captured is launched from Python, and says so.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any

from optiml_magic.devices.base import Sampling
from optiml_magic.devices.cold import ColdCache
from optiml_magic.devices.rounds import sample, warm

_BATCH_SECONDS = 4e-3
_MOST_SETS = 8
_MOST_COPIED = 2 << 30  # bytes
_SHARE = 32  # of the card's memory, one part in so many for each of those that are compared; ours
GRAPH, PYTHON = "a graph", "launched from Python"

Run = Callable[[], Any]


@dataclass(frozen=True)
class Ready:
    """A function bound to several sets of arrays, and ``how`` these ``runs`` are launched.

    The runs are kept, since a graph knows their arrays by address alone.
    """

    stream: Any
    launch: Run
    runs: Sequence[Run]
    how: str

    @property
    def sets(self) -> int:
        return len(self.runs)


def readied(
    cp: Any,
    make: Callable[[], Run],
    on: Callable[[Any], AbstractContextManager[Any]],
    capture: Callable[[Any, Run], Run],
    footprint: int,
) -> Ready:
    """What ``make`` binds to arrays of its own, ``footprint`` bytes with its outputs.

    ``on`` a stream it launches there, and ``capture`` makes what launches it as a graph, or raises
    anything. Raises what the function raises.
    """
    stream = cp.cuda.Stream(non_blocking=True)
    with on(stream):
        runs = [make()]
        runs[0]()
    stream.synchronize()

    def all_runs() -> None:
        for run in runs:
            run()

    def launched() -> None:
        with on(stream):
            all_runs()

    how, launch = GRAPH, launched
    try:
        launch = capture(stream, all_runs)
        launch()
        stream.synchronize()
    except Exception as problem:  # noqa: BLE001  # what synchronises cannot be captured
        stream = cp.cuda.Stream(non_blocking=True)  # the capture has spoilt the other
        how, launch = f"{PYTHON}: {line_of(problem)}", launched

    # Of the graph: a call from Python takes longer, by what Python does for it, and those that are
    # compared need about as many sets, since the first run of a batch also waits for what the
    # overwritten L2 has to write back.
    once = _once(cp, stream, launch)
    most = min(_MOST_COPIED, int(cp.cuda.Device().mem_info[1]) // _SHARE)
    room = most // max(1, footprint)
    with on(stream):
        for _ in range(int(max(1, min(_MOST_SETS, room, _BATCH_SECONDS / max(once, 1e-6)))) - 1):
            runs.append(make())
            runs[-1]()
    stream.synchronize()
    if how == GRAPH and len(runs) > 1:
        launch = capture(stream, all_runs)
        launch()
        stream.synchronize()
    return Ready(stream, launch, runs, how)


def captured(cp: Any, stream: Any, runs: Run) -> Run:
    """CuPy's launches as a graph with memory of its own: what is freed inside belongs to it."""
    pool = cp.cuda.MemoryPool()
    with stream, cp.cuda.using_allocator(pool.malloc):
        runs()  # what it allocates lies in the pool before the capture
        stream.synchronize()
        stream.begin_capture()
        try:
            runs()
        finally:
            graph = stream.end_capture()

    def launch() -> None:
        assert pool is not None  # lives as long as the graph
        graph.launch(stream)

    return launch


def sampled(cp: Any, ready: Sequence[Ready], sampling: Sampling) -> list[tuple[float, ...]]:
    """Samples of each, in turn, in seconds of one run."""
    cold = ColdCache(cp)
    begin, end = cp.cuda.Event(), cp.cuda.Event()

    def batch(at: int) -> float:
        one = ready[at]
        cold.overwrite(one.stream)
        begin.record(one.stream)
        one.launch()
        end.record(one.stream)
        end.synchronize()
        return float(cp.cuda.get_elapsed_time(begin, end)) / 1e3 / one.sets

    warm(lambda: batch(len(ready) - 1))
    return [tuple(found) for found in sample(len(ready), batch, sampling)]


def line_of(problem: Exception) -> str:
    """An exception in a line."""
    lines = str(problem).strip().splitlines() or [""]
    return f"{type(problem).__name__}: {lines[0][:200]}"


def _once(cp: Any, stream: Any, run: Run) -> float:
    """Seconds of one run that was run before."""
    run()
    begin, end = cp.cuda.Event(), cp.cuda.Event()
    begin.record(stream)
    run()
    end.record(stream)
    end.synchronize()
    return float(cp.cuda.get_elapsed_time(begin, end)) / 1e3
