"""Reuse missed by the L2: the same bytes come from device memory more than once.

Blocks, or loops of one thread, that use the same data are too far apart in time, so that what one
fetched is gone when the other asks. Source: CUDA C++ Programming Guide, "L2 Cache"; CUTLASS
documentation, "threadblock rasterization".
"""

from __future__ import annotations

from collections.abc import Iterator

from optiml_magic.findings.base import by_line, saved
from optiml_magic.findings.subject import Subject, counted, of_name
from optiml_magic.model.finding import Action, Evidence, Finding, RooflineClass

_RATIO = 1.5  # bytes read over the bytes that are there to be read
_READ = "dram__bytes_read.sum"


class CacheReuse:
    """Fires once, on the load with most sectors."""

    name = "cache_reuse"
    classes: frozenset[RooflineClass] = frozenset({"memory", "latency", "mixed"})
    metrics: tuple[str, ...] = (_READ, "lts__t_sector_hit_rate.pct")

    def diagnose(self, subject: Subject) -> Iterator[Finding]:
        read = subject.measured.get(_READ)
        least = _least(subject)
        # What fits into the L2 is not read twice but by accident, and then there is little of it.
        if read is None or not least or read < _RATIO * least or read < subject.chip.l2_bytes:
            return
        loads = [
            m
            for _, counts in counted(subject)
            for m in by_line(counts.memory, "global")
            if m.access == "load"
        ]
        most = max(loads, key=lambda m: m.sectors, default=None)
        line = most.line if most else 0
        named = of_name(line, subject.lines.array(line, "load", "global"))
        where = f" (the load on {named} most of all)"
        again = 1 - least / read
        yield Finding(
            tool=self.name,
            severity="critical" if read > 3 * least else "warning",
            cause=f"Device memory is read {read / least:.1f} times over{where if line else ''}: "
            "those that use the same data are too far apart for the caches to keep it.",
            evidence=(
                Evidence(
                    _READ,
                    read,
                    _RATIO * least,
                    "byte",
                    "modelled" if subject.counted_by == "emulated" else "ncu",
                    line,
                ),
            ),
            actions=(
                Action(
                    "Keep what several loops of a thread read in registers.",
                    metric=_READ,
                    factor=(1.2, read / least),
                    rewrite="read_once",
                ),
                Action(
                    "Handle elements that share data in one thread or block.",
                    metric=_READ,
                    factor=(1.2, read / least),
                ),
                Action(
                    "Order the blocks so that those which share data are neighbours.",
                    metric=_READ,
                    factor=(1.2, read / least),
                ),
            ),
            gain=(1.0, saved(again * (subject.share("dram") or 1.0))),
            reason="what is read again takes its share of the memory's time",
        )


def _least(subject: Subject) -> float:
    """Bytes there are to be read: counted, else those of all arrays that are read."""
    unique = [counts.read_sectors_unique or 0 for _, counts in counted(subject)]
    if unique and all(unique):
        return 32.0 * sum(unique)
    return float(subject.read_bytes)
