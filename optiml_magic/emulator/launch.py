"""One grid on this machine's threads: set up the records, run the workers, read the outcome."""

from __future__ import annotations

import ctypes
import threading
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from optiml_magic.emulator.faults import KINDS, Fault
from optiml_magic.emulator.layout import CONTROL
from optiml_magic.emulator.memory import Bytes, Memory
from optiml_magic.emulator.printing import printed
from optiml_magic.emulator.records import Fields, Kernel, Worker, table_of
from optiml_magic.emulator.tally import Raw, tally
from optiml_magic.model.counters import KernelCounters

if TYPE_CHECKING:
    from optiml_magic.emulator.jit import Native

_MAX_BLOCK, _MAX_GRID = (1024, 1024, 64), (2**31 - 1, 65535, 65535)
_MAX_THREADS = 1024
_MAX_SHARED = 227 * 1024  # bytes; the most that any chip of sm_75 to sm_90 gives a block


@dataclass(frozen=True)
class Limits:
    """``instructions``: thread instructions that one host thread may spend in loops.

    ``reverse`` gives the warps of a block their turns from the last to the first: a kernel without
    races cannot tell.
    """

    instructions: int
    threads: int
    reverse: bool = False


@dataclass(frozen=True)
class Run:
    """A fault, or the counters if they were asked for; and what the kernel printed until then."""

    fault: Fault | None
    counters: KernelCounters | None
    printed: str = ""


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
    table, sectors = table_of(areas)
    total = grid[0] * grid[1] * grid[2]
    control = Fields(CONTROL, total=total)
    written = np.zeros(sectors if count else 1, np.uint8)
    workers = [
        Worker(kernel, grid, block, dynamic_shared, limits.instructions, sectors if count else 0)
        for _ in range(max(1, min(limits.threads, total)))
    ]
    for worker in workers:
        worker.record.set(
            params=packed.ctypes.data,
            table=table.ctypes.data,
            table_count=len(areas),
            control=control.address,
            stop=control.address + CONTROL.offset["stop"],
            count=int(count),
            reverse=int(limits.reverse),
            written=written.ctypes.data,
        )
    _run(native, kernel, workers, control)
    faults = [w for w in workers if w.record.get("fault_kind")]
    if faults:
        first = min(faults, key=lambda w: w.record.get("fault_block"))
        return Run(_fault(first.record, grid, block, areas), None, _printed(workers, areas))
    counters = _counters(kernel, workers, written) if count else None
    return Run(None, counters, _printed(workers, areas))


def _printed(workers: Sequence[Worker], areas: Sequence[tuple[int, Bytes]]) -> str:
    buffers = [(w.printed, w.record.get("printed_bytes")) for w in workers if w.printed.nbytes]
    text = printed(buffers, lambda address: _text_at(areas, address)) if buffers else ""
    lost = sum(w.record.get("printed_lost") for w in workers)
    return text + (f"[{lost} more calls of printf had no room]\n" if lost else "")


def _counters(kernel: Kernel, workers: Sequence[Worker], written: Bytes) -> KernelCounters:
    """What all workers counted together."""
    raw = Raw(
        blocks=np.sum([w.blocks for w in workers], axis=0),
        idle=np.sum([w.idle for w in workers], axis=0),
        sites=np.sum([w.sites for w in workers], axis=0),
        read=int(np.count_nonzero(_any([w.stamps for w in workers]))),
        written=int(np.count_nonzero(written)),
        read_per_block=sum(w.record.get("read_per_block") for w in workers),
        memory_warps=sum(w.record.get("memory_warps") for w in workers),
    )
    return tally(kernel.name, kernel.lowered, raw)


def _any(stamps: list[NDArray[np.uint32]]) -> NDArray[np.uint32]:
    """Where any worker left a stamp; overwrites the first."""
    merged = stamps[0]
    for other in stamps[1:]:
        np.bitwise_or(merged, other, out=merged)
    return merged


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


def _run(native: Native, kernel: Kernel, workers: Sequence[Worker], control: Fields) -> None:
    """Ctypes releases the interpreter's lock, so the workers run side by side."""
    prototype = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_void_p)
    work = prototype(native.address("om_worker"))
    code = native.address(kernel.symbol)
    threads = [
        threading.Thread(target=work, args=(worker.record.address, code), daemon=True)
        for worker in workers
    ]
    for thread in threads:
        thread.start()
    try:
        for thread in threads:
            thread.join()
    except BaseException:
        control.set(stop=1)
        for thread in threads:
            thread.join()
        raise


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
        message += f": {_text_at(areas, address or 0)}"
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
            return text
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
