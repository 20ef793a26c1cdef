"""The memory of the checks in one launch, and what they found in words."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from optiml_magic.emulator.faults import Fault
from optiml_magic.emulator.layout import (
    ACQUIRED,
    ALLOCATION,
    BARRIERS,
    CELL,
    FLIGHT,
    HAZARD,
    MBARRIER_BYTES,
    MOST_ACQUIRED,
    MOST_FLIGHTS,
    MOST_HAZARDS,
    MOST_MBARRIERS,
    MOST_RELEASES,
    POINT_BITS,
    POINT_SHIFT,
    RELEASE,
    STRONG_SHIFT,
    TIME_SHIFT,
    WATCH,
)
from optiml_magic.emulator.library.checking import (
    ABSENT,
    ACROSS,
    FLYING,
    GONE,
    MISSED,
    OUTSIDER,
    SPLIT,
    UNDEFINED,
    WITHIN_BLOCK,
    WITHIN_WARP,
)
from optiml_magic.emulator.memory import Bytes
from optiml_magic.emulator.places import Area, element
from optiml_magic.emulator.records import Fields, Kernel, Worker
from optiml_magic.emulator.watch import Point
from optiml_magic.model.hazard import Hazard, HazardKind
from optiml_magic.model.verdict import Writer

MOST_BYTES = 8 << 30  # of cells, of which only those that are touched take memory
_SPANS = {"global": "global memory", "shared": "shared memory", "local": "local memory"}


def shadow_bytes(kernel: Kernel, sectors: int) -> int:
    """How many bytes of cells the launch of a checked kernel addresses."""
    watch = kernel.lowered.watch
    assert watch is not None
    return (32 * sectors >> watch.granule) * CELL


class Shadow:
    """Cells and clocks for one worker; blocks run on it one after the other."""

    def __init__(
        self,
        kernel: Kernel,
        worker: Worker,
        blocks: int,
        sectors: int,
        undefined: Sequence[tuple[int, Bytes]],
    ) -> None:
        """``undefined`` are (first byte among all, validity) of allocations that nobody filled."""
        watch = kernel.lowered.watch
        assert watch is not None
        self._watch = watch
        self._undefined = undefined
        shared, warps = worker.record.get("shared_size"), worker.record.get("warps")
        self._global_valid = np.ones(32 * sectors + 16, np.uint8)
        for first, valid in undefined:
            self._global_valid[first : first + valid.nbytes] = valid
        cells: dict[str, NDArray[Any]] = {
            "shared_cells": np.zeros((shared >> watch.granule) * CELL + CELL, np.uint8),
            "shared_valid": np.zeros(shared + 16, np.uint8),
            "global_cells": np.zeros((32 * sectors >> watch.granule) * CELL + CELL, np.uint8),
            "local_valid": np.zeros(32 * warps * kernel.local_bytes + 16, np.uint8),
            "bases": np.zeros(32, np.int64),
            "lanes": np.zeros((32, 32, 32), np.int64),
            "clocks": np.zeros((32, 32), np.int64),
            "fences": np.zeros((32, 32), np.int64),
            "arrivals": np.zeros((BARRIERS, 32), np.int64),
            "arrived": np.zeros(32, np.int32),
            "releases": np.zeros(RELEASE.size * MOST_RELEASES, np.uint8),
            "flights": np.zeros(FLIGHT.size * MOST_FLIGHTS, np.uint8),
            "commits": np.zeros(1024, np.int32),
            "mbarriers": np.zeros(MBARRIER_BYTES * MOST_MBARRIERS, np.uint8),
            "acquired": np.zeros(ACQUIRED.size * MOST_ACQUIRED, np.uint8),
            "origins": np.zeros(len(watch.points) + 2, np.int64),
        }
        self._arrays = cells
        self._starts = np.zeros(blocks + 1, np.int64)
        self._hazards = np.zeros((MOST_HAZARDS, HAZARD.size // 8), np.int64)
        self.record = Fields(
            WATCH,
            time=1,
            granule=watch.granule,
            starts=self._starts.ctypes.data,
            hazards=self._hazards.ctypes.data,
            global_valid=self._global_valid.ctypes.data,
            **{name: array.ctypes.data for name, array in cells.items()},
        )
        worker.record.set(watch=self.record.address)

    def keep(self) -> None:
        """What this launch defined stays defined for the next."""
        for first, valid in self._undefined:
            valid[:] = self._global_valid[first : first + valid.nbytes]

    def writer(self, run: Geometry, table: Bytes, address: int, size: int) -> Writer | None:
        """Who wrote these bytes of global memory last, if any thread did."""
        rows = table.view(np.int64).reshape(-1, ALLOCATION.size // 8)
        first = next(
            (32 * int(sector) + address - int(low) for low, length, _, sector in rows
             if low <= address < low + length), None
        )  # fmt: skip
        if first is None:
            return None
        granule = self._watch.granule
        cells = self._arrays["global_cells"].view(np.int64).reshape(-1, CELL // 8)
        written = cells[first >> granule : (first + size - 1 >> granule) + 1, 0].view(np.uint64)
        last = _Access(int(max(written, key=lambda record: int(record) >> TIME_SHIFT)))
        if not last.point:
            return None
        block, thread = run.block(self._block_of(last.time, run)), run.thread(last.warp, last.lane)
        return Writer(block, thread, self._point(last.point).line)

    def waiting(self) -> tuple[int, ...]:
        """The lines of the barriers that warps arrived at last."""
        points = {int(p) for p in self._arrays["arrived"] if p}
        return tuple(sorted({self._point(p).line for p in points}))

    def hazards(self, run: Geometry) -> tuple[Hazard, ...]:
        """What was found, errors first, each in words."""
        rows = sorted(
            self._hazards[: self.record.get("hazard_count")].tolist(), key=lambda row: -row[0]
        )
        found = [self._hazard(run, *row[:6]) for row in rows]
        # What is read too early is not written yet either: the race alone says what to do.
        racing = {line for h in found if h.kind == "race" for line in h.lines}
        wrong = {line for h in found if h.severity == "error" for line in h.lines}
        kept = [
            h
            for h in found
            if (h.kind != "uninitialised" or h.line not in racing)
            and (h.kind != "exited_lanes" or h.line not in wrong)
        ]
        return tuple(sorted(_merged(kept), key=lambda h: (h.severity, h.lines)))

    def _hazard(  # the words of the record
        self, run: Geometry, kind: int, mine: int, other: int, host: int, block: int, count: int
    ) -> Hazard:
        one, two = _Access(mine), _Access(other)
        here = self._point(one.point)
        there = self._point(two.point)
        foreign = self._block_of(two.time, run) if kind == ACROSS else block
        message, fix, name = _WORDS[kind](_Case(kind, here, there))
        place = run.element(host, max(here.width, there.width) if name == "race" else there.width)
        lines = (there.line, here.line) if kind == UNDEFINED else (here.line, there.line)
        return Hazard(
            kind=name,
            message=f"{message}{f': {place}' if place else ''}",
            fix=fix,
            line=lines[0],
            other_line=lines[1] if lines[1] != lines[0] or name == "race" else 0,
            block=run.block(block),
            thread=run.thread(one.warp, one.lane),
            other_block=run.block(foreign),
            other_thread=run.thread(two.warp, two.lane) if mine != other else None,
            count=count,
            severity="warning" if kind == GONE else "error",
        )

    def _point(self, number: int) -> Point:
        points = self._watch.points
        return points[number - 1] if 0 < number <= len(points) else Point(0, "load", "generic", 0)

    def _block_of(self, time: int, run: Geometry) -> int:
        ran = self._starts[: self.record.get("ordinal") + 1]
        return run.nth(max(int(np.searchsorted(ran, time, side="right")) - 1, 0))


@dataclass(frozen=True)
class Geometry:
    """A launch's extents and arrays, for words."""

    grid: tuple[int, int, int]
    extent: tuple[int, int, int]  # of a block
    order: tuple[int, int]  # step and first of the blocks
    areas: Sequence[Area]
    shared: Sequence[Area]
    worker: Fields

    @property
    def shared_size(self) -> int:
        """Bytes of a block's shared memory."""
        return self.worker.get("shared_size")

    def nth(self, ordinal: int) -> int:
        """The linear index of the block that ran as the n-th."""
        step, first = self.order
        return (ordinal * step + first) % (self.grid[0] * self.grid[1] * self.grid[2])

    def block(self, linear: int) -> tuple[int, int, int]:
        return _unravel(linear, self.grid)

    def thread(self, warp: int, lane: int) -> tuple[int, int, int]:
        return _unravel(32 * warp + lane, self.extent)

    def element(self, host: int, width: int) -> str:
        """The element at a host address, as the text would write it."""
        if not host:
            return ""
        offset = host - self.worker.get("shared")
        if 0 <= offset < self.shared_size:
            return element(self.shared, offset, width)
        for area in self.areas:
            if area.data is not None and 0 <= host - area.data.ctypes.data < area.size:
                return element([area], area.address + host - area.data.ctypes.data, width)
        return ""


