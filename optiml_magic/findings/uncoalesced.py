"""Uncoalesced global access: a warp's lanes touch more 32-byte sectors than their bytes need.

Source: CUDA C++ Best Practices Guide, "Coalesced Access to Global Memory".
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from optiml_magic.findings.base import WORTH, by_line, saved, severity
from optiml_magic.findings.subject import Subject, counted, of_name
from optiml_magic.model.counters import MemoryCounters
from optiml_magic.model.finding import Action, Evidence, Finding, RooflineClass

RATIO = 1.5  # sectors over ideal from which an access counts as uncoalesced
_MORE = 2.0  # sectors of a request beyond the ideal: a warp over two short rows is no fault
_SHARE = 0.10  # of all global sectors, below which it is not worth a word
_SHORT = {"load": "ld", "store": "st", "atomic": "atom"}
# Of one element of a struct, or of every second to sixteenth number.
_FIELD = re.compile(
    r"\]\s*(?:\.|->)\s*\w|\[[^\[\]]*(?:\b(?:[2-9]|1[0-6])\s*\*|\*\s*(?:[2-9]|1[0-6])\b)[^\[\]]*\]"
)
_GATHER = re.compile(r"\w\s*\[[^\]]*\w\s*\[")  # an index that is read from memory
_LOOP = r"\b(?:for|while)\b"
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
            actions=_actions(subject, 0, short, most),
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
        actions=_actions(subject, access.line, short, per_request / ideal),
        gain=(1.0, gain),
        reason=_WHY,
    )


def _actions(subject: Subject, line: int, short: str, most: float) -> tuple[Action, ...]:
    """What helps, first what the text of the line suggests."""
    text = subject.text(line)
    along = ("Let threadIdx.x run along the contiguous dimension.", "coalesce_mapping")
    warps = ("Give each row to a warp, whose lanes share the loop over it.", "warp_per_item")
    tile = ("Stage the data through a padded tile in shared memory.", "shared_tile")
    fields = ("Keep each field in an array of its own.", "")
    order = ("Order the work by the index, so that neighbouring lanes meet neighbours.", "")
    if _GATHER.search(text):
        advice = [order, tile, along]
    elif _FIELD.search(text):
        advice = [fields, tile, along]
    else:
        advice = [along, warps, tile, fields]
    if not subject.line_of(_LOOP):
        advice = [one for one in advice if one is not warps]
    metric = f"l1tex__t_sectors_pipe_lsu_mem_global_op_{short}.sum"
    return tuple(Action(what, rule, metric, factor=(1.1, most)) for what, rule in advice)
