"""Uncoalesced global access: a warp's lanes touch more 32-byte sectors than their bytes need.

Source: CUDA C++ Best Practices Guide, "Coalesced Access to Global Memory".
"""

from __future__ import annotations

from collections.abc import Iterator

from optiml_magic.findings.base import by_line
from optiml_magic.findings.subject import Subject
from optiml_magic.model.counters import MemoryCounters
from optiml_magic.model.finding import Action, Evidence, Finding, RooflineClass
from optiml_magic.model.measurement import Measurement

_RATIO = 1.5  # sectors over ideal from which an access is worth a word
_SHARE = 0.10  # of all global sectors, below which it is not
_ACTIONS = (
    Action("Let threadIdx.x run along the contiguous dimension.", "coalesce_mapping"),
    Action("Stage the data through a padded tile in shared memory.", "shared_tile"),
)
_SHORT = {"load": "ld", "store": "st", "atomic": "atom"}


class UncoalescedAccess:
    """Fires per memory instruction, on its line."""

    name = "uncoalesced_access"
    classes: frozenset[RooflineClass] = frozenset(
        {"memory", "latency", "mixed", "compute", "launch"}
    )
    metrics: tuple[str, ...] = tuple(
        f"smsp__sass_average_data_bytes_per_sector_mem_global_op_{op}.pct" for op in ("ld", "st")
    )

    def diagnose(self, subject: Subject) -> Iterator[Finding]:
        measured = subject.measured
        if not measured.kernels:
            yield from _from_ratios(measured)
        for kernel in measured.kernels:
            accesses = by_line(kernel.memory, "global")
            total = sum(m.sectors for m in accesses)
            for access in accesses:
                wasteful = access.sectors > _RATIO * access.ideal
                if wasteful and access.sectors > _SHARE * total:
                    yield _finding(access, total)


def _from_ratios(measured: Measurement) -> Iterator[Finding]:
    """Where counters came for the kernel as a whole: how much of each sector was asked for."""
    for access, short in (("load", "ld"), ("store", "st")):
        metric = f"smsp__sass_average_data_bytes_per_sector_mem_global_op_{short}.pct"
        used = measured.get(metric)
        if used is None or used >= 100 / _RATIO:
            continue
        yield Finding(
            tool=UncoalescedAccess.name,
            severity="critical" if used < 50 else "warning",
            cause=f"Only {used:.0f} % of the bytes of each sector that global {access}s touch were "
            "asked for: neighbouring lanes are far apart in memory.",
            evidence=(Evidence(metric, used, 100 / _RATIO, "%", "ncu"),),
            actions=_ACTIONS,
            gain=(1.0, 100 / max(used, 5.0)),
        )


def _finding(access: MemoryCounters, total: int) -> Finding:
    per_request = access.sectors / access.requests
    ideal = access.ideal / access.requests
    excess = (access.sectors - access.ideal) / total
    metric = f"l1tex__average_t_sectors_per_request_pipe_lsu_mem_global_op_{_SHORT[access.access]}"
    return Finding(
        tool=UncoalescedAccess.name,
        severity="critical" if excess > 0.5 else "warning",
        cause=f"The {access.access} on line {access.line} touches {per_request:.1f} sectors a "
        f"request where {ideal:.1f} would do: neighbouring lanes are far apart in memory.",
        evidence=(
            Evidence(
                f"{metric}.ratio",
                per_request,
                _RATIO * ideal,
                "sector/request",
                "emulated",
                access.line,
            ),
        ),
        actions=_ACTIONS,
        gain=(1.0, 1.0 / max(1.0 - excess, 0.05)),
    )
