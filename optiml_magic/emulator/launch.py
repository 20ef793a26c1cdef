"""One grid on this machine's threads: set up the records, run the crew, read the outcome."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from optiml_magic.emulator.caches import ROOM, misses
from optiml_magic.emulator.crew import Blocks, Crew
from optiml_magic.emulator.faults import KINDS, Fault
from optiml_magic.emulator.layout import ALLOCATION, GLOBAL_BASE, WINDOW
from optiml_magic.emulator.memory import Bytes, Memory
from optiml_magic.emulator.orders import Order, blocks, stride
from optiml_magic.emulator.places import Area, element, holding, miss
from optiml_magic.emulator.printing import printed
from optiml_magic.emulator.records import Fields, Kernel, Worker, table_of
from optiml_magic.emulator.sampling import FEW, MOST, Stopped, count_some
from optiml_magic.emulator.shadow import MOST_BYTES, Geometry, Shadow, ended, shadow_bytes
from optiml_magic.emulator.tally import tally
from optiml_magic.model.counters import KernelCounters
from optiml_magic.model.hazard import Hazard
from optiml_magic.model.verdict import Writer

if TYPE_CHECKING:
    from optiml_magic.emulator.jit import Native

_MAX_BLOCK, _MAX_GRID = (1024, 1024, 64), (2**31 - 1, 65535, 65535)
_MAX_THREADS = 1024
_MAX_SHARED = 227 * 1024  # bytes; the most that any chip of sm_75 to sm_90 gives a block
_MAX_LOCAL = 512 << 10  # bytes of a thread, on every chip


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

    ``order`` is that of the blocks, and of the warps in each: a kernel without races cannot tell.
    A number seeds a random one. ``sample`` is for launches that are counted, and so is
    ``l2_bytes``, the cache that ``dram_read_sectors`` assumes (0: no figure).
    """

    instructions: int
    threads: int
    order: Order = "forward"
    sample: Sample | None = None
    l2_bytes: int = 0


@dataclass(frozen=True)
class Run:
    """A fault, or the counters if they were asked for; and what the kernel printed until then.

    Of a checked module the hazards as well, and who wrote the bytes at an address last.
    """

    fault: Fault | None
    counters: KernelCounters | None
    printed: str = ""
    hazards: tuple[Hazard, ...] = ()
    writer: Callable[[int, int], Writer | None] | None = None


