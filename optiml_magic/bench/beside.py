"""Ours and the peers on one card, in turn: each sample from memory, behind an overwritten L2.

The method is that of ``devices/clock.py``: launches captured as one graph, each on arrays of its
own, between two events, and samples in rounds A B B A. Whatever cannot be captured is launched from
Python, and says so.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from optiml_magic.bench.entry import Entry
from optiml_magic.bench.peers import OurKernel, Party, copied, peers, running_on_cupy, wanted
from optiml_magic.bench.row import BEST, INPUT
from optiml_magic.devices.base import Sampling
from optiml_magic.devices.rounds import sample, warm
from optiml_magic.result import Result

_SAMPLING = Sampling(least=8, most=40, seconds=3.0)
_BATCH_SECONDS = 1e-3
_MOST_SETS = 8
_MOST_COPIED = 2 << 30  # bytes
_OFF = {"f2": 1e-2, "f4": 1e-3, "f8": 1e-6}  # of the largest wanted value; ours
_GRAPH, _PYTHON = "a graph", "launched from Python"


@dataclass
class Beside:
    """What came of it: samples in seconds by name, and of those that failed the reasons.

    ``errors`` are the largest of each, relative to the largest wanted value of its output.
    """

    samples: dict[str, tuple[float, ...]] = field(default_factory=dict)
    how: dict[str, str] = field(default_factory=dict)
    errors: dict[str, float] = field(default_factory=dict)
    failed: dict[str, str] = field(default_factory=dict)
    against: str = ""


@dataclass(frozen=True)
class _Ready:
    name: str
    stream: Any
    launch: Callable[[], None]
    sets: int


def beside(
    entry: Entry,
    result: Result,
    sizes: Mapping[str, int],
    index: int,
    *,
    with_peers: bool,
    with_reference: bool = False,
) -> Beside:
    """Time the input kernel, the best and the peers at these sizes on card ``index``.

    ``with_reference`` the reference itself is a peer, with CuPy where it says NumPy.
    """
    import cupy as cp

    found = Beside()
    parties: list[Party] = [OurKernel(INPUT, result.original), OurKernel(BEST, result.best)]
    if with_peers:
        others, missing = peers(entry)
        parties += others
        if with_reference:
            parties.append(running_on_cupy(entry))
        found.failed.update(missing)
    drawn = entry.inputs(np.random.default_rng(0), **sizes)
    with cp.cuda.Device(index):
        values = {n: _on_card(cp, value) for n, value in drawn.items()}
        right = _checked(cp, entry, parties, values, found)
        cp.get_default_memory_pool().free_all_blocks()
        ready = [one for party in right if (one := _readied(cp, party, values, found))]
        if ready:
            _time(cp, ready, found)
        cp.cuda.Device().synchronize()  # a fault of anybody's is told here at the latest
        cp.get_default_memory_pool().free_all_blocks()
    if "torch" in sys.modules:
        sys.modules["torch"].cuda.empty_cache()
    return found


def _on_card(cp: Any, value: Any) -> Any:
    return cp.asarray(value) if isinstance(value, np.ndarray) and value.ndim else value


def _checked(
    cp: Any, entry: Entry, parties: Sequence[Party], values: Mapping[str, Any], found: Beside
) -> list[Party]:
    """Those whose outputs are those of double precision, or of the input kernel without any."""
    right: list[Party] = []
    expected: tuple[Any, ...] = ()
    try:
        expected, found.against = wanted(entry, copied(values))
    except Exception as problem:  # noqa: BLE001  # whatever a library raises, ours is still timed
        found.failed["double precision"] = _told(problem)
    for party in parties:
        try:
            outputs = party.arrays(party.ready(copied(values))())
            cp.cuda.Device().synchronize()
            if not expected:
                expected, found.against = outputs, "the input kernel"
            found.errors[party.name] = _error(cp, outputs, expected)
        except Exception as problem:  # noqa: BLE001
            found.failed[party.name] = _told(problem)
            continue
        limit = max((_OFF.get(f"f{o.dtype.itemsize}", 0.0) if o.dtype.kind == "f" else 0.0)
                    for o in outputs)  # fmt: skip
        # Sums of very many floats by atomics are what they are; the verifier has judged it.
        if found.errors[party.name] <= limit or party.name == INPUT:
            right.append(party)
        else:
            found.failed[party.name] = f"off by {found.errors[party.name]:.2g} of the largest value"
    return right


def _error(cp: Any, outputs: Sequence[Any], expected: Sequence[Any]) -> float:
    if [o.size for o in outputs] != [e.size for e in expected]:
        shapes = [o.shape for o in outputs], [e.shape for e in expected]
        raise ValueError(f"outputs of shapes {shapes[0]}, wanted {shapes[1]}")
    worst = 0.0
    for one, other in zip(outputs, expected, strict=True):
        a, b = one.reshape(-1).astype(cp.float64), other.reshape(-1).astype(cp.float64)
        same = (a == b) | (cp.isnan(a) & cp.isnan(b))
        finite = cp.isfinite(b)
        scale = float(cp.max(cp.where(finite, cp.abs(b), 0.0))) or 1.0
        off = cp.where(same, 0.0, cp.abs(a - b))
        worst = max(worst, float(cp.max(cp.nan_to_num(off, nan=cp.inf))) / scale)
    return worst


def _readied(cp: Any, party: Party, values: Mapping[str, Any], found: Beside) -> _Ready | None:
    """The party on sets of arrays of its own, as a graph where it can be captured."""
    stream = cp.cuda.Stream(non_blocking=True)
    try:
        with party.on(stream):
            runs = [party.ready(_fresh(cp, values))]
            once = _once(cp, stream, runs[0])
            for _ in range(_sets(values, once) - 1):
                runs.append(party.ready(_fresh(cp, values)))
                runs[-1]()
        stream.synchronize()
    except Exception as problem:  # noqa: BLE001
        found.failed[party.name] = _told(problem)
        return None

    def all_runs() -> None:
        for run in runs:
            run()

    try:
        launch = party.capture(stream, all_runs)
        launch()
        stream.synchronize()
        found.how[party.name] = _GRAPH
    except Exception as problem:  # noqa: BLE001  # what synchronises cannot be captured
        found.how[party.name] = f"{_PYTHON}: {_told(problem)}"
        own = stream = cp.cuda.Stream(non_blocking=True)  # the capture has spoilt the other

        def launch() -> None:
            with party.on(own):
                all_runs()

    return _Ready(party.name, stream, launch, len(runs))


def _fresh(cp: Any, values: Mapping[str, Any]) -> dict[str, Any]:
    made = copied(values)
    cp.cuda.Device().synchronize()
    return made


def _once(cp: Any, stream: Any, run: Callable[[], Any]) -> float:
    """Seconds of one run that was run before."""
    run()
    begin, end = cp.cuda.Event(), cp.cuda.Event()
    begin.record(stream)
    run()
    end.record(stream)
    end.synchronize()
    return float(cp.cuda.get_elapsed_time(begin, end)) / 1e3


def _sets(values: Mapping[str, Any], once: float) -> int:
    """How many sets of arrays a batch has, so that it lasts about a millisecond."""
    footprint = 2 * sum(v.nbytes for v in values.values() if getattr(v, "ndim", 0))
    room = _MOST_COPIED // max(1, footprint)
    return int(max(1, min(_MOST_SETS, room, _BATCH_SECONDS / max(once, 1e-6))))


def _time(cp: Any, ready: Sequence[_Ready], found: Beside) -> None:
    flushing = 2 * int(cp.cuda.Device().attributes["L2CacheSize"])
    overwrite = cp.empty(flushing, cp.uint8)
    begin, end = cp.cuda.Event(), cp.cuda.Event()

    def batch(at: int) -> float:
        one = ready[at]
        for byte in (0, 255):
            cp.cuda.runtime.memsetAsync(overwrite.data.ptr, byte, flushing, one.stream.ptr)
        begin.record(one.stream)
        one.launch()
        end.record(one.stream)
        end.synchronize()
        return float(cp.cuda.get_elapsed_time(begin, end)) / 1e3 / one.sets

    warm(lambda: batch(len(ready) - 1))
    for one, seconds in zip(ready, sample(len(ready), batch, _SAMPLING), strict=True):
        found.samples[one.name] = tuple(seconds)


def _told(problem: Exception) -> str:
    lines = str(problem).strip().splitlines() or [""]
    return f"{type(problem).__name__}: {lines[0][:200]}"
