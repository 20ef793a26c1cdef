"""Scalar loads where vectors fit: contiguous lanes that fetch at most four bytes each.

A warp that asks for 128 bytes at a time needs four times the instructions of one that asks for 512,
and has a quarter of the bytes on their way. Source: NVIDIA's technical blog, "Increase Performance
with Vectorized Memory Access".
"""

from __future__ import annotations

from collections.abc import Iterator

from optiml_magic.findings.base import by_line
from optiml_magic.findings.subject import Subject, counted, of_name
from optiml_magic.model.counters import KernelCounters, MemoryCounters
from optiml_magic.model.finding import Action, Evidence, Finding, RooflineClass

_WIDE = 8  # bytes a lane from which an access is no scalar
_TRAFFIC = 0.9  # of all global sectors that such accesses must carry
_ENOUGH_WAVES = 8.0  # a quarter of the threads would still fill the chip
_BUSY = 12.0  # executed instructions per access: with more, the access is not what it is about
_ACCESSES = "l1tex__t_requests_pipe_lsu_mem_global_op_ld.sum"


class ScalarAccess:
    """Fires once for a kernel, on the access with most sectors."""

    name = "scalar_access"
    classes: frozenset[RooflineClass] = frozenset({"memory", "latency", "mixed"})
    metrics: tuple[str, ...] = (_ACCESSES,)

    def diagnose(self, subject: Subject) -> Iterator[Finding]:
        waves = subject.measured.get("launch__waves_per_multiprocessor")
        if waves is None or waves < _ENOUGH_WAVES:
            return
        for _, counts in counted(subject):
            found = _scalars(counts)
            if found and not _shares(counts):
                yield _finding(subject, found)


def _scalars(counts: KernelCounters) -> list[MemoryCounters]:
    """Contiguous accesses of whole warps, where they carry nearly all of the traffic."""
    accesses = by_line(counts.memory, "global")
    found = [
        m
        for m in accesses
        if 0 < m.width < _WIDE
        and m.access != "atomic"
        and m.sectors == m.ideal
        and m.lanes >= 31 * m.requests
        and 32 * m.sectors <= 1.1 * m.lanes * m.width
    ]
    carried = sum(m.sectors for m in found) >= _TRAFFIC * sum(m.sectors for m in accesses)
    requests = sum(m.requests for m in found)
    return found if carried and counts.warp_instructions <= _BUSY * requests else []


def _shares(counts: KernelCounters) -> bool:
    """Threads that work together on shared memory have their own reasons for the layout."""
    return counts.barriers > 0 or any(m.space == "shared" for m in counts.memory)


def _finding(subject: Subject, found: list[MemoryCounters]) -> Finding:
    most = max(found, key=lambda m: (m.access == "load", m.sectors))
    where = of_name(most.line, subject.lines.array(most.line, most.access, "global"))
    times = 16 // most.width
    return Finding(
        tool=ScalarAccess.name,
        severity="note" if most.width == 4 else "warning",
        cause=f"The {most.access} on {where} moves {most.width} bytes a lane, contiguously; one "
        f"instruction could move 16.",
        evidence=(
            Evidence(
                "bytes_per_lane", most.width, _WIDE, "byte/lane", subject.counted_by, most.line
            ),
        ),
        actions=(
            Action(
                f"Let each thread handle {times} neighbouring elements through a 16-byte vector "
                "type, and what is left one by one.",
                "vectorise_map",
                metric=_ACCESSES,
                factor=(1.5, float(times)),
            ),
        ),
        gain=(1.0, 1.3 if most.width == 4 else 2.0),
        reason="fewer instructions for the same bytes, and more of them on their way",
    )
