"""Counters by source line, as a table: what a line executes and how it meets memory."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from optiml_magic.model.counters import KernelCounters, MemoryCounters
from optiml_magic.model.measurement import Measurement
from optiml_magic.reports.quantities import count

HEAD = ("line", "instructions", "machine code", "lanes", "accesses")


@dataclass(frozen=True)
class LineRow:
    """One line of one kernel; ``accesses`` says how each memory access of the line fares."""

    kernel: str
    line: int
    instructions: int  # of warps
    machine: int | None
    lanes: float  # active, of 32
    accesses: str


def line_rows(measured: Measurement) -> list[LineRow]:
    """Of every line that executed anything, in the order of the text; line 0 is left out."""
    return [row for kernel in measured.kernels for row in _rows(kernel)]


def lines(measured: Measurement) -> list[str]:
    """The table as plain text; nothing where no counters say which line they are of."""
    found = cells(measured)
    if not found:
        return []
    rows = [HEAD, *found]
    widths = [max(len(row[at]) for row in rows) for at in range(len(HEAD) - 1)]
    return [
        "  ".join([*(c.rjust(w) for c, w in zip(row, widths, strict=False)), row[-1]]).rstrip()
        for row in rows
    ]


def cells(measured: Measurement) -> list[tuple[str, ...]]:
    """What stands in each row of the table below ``HEAD``."""
    return [_cells(row) for row in line_rows(measured)]


def _cells(row: LineRow) -> tuple[str, ...]:
    machine = "" if row.machine is None else count(row.machine)
    return str(row.line), count(row.instructions), machine, f"{row.lanes:.1f}", row.accesses


def _rows(kernel: KernelCounters) -> Iterable[LineRow]:
    for line in kernel.lines:
        if line.line and line.warp_instructions:
            yield LineRow(
                kernel.kernel,
                line.line,
                line.warp_instructions,
                line.machine_instructions,
                line.active_lanes,
                "; ".join(accesses(m for m in kernel.memory if m.line == line.line)),
            )


def accesses(memory: Iterable[MemoryCounters]) -> Iterable[str]:
    groups: dict[tuple[str, str], list[MemoryCounters]] = {}
    for m in memory:
        groups.setdefault((m.space, m.access), []).append(m)
    for (space, access), sites in groups.items():
        requests = sum(m.requests for m in sites)
        what = "wavefronts" if space == "shared" else "sectors"
        units = sum(m.wavefronts if space == "shared" else m.sectors for m in sites)
        ideal = sum(m.ideal for m in sites)
        text = f"{space} {access}: {units / requests:.3g} {what} a request"
        if units > ideal:
            text += f", {ideal / requests:.3g} would do"
        turns = sum(m.contention for m in sites)
        yield text + (f", {turns / requests:.3g} turns at one address" if turns else "")