def launch(  # noqa: PLR0913  # a launch has this many parts
    kernel: Kernel,
    native: Native,
    variables: Sequence[Area],
    grid: tuple[int, int, int],
    block: tuple[int, int, int],
    *,
    dynamic_shared: int,
    parameters: bytes,
    memory: Memory,
    limits: Limits,
    count: bool,
) -> Run:
    """See ``Module.launch``. ``variables`` are the module's own."""
    if complaint := _invalid(kernel, grid, block, dynamic_shared):
        return Run(Fault("invalid_launch", complaint), None)
    packed = np.frombuffer(parameters, np.uint8).copy()
    arrays = [
        *variables,
        *(Area(a.address, a.bytes.nbytes, a.name, a.itemsize, a.bytes) for a in memory.allocations),
    ]
    areas = [(a.address, a.data) for a in arrays if a.data is not None]
    areas.append((kernel.parameter_address, packed))
    checked = kernel.lowered.watch is not None
    if checked and (needed := shadow_bytes(kernel, table_of(areas)[1])) > MOST_BYTES:
        text = f"the checks of these arrays need {needed >> 20} MB; make them smaller"
        return Run(Fault("too_large", text), None)
    total = grid[0] * grid[1] * grid[2]
    workers = [
        Worker(kernel, grid, block, dynamic_shared, limits.instructions)
        for _ in range(1 if checked else max(1, min(limits.threads, total)))
    ]
    turns = {"block": total, "warp": workers[0].record.get("warps")}
    steps = {name: stride(limits.order, count) for name, count in turns.items()}
    for worker in workers:
        worker.record.set(warp_step=steps["warp"][0], warp_first=steps["warp"][1])
    crew = Crew(native, kernel, workers, packed, areas, count=count)
    if count and 32 * crew.sectors > limits.l2_bytes > 0:
        for worker in workers:
            worker.keep_log(ROOM // len(workers))
    shadow = None
    if checked:
        shadow = Shadow(kernel, workers[0], total, crew.sectors, _undefined(memory, crew.table))
    run = Geometry(grid, block, steps["block"], arrays, kernel.shared, workers[0].record)
    order = blocks(total, *steps["block"])
    counters: KernelCounters | None = None
    try:
        if count:
            counters = _counted(crew, kernel, grid, limits, order)
        else:
            _run_whole(crew, total, order, count=False)
    except Stopped as stopped:
        waiting = shadow.waiting() if shadow else ()
        fault = _fault(stopped.fault, kernel, run, waiting)
        found = (*shadow.hazards(run), ended(fault, waiting)) if shadow else ()
        return Run(fault, None, _printed(workers, arrays), found)
    if counters is not None:
        counters = _with_dram(counters, native, workers, crew.sectors, limits.l2_bytes)
    hazards = shadow.hazards(run) if shadow else ()
    if shadow:
        shadow.keep()
    writer = partial(shadow.writer, run, crew.table) if shadow else None
    return Run(None, counters, _printed(workers, arrays), hazards, writer)


def _undefined(memory: Memory, table: Bytes) -> list[tuple[int, Bytes]]:
    """The first byte, among those of all allocations, and the validity of what nobody filled."""
    rows = table.view(np.int64).reshape(-1, ALLOCATION.size // 8)
    first = {int(row[0]): 32 * int(row[3]) for row in rows}
    return [(first[a.address], a.valid) for a in memory.allocations if a.valid is not None]


def _printed(workers: Sequence[Worker], areas: Sequence[Area]) -> str:
    buffers = [(w.printed, w.record.get("printed_bytes")) for w in workers if w.printed.nbytes]
    text = printed(buffers, lambda address: _text_at(areas, address)) if buffers else ""
    lost = sum(w.record.get("printed_lost") for w in workers)
    return text + (f"[{lost} more calls of printf had no room]\n" if lost else "")


def _with_dram(
    counters: KernelCounters, native: Native, workers: Sequence[Worker], sectors: int, l2: int
) -> KernelCounters:
    """The model of the L2, where all blocks ran in its sight or their data fit into it."""
    touched = (counters.read_sectors_unique or 0) + (counters.write_sectors_unique or 0)
    touched = min(touched, sectors)  # what is read and written counts once
    if 32 * touched <= l2:
        return replace(counters, dram_read_sectors=counters.read_sectors_unique)
    if not l2 or counters.sampled:
        return counters
    return replace(counters, dram_read_sectors=misses(native, workers, sectors, l2 // 32))


def _run_whole(crew: Crew, total: int, order: Blocks | None, *, count: bool) -> None:
    fault = crew.run(0, total, order, count=count)
    if fault is not None:
        raise Stopped(fault)


def _counted(
    crew: Crew, kernel: Kernel, grid: tuple[int, int, int], limits: Limits, order: Blocks | None
) -> KernelCounters:
    total = grid[0] * grid[1] * grid[2]
    sample = limits.sample
    if sample and total > FEW and not (sample.complete and total > MOST):
        found = partial(tally, kernel.name, kernel.lowered)
        some = count_some(crew, grid, sample.instructions, found, complete=sample.complete)
        return _with_meetings(some, crew, some.sampled.blocks if some.sampled else total, total)
    _run_whole(crew, total, order, count=True)
    read, written = (int(sectors.sum()) for sectors in crew.touched())
    counters = tally(kernel.name, kernel.lowered, crew.counted(), read, written)
    return _with_meetings(counters, crew, total, total)


def _with_meetings(counters: KernelCounters, crew: Crew, ran: int, total: int) -> KernelCounters:
    met = crew.met(ran, total)
    return replace(counters, atomic_turns=met.turns, atomic_turns_of_a_line=met.of_a_line)


def _invalid(
    kernel: Kernel, grid: tuple[int, int, int], block: tuple[int, int, int], dynamic_shared: int
) -> str:
    """Why a GPU would refuse this launch, or nothing.

    CUDA C++ Guide, "Compute Capabilities"; PTX ISA, "Performance-Tuning Directives".
    """
    for name, size, most in (("grid", grid, _MAX_GRID), ("block", block, _MAX_BLOCK)):
        for axis, extent, limit in zip("xyz", size, most, strict=True):
            if not 1 <= extent <= limit:
                return f"{name}.{axis} is {extent}; it must be between 1 and {limit}"
    threads = block[0] * block[1] * block[2]
    if threads > _MAX_THREADS:
        return f"the block has {threads} threads; at most {_MAX_THREADS} are possible"
    if kernel.most_threads is not None and threads > kernel.most_threads:
        return (
            f"the block has {threads} threads; the kernel's __launch_bounds__ (`.maxntid`) allow "
            f"at most {kernel.most_threads}"
        )
    if kernel.block is not None and block != kernel.block:
        given, wanted = (" x ".join(map(str, extents)) for extents in (block, kernel.block))
        return (
            f"the block is {given}; the kernel's __block_size__ (`.reqntid`) allows {wanted} alone"
        )
    if kernel.local_bytes > _MAX_LOCAL:
        return (
            f"a thread needs {kernel.local_bytes} bytes of local memory; at most {_MAX_LOCAL} are "
            "possible"
        )
    shared = kernel.shared_bytes + dynamic_shared
    if shared > _MAX_SHARED:
        return (
            f"the block needs {shared} bytes of shared memory; at most {_MAX_SHARED} are possible"
        )
    return ""


def _fault(record: Fields, kernel: Kernel, run: Geometry, waiting: Sequence[int]) -> Fault:
    kind = KINDS[record.get("fault_kind")]
    assert kind is not None
    address, line = record.get("fault_address"), record.get("fault_line")
    message = _MESSAGES[kind]
    if kind == "out_of_bounds":
        message = _missed(kernel, run, address, line)
    elif kind == "misaligned":
        place = element(run.areas, address)
        message = message.format(place=f"{place}, address {address:#x}," if place else hex(address))
    elif kind == "assertion":
        message += f": {_text_at(run.areas, address)}"
    elif kind == "deadlock" and waiting:
        line = waiting[-1]
        message += f": those of line {' and '.join(map(str, waiting))}"
    located = kind != "deadlock"
    return Fault(
        kind,
        message,
        line,
        run.block(record.get("fault_block")),
        run.thread(record.get("fault_warp"), record.get("fault_lane")) if located else None,
        address if kind in ("out_of_bounds", "misaligned") else None,
    )


def _missed(kernel: Kernel, run: Geometry, address: int, line: int) -> str:
    """An address beyond every array; an offset of a small space is told by the line's accesses."""
    if address >= GLOBAL_BASE or address < 0:
        return miss(run.areas, address)
    spaces = {space for site in kernel.lowered.sites if site.line == line for space in site.spaces}
    if "global" in spaces and address < WINDOW and len(spaces) == 1:
        return miss(run.areas, address)
    if "shared" in spaces:
        size = run.shared_size
        dynamic = [a for a in run.shared if not a.size]
        known = [a for a in run.shared if a.size] + [
            replace(a, size=size - a.address) for a in dynamic if size > a.address
        ]
        return miss(known, address, window="shared") + f" of {size} bytes"
    return miss([Area(0, kernel.local_bytes, "the stack")], address, window="local")


def _text_at(areas: Sequence[Area], address: int) -> str:
    area = holding(areas, address)
    if area is None or area.data is None:
        return ""
    raw = area.data[address - area.address :].tobytes().split(b"\0")[0]
    return raw.decode(errors="replace")


_MESSAGES = {
    "out_of_bounds": "",
    "misaligned": "{place} is not a multiple of the access width",
    "trap": "the kernel executed a trap",
    "assertion": "an assertion failed",
    "barrier_divergence": "some lanes of a warp reached a barrier while others were elsewhere",
    "deadlock": "warps wait at barriers that the others never reach",
    "instruction_limit": (
        "the kernel ran longer than its instruction budget: a loop without an end, or more work "
        "than is emulated unless OPTIML_INSTRUCTIONS says so"
    ),
    "invalid_launch": "",
    "too_large": "",
}
