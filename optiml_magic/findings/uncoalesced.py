"""Uncoalesced global access: a warp's lanes touch more 32-byte sectors than their bytes need.

Source: CUDA C++ Best Practices Guide, "Coalesced Access to Global Memory".
"""

from __future__ import annotations

from collections.abc import Iterator

from optiml_magic.findings.base import WORTH, by_line, saved, severity
from optiml_magic.findings.subject import Subject, counted, of_name
from optiml_magic.model.counters import MemoryCounters
from optiml_magic.model.finding import Action, Evidence, Finding, RooflineClass

RATIO = 1.5  # sectors over ideal from which an access counts as uncoalesced
_MORE = 2.0  # sectors of a request beyond the ideal: a warp over two short rows is no fault
_SHARE = 0.10  # of all global sectors, below which it is not worth a word
_SHORT = {"load": "ld", "store": "st", "atomic": "atom"}
_WHY = "sectors that nobody asked for take their share of the traffic"


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
        if not subject.measured.kernels:
            yield from _from_ratios(subject)
        for _, counts in counted(subject):
            accesses = by_line(counts.memory, "global")
            total = sum(m.sectors for m in accesses)
            for access in accesses:
                more = access.sectors - access.ideal
                wasteful = more > (RATIO - 1) * access.ideal and more >= _MORE * access.requests
                gain = saved(more / total * subject.part("l2", "dram", "lsu", "latency"))
                if wasteful and access.sectors > _SHARE * total and gain >= WORTH:
                    yield _finding(subject, access, gain)


def _from_ratios(subject: Subject) -> Iterator[Finding]:
    """Where counters came for the kernel as a whole: how much of each sector was asked for."""
    for access, short in (("load", "ld"), ("store", "st")):
        metric = f"smsp__sass_average_data_bytes_per_sector_mem_global_op_{short}.pct"
        used = subject.measured.get(metric)
        if used is None or used >= 100 / RATIO:
            continue
        most = 100 / max(used, 5.0)
        yield Finding(
            tool=UncoalescedAccess.name,
            severity="critical" if used < 50 else "warning",
            cause=f"Only {used:.0f} % of the bytes of each sector that global {access}s touch were "
            "asked for: neighbouring lanes are far apart in memory.",
            evidence=(Evidence(metric, used, 100 / RATIO, "%", "ncu"),),
            actions=_actions(short, most),
            gain=(1.0, most),
            reason=_WHY,
        )


def _finding(subject: Subject, access: MemoryCounters, gain: float) -> Finding:
    per_request = access.sectors / access.requests
    ideal = access.ideal / access.requests
    short = _SHORT[access.access]
    metric = f"l1tex__average_t_sectors_per_request_pipe_lsu_mem_global_op_{short}"
    where = of_name(access.line, subject.array(access.line, access.access))
    return Finding(
        tool=UncoalescedAccess.name,
        severity=severity(gain),
        cause=f"The {access.access} on {where} touches {per_request:.1f} sectors a "
        f"request where {ideal:.1f} would do: neighbouring lanes are far apart in memory.",
        evidence=(
            Evidence(
                f"{metric}.ratio",
                per_request,
                RATIO * ideal,
                "sector/request",
                subject.counted_by,
                access.line,
            ),
        ),
        actions=_actions(short, per_request / ideal),
        gain=(1.0, gain),
        reason=_WHY,
    )


def _actions(short: str, most: float) -> tuple[Action, ...]:
    sectors = f"l1tex__t_sectors_pipe_lsu_mem_global_op_{short}.sum"
    factor = (1.1, most)
    return (
        Action(
            "Let threadIdx.x run along the contiguous dimension.",
            "coalesce_mapping",
            metric=sectors,
            factor=factor,
        ),
        Action(
            "Give each row to a warp, whose lanes share the loop over it.",
            "warp_per_item",
            metric=sectors,
            factor=factor,
        ),
        Action(
            "Stage the data through a padded tile in shared memory.",
            "shared_tile",
            metric=sectors,
            factor=factor,
        ),
        Action("Keep each field in an array of its own.", metric=sectors, factor=factor),
    )