class _Access:
    """A record of ``layout``, unpacked."""

    def __init__(self, record: int) -> None:
        record &= (1 << 64) - 1
        self.lane = record & 31
        self.warp = record >> 5 & 31
        self.point = record >> POINT_SHIFT & (1 << POINT_BITS) - 1
        self.strong = record >> STRONG_SHIFT & 3
        self.time = record >> TIME_SHIFT


@dataclass(frozen=True)
class _Case:
    kind: int
    here: Point
    there: Point

    @property
    def lines(self) -> str:
        a, b = sorted((self.here.line, self.there.line))
        return f"line {a}" if a == b else f"lines {a} and {b}"


Words = tuple[str, str, HazardKind]


def _race(case: _Case) -> Words:
    here, there = case.here, case.there
    space = next((p.space for p in (here, there) if p.space != "generic"), "generic")
    who = {WITHIN_WARP: "two threads of one warp", WITHIN_BLOCK: "two warps"}.get(
        case.kind, "two blocks"
    )
    what = " and ".join(sorted({_acts(here), _acts(there)}, reverse=True))
    message = f"{who} {what} the same element of {_SPANS.get(space, 'memory')} in no order"
    both_write = "load" not in (here.action, there.action)
    if case.kind == ACROSS:
        fix = (
            "nothing orders blocks: give each block elements of its own, use atomics, or split the "
            "kernel into two launches; a flag or a ticket needs __threadfence() before it"
        )
    elif "atomic" in (here.action, there.action):
        fix = f"put __syncthreads() between {case.lines}, or make both accesses atomic"
    elif both_write and here.line == there.line:
        fix = "let one thread write, use an atomic, or give each thread an element of its own"
    elif case.kind == WITHIN_WARP:
        fix = (
            f"put __syncwarp() between the load and the store on {case.lines}: "
            "the lanes of a warp may run apart"
        )
    elif space == "global":
        fix = (
            f"put __syncthreads() between {case.lines}, if all threads of the block come there; "
            "else use atomics, also for a value that all of them write alike"
        )
    else:
        fix = f"put __syncthreads() between {case.lines}"
    return message, fix, "race"


