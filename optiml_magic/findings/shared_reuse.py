"""Missing reuse through shared memory: threads of a block load the same data again and again.

The L1 serves it, but each load takes a slot of the load-store unit and waits for it. Source: CUDA
C++ Best Practices Guide, "Shared Memory in Matrix Multiplication".
"""

from __future__ import annotations

from collections.abc import Iterator

from optiml_magic.findings.base import by_line, saved, severity
from optiml_magic.findings.subject import Subject, counted, of_name
from optiml_magic.findings.uncoalesced import RATIO
from optiml_magic.model.counters import KernelCounters, MemoryCounters
from optiml_magic.model.finding import Action, Evidence, Finding, RooflineClass

_AGAIN = 8.0  # sectors that warps load over those that come to the multiprocessor
_PART = 0.10  # of all executed instructions that these loads must be
_L2 = "lts__t_sectors_srcunit_tex_op_read.sum"
_LOADS = "l1tex__t_requests_pipe_lsu_mem_global_op_ld.sum"
_SECTORS = "l1tex__t_sectors_pipe_lsu_mem_global_op_ld.sum"
_INSTRUCTIONS = "smsp__inst_executed.sum"
_WORD = 32  # elements that one register has a bit of


class SharedReuse:
    """Fires once for a kernel, on the load with most sectors."""

    name = "shared_reuse"
    classes: frozenset[RooflineClass] = frozenset({"memory", "compute", "latency", "mixed"})
    metrics: tuple[str, ...] = (_L2, _LOADS, _SECTORS)

    def diagnose(self, subject: Subject) -> Iterator[Finding]:
        fetched = subject.measured.get(_L2)
        if not fetched:
            return
        for _, counts in counted(subject):
            found = _reused(counts)
            requests = sum(m.requests for m in found)
            if not found or requests < _PART * counts.warp_instructions:
                continue
            again = sum(m.sectors for m in found) / fetched
            if again >= _AGAIN:
                yield _finding(subject, found, again)


def _reused(counts: KernelCounters) -> list[MemoryCounters]:
    """Loads in good order; those that are not have a tool of their own."""
    loads = (m for m in by_line(counts.memory, "global") if m.access == "load")
    return [m for m in loads if m.sectors <= RATIO * m.ideal]


def _finding(subject: Subject, loads: list[MemoryCounters], again: float) -> Finding:
    most = max(loads, key=lambda m: m.sectors)
    where = of_name(most.line, subject.lines.array(most.line, "load", "global"))
    share = max(subject.share("lsu") or 0.0, subject.share("latency") or 0.0)
    gain = saved(0.75 * share) if share else 3.0
    return Finding(
        tool=SharedReuse.name,
        severity=severity(gain),
        cause=f"The load on {where} and its like fetch each sector {again:.0f} times into the same "
        "block: the data is shared by its threads but not kept in shared memory.",
        evidence=(
            Evidence(_SECTORS, again, _AGAIN, "sector/sector", subject.counted_by, most.line),
        ),
        actions=(
            *_particular(subject, most.line, again),
            Action(
                "Stage tiles of the data in shared memory, and let the block work on them.",
                "stage_tile",
                _SECTORS,
                factor=(2.0, again),
            ),
            Action(
                "Let each thread compute several results from what it loaded, in registers.",
                "share_loads",
                _LOADS,
                factor=(1.5, 8.0),
            ),
        ),
        gain=(1.0, gain),
        reason="loads from global memory give way to a few, and to shared memory's shorter wait",
    )


def _particular(subject: Subject, line: int, again: float) -> Iterator[Action]:
    """What helps besides for what the loads of the line are for."""
    sites = subject.lines.sites(line, "load", "global")
    if any(site.is_compared for site in sites):
        yield Action(
            "Compare bits of 32 elements at once, and count those that differ.",
            "bit_planes",
            _INSTRUCTIONS,
            factor=(2.0, _WORD),
        )
    if any(site.begins_anew for site in sites):
        yield Action(
            "Keep the sum from round to round, and add what a range has more than the one before.",
            "grow_window",
            _LOADS,
            factor=(1.5, again),
        )
