"""One grid on this machine's threads: set up the records, run the crew, read the outcome."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from optiml_magic.emulator.caches import ROOM, misses
from optiml_magic.emulator.crew import Crew
from optiml_magic.emulator.faults import KINDS, Fault
from optiml_magic.emulator.memory import Bytes, Memory
from optiml_magic.emulator.records import Fields, Kernel, Worker
from optiml_magic.emulator.sampling import FEW, MOST, Stopped, count_some
from optiml_magic.emulator.tally import tally
from optiml_magic.model.counters import KernelCounters

if TYPE_CHECKING:
    from optiml_magic.emulator.jit import Native

_MAX_BLOCK, _MAX_GRID = (1024, 1024, 64), (2**31 - 1, 65535, 65535)
_MAX_THREADS = 1024
_MAX_SHARED = 227 * 1024  # bytes; the most that any chip of sm_75 to sm_90 gives a block


@dataclass(frozen=True)
class Sample:
    """Count only some blocks of a grid that executes more thread instructions than these.

    ``complete``: run the others as well, uncounted. Otherwise the outputs are left unfinished.
    """

    instructions: int
    complete: bool


@dataclass(frozen=True)
class Limits:
    """``instructions``: thread instructions that one host thread may spend in loops.

    ``reverse`` gives the warps of a block their turns from the last to the first: a kernel without
    races cannot tell. ``sample`` is for launches that are counted,
    and so is ``l2_bytes``, the cache that ``dram_read_sectors`` assumes (0: no figure).
    """

    instructions: int
    threads: int
    reverse: bool = False
    sample: Sample | None = None
    l2_bytes: int = 0


@dataclass(frozen=True)
class Run:
    """A fault, or the counters if they were asked for."""

    fault: Fault | None
    counters: KernelCounters | None


def launch(  # noqa: PLR0913  # a launch has this many parts
    kernel: Kernel,
    native: Native,
    variables: Sequence[tuple[int, Bytes]],
    grid: tuple[int, int, int],
    block: tuple[int, int, int],
    *,
    dynamic_shared: int,
    parameters: bytes,
    memory: Memory,
    limits: Limits,
    count: bool,
) -> Run:
    """See ``Module.launch``. ``variables`` are (address, bytes) of the module's own."""
    if complaint := _invalid(grid, block, kernel.shared_bytes + dynamic_shared):
        return Run(Fault("invalid_launch", complaint), None)
    packed = np.frombuffer(parameters, np.uint8).copy()
    areas = [
        *variables,
        (kernel.parameter_address, packed),
        *((a.address, a.bytes) for a in memory.allocations),
    ]
    total = grid[0] * grid[1] * grid[2]
    workers = [
        Worker(kernel, grid, block, dynamic_shared, limits.instructions)
        for _ in range(max(1, min(limits.threads, total)))
    ]
    for worker in workers:
        worker.record.set(reverse=int(limits.reverse))
    crew = Crew(native, kernel, workers, packed, areas, count=count)
    sectors = int(crew.spans[-1])
    if count and 32 * sectors > limits.l2_bytes > 0:
        for worker in workers:
            worker.keep_log(ROOM // len(workers))
    try:
        if not count:
            _run_whole(crew, total, count=False)
            return Run(None, None)
        counters = _counted(crew, kernel, grid, limits)
    except Stopped as stopped:
        return Run(_fault(stopped.fault, grid, block, areas), None)
    return Run(None, _with_dram(counters, native, workers, sectors, limits.l2_bytes))


def _with_dram(
    counters: KernelCounters, native: Native, workers: Sequence[Worker], sectors: int, l2: int
) -> KernelCounters:
    """The model of the L2, where all blocks ran in its sight or their data fit into it."""
    touched = counters.read_sectors_unique + counters.write_sectors_unique
    if 32 * touched <= l2:
        return replace(counters, dram_read_sectors=counters.read_sectors_unique)
    if not l2 or counters.sampled:
        return counters
    return replace(counters, dram_read_sectors=misses(native, workers, sectors, l2 // 32))


def _run_whole(crew: Crew, total: int, *, count: bool) -> None:
    fault = crew.run(0, total, count=count)
    if fault is not None:
        raise Stopped(fault)


def _counted(
    crew: Crew, kernel: Kernel, grid: tuple[int, int, int], limits: Limits
) -> KernelCounters:
    total = grid[0] * grid[1] * grid[2]
    sample = limits.sample
    if sample and total > FEW and not (sample.complete and total > MOST):
        found = partial(tally, kernel.name, kernel.lowered)
        return count_some(crew, grid, sample.instructions, found, complete=sample.complete)
    _run_whole(crew, total, count=True)
    read, written = (int(sectors.sum()) for sectors in crew.touched())
    return tally(kernel.name, kernel.lowered, crew.counted(), read, written)


def _invalid(grid: tuple[int, int, int], block: tuple[int, int, int], shared: int) -> str:
    """Why a GPU would refuse this launch, or nothing. CUDA C++ Guide, "Compute Capabilities"."""
    for name, size, most in (("grid", grid, _MAX_GRID), ("block", block, _MAX_BLOCK)):
        for axis, extent, limit in zip("xyz", size, most, strict=True):
            if not 1 <= extent <= limit:
                return f"{name}.{axis} is {extent}; it must be between 1 and {limit}"
    threads = block[0] * block[1] * block[2]
    if threads > _MAX_THREADS:
        return f"the block has {threads} threads; at most {_MAX_THREADS} are possible"
    if shared > _MAX_SHARED:
        return (
            f"the block needs {shared} bytes of shared memory; at most {_MAX_SHARED} are possible"
        )
    return ""


def _fault(
    record: Fields,
    grid: tuple[int, int, int],
    block: tuple[int, int, int],
    areas: Sequence[tuple[int, Bytes]],
) -> Fault:
    kind = KINDS[record.get("fault_kind")]
    assert kind is not None
    linear = record.get("fault_warp") * 32 + record.get("fault_lane")
    address: int | None = record.get("fault_address")
    message = _MESSAGES[kind]
    if kind == "assertion":
        message += _text_at(areas, address or 0)
    if kind not in ("out_of_bounds", "misaligned"):
        address = None
    else:
        message = message.format(address=address)
    located = kind != "deadlock"
    return Fault(
        kind,
        message,
        record.get("fault_line"),
        _unravel(record.get("fault_block"), grid),
        _unravel(linear, block) if located else None,
        address,
    )


def _unravel(index: int, extent: tuple[int, int, int]) -> tuple[int, int, int]:
    return index % extent[0], index // extent[0] % extent[1], index // (extent[0] * extent[1])


def _text_at(areas: Sequence[tuple[int, Bytes]], address: int) -> str:
    for start, data in areas:
        if start <= address < start + data.nbytes:
            text = data[address - start :].tobytes().split(b"\0")[0].decode(errors="replace")
            return f": {text}"
    return ""


_MESSAGES = {
    "out_of_bounds": "address {address:#x} is in no allocation",
    "misaligned": "address {address:#x} is not a multiple of the access width",
    "trap": "the kernel executed a trap",
    "assertion": "an assertion failed",
    "barrier_divergence": "some lanes of a warp reached a barrier while others were elsewhere",
    "deadlock": "warps wait at barriers that the others never reach",
    "instruction_limit": "the kernel ran longer than its instruction budget (an endless loop?)",
    "invalid_launch": "",
}