def _acts(point: Point) -> str:
    return {"load": "read", "atomic": "update"}.get(point.action, "write")


def _undefined(case: _Case) -> Words:
    use = {
        "branch": "decides a branch",
        "address": "is part of an address",
        "store": "is stored as a result",
        "atomic": "goes into an atomic",
        "vote": "goes into a vote",
    }.get(case.here.action, "is used")
    if case.there.action == "shuffle":
        return (
            f"the shuffle reads a lane that is not there, and the value {use}",
            (
                "name exactly the lanes that are there, and use no value from beyond them: let the "
                "other lanes take part with a neutral value"
            ),
            "invalid_lane",
        )
    if case.here is case.there or case.there.action == "atomic":
        use = "is updated"
    space = _SPANS.get(case.there.space, "memory")
    fix = "write every element before it is read: the rim of a tile, the end of an array"
    if case.there.space == "global":
        fix += "; `#pragma optiml zero(NAME)` clears a buffer before the launches"
    return f"a value of {space} that nothing has written {use}", fix, "uninitialised"


def _absent(case: _Case) -> Words:
    return (
        f"the mask of the {case.here.action} names a lane that is elsewhere",
        "build the mask before the branch with __ballot_sync, or move it out of the branch",
        "invalid_lane",
    )


def _outsider(case: _Case) -> Words:
    return (
        f"a lane executes a {case.here.action} whose mask leaves it out",
        "each lane that executes it must be named in the mask",
        "invalid_lane",
    )


