"""Uncoalesced global access: a warp's lanes touch more 32-byte sectors than their bytes need.

Source: CUDA C++ Best Practices Guide, "Coalesced Access to Global Memory".
"""

from __future__ import annotations

from collections.abc import Iterator

from optiml_magic.findings.base import WORTH, by_line, saved, severity
from optiml_magic.findings.subject import Subject, counted, of_name
from optiml_magic.model.counters import Access, MemoryCounters
from optiml_magic.model.finding import Action, Evidence, Finding, RooflineClass

RATIO = 1.5  # sectors over ideal from which an access counts as uncoalesced
_MORE = 2.0  # sectors of a request beyond the ideal: a warp over two short rows is no fault
_SHARE = 0.10  # of all global sectors, below which it is not worth a word
_SHORT: dict[Access, str] = {"load": "ld", "store": "st", "atomic": "atom"}
_ONE_WAY: tuple[Access, ...] = ("load", "store")
_STEPS = range(2, 17)  # elements from lane to lane: every second to sixteenth number is a field
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
    for access in _ONE_WAY:
        short = _SHORT[access]
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
            actions=_actions(subject, 0, access, most),
            gain=(1.0, most),
            reason=_WHY,
        )


def _finding(subject: Subject, access: MemoryCounters, gain: float) -> Finding:
    per_request = access.sectors / access.requests
    ideal = access.ideal / access.requests
    short = _SHORT[access.access]
    metric = f"l1tex__average_t_sectors_per_request_pipe_lsu_mem_global_op_{short}"
    where = of_name(access.line, subject.lines.array(access.line, access.access, "global"))
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
        actions=_actions(subject, access.line, access.access, per_request / ideal),
        gain=(1.0, gain),
        reason=_WHY,
    )


def _actions(subject: Subject, line: int, access: Access, most: float) -> tuple[Action, ...]:
    """What helps, first what the accesses of the line suggest."""
    sites = subject.lines.sites(line, access, "global")
    along = ("Let threadIdx.x run along the contiguous dimension.", "coalesce_mapping")
    warps = ("Give each row to a warp, whose lanes share the loop over it.", "row_to_lanes")
    tile = ("Stage the data through a padded tile in shared memory.", "transpose_tile")
    records = (
        "Let the lanes of a warp bring and store together what each of them has for itself.",
        "scalarise_array",
    )
    fields = ("Keep each field in an array of its own.", "")
    held = ("Hold the list that each round searches in registers, where it is short.", "hold_list")
    order = ("Order the work by the index, so that neighbouring lanes meet neighbours.", "")
    if any(site.gathers for site in sites):
        advice = [order, tile, along]
    elif any(site.of_struct or site.apart in _STEPS for site in sites):
        advice = [fields, records, tile, along]
    else:
        advice = [along, warps, tile, fields]
    if any(site.is_searched for site in sites):
        advice.insert(0, held)
    in_loop = [site.loop is not None for site in sites]
    if not any(in_loop or (bool(reading.axes) for reading in subject.readings)):
        advice = [one for one in advice if one is not warps]
    metric = f"l1tex__t_sectors_pipe_lsu_mem_global_op_{_SHORT[access]}.sum"
    return tuple(Action(what, rule, metric, factor=(1.1, most)) for what, rule in advice)