def _flying(_case: _Case) -> Words:
    return (
        "an asynchronous copy may not have arrived when it is read",
        "wait for it (cp.async.wait_group, __pipeline_wait_prior, cg::wait), then pass a barrier",
        "race",
    )


def _gone(case: _Case) -> Words:
    if case.here.action != "barrier":
        return (
            f"the mask of the {case.here.action} names lanes that have exited",
            "legal while nothing is read from them; to be sure, take the mask from __ballot_sync",
            "exited_lanes",
        )
    return (
        "threads had exited before this barrier, which then waits for the others alone",
        (
            "legal from sm_70 on; to be sure, let every thread reach the barrier, and guard the "
            "work instead of returning early"
        ),
        "exited_lanes",
    )


def _split(_case: _Case) -> Words:
    return (
        "the warps of one block wait at different barriers",
        "move __syncthreads() out of the branch, so that all threads of the block reach the same",
        "barrier_divergence",
    )


def _missed(_case: _Case) -> Words:
    return (
        "a thread arrives at an mbarrier though no thread has seen its phase before this one over",
        "wait for each phase, in some thread, before anybody arrives in the next",
        "missed_phase",
    )


_WORDS = {
    WITHIN_WARP: _race,
    WITHIN_BLOCK: _race,
    ACROSS: _race,
    UNDEFINED: _undefined,
    ABSENT: _absent,
    OUTSIDER: _outsider,
    FLYING: _flying,
    GONE: _gone,
    SPLIT: _split,
    MISSED: _missed,
}


_FIXES: dict[str, str] = {
    "out_of_bounds": "compare the index with the size of the array before the access",
    "misaligned": "start at a multiple of the access's width, or use narrower accesses",
    "barrier_divergence": "move the barrier out of the branch: every thread must reach it",
    "deadlock": "let all warps pass the same barriers in the same order, with the same counts",
    "instruction_limit": "see that the loop ends for every thread, or raise the budget",
}


def ended(fault: Fault, waiting: Sequence[int] = ()) -> Hazard:
    """A fault as the last of a run's hazards; ``waiting`` are the lines where warps wait."""
    kind = fault.kind if fault.kind in _FIXES else "trap"
    return Hazard(
        kind=kind,  # type: ignore[arg-type]  # a key of _FIXES
        message=fault.message,
        fix=_FIXES.get(kind, ""),
        line=fault.line,
        other_line=waiting[0] if len(waiting) > 1 else 0,
        block=fault.block,
        thread=fault.thread,
    )


def _merged(found: Sequence[Hazard]) -> list[Hazard]:
    """One for each kind and pair of lines: an unrolled loop has many points on a line.

    Of races the widest comes first, since a barrier of the block orders the lanes of a warp too.
    """
    merged: dict[tuple[object, ...], Hazard] = {}
    for hazard in found:
        words = "" if hazard.kind == "race" else hazard.message.split(":")[0]
        key = (hazard.kind, hazard.severity, hazard.lines, words)
        first = merged.get(key)
        total = hazard.count + (first.count if first else 0)
        merged[key] = replace(first or hazard, count=total)
    return list(merged.values())


def _unravel(index: int, extent: tuple[int, int, int]) -> tuple[int, int, int]:
    return index % extent[0], index // extent[0] % extent[1], index // (extent[0] * extent[1])
