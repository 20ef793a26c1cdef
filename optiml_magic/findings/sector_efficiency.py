"""Low sector efficiency: neighbouring lanes, but each request begins between two sectors.

A warp that reads 128 contiguous bytes touches four sectors from an aligned start and five from any
other. Source: CUDA C++ Best Practices Guide, "Effects of Misaligned Accesses"; the 1.2 is
KernelPro's (arXiv 2606.26453, second-hand).
"""

from __future__ import annotations

from collections.abc import Iterator

from optiml_magic.findings.base import by_line, saved
from optiml_magic.findings.subject import Subject, counted, of_name
from optiml_magic.findings.uncoalesced import RATIO
from optiml_magic.model.counters import MemoryCounters
from optiml_magic.model.finding import Action, Evidence, Finding, RooflineClass

_RATIO = 1.2
_SHARE = 0.10  # of all global sectors that the excess must reach
_LANES = 24  # of a request: with fewer the ideal is a matter of which they are
_SHORT = {"load": "ld", "store": "st"}


class SectorEfficiency:
    """Fires per line whose requests are contiguous but begin between sectors."""

    name = "sector_efficiency"
    classes: frozenset[RooflineClass] = frozenset({"memory", "latency", "mixed"})
    metrics: tuple[str, ...] = ()

    def diagnose(self, subject: Subject) -> Iterator[Finding]:
        for _, counts in counted(subject):
            accesses = by_line(counts.memory, "global")
            total = sum(m.sectors for m in accesses)
            for access in accesses:
                excess = (access.sectors - access.ideal) / total
                contiguous = _RATIO * access.ideal < access.sectors <= RATIO * access.ideal
                full = access.lanes >= _LANES * access.requests
                if contiguous and full and excess > _SHARE and access.access in _SHORT:
                    yield _finding(subject, access, excess)


def _finding(subject: Subject, access: MemoryCounters, excess: float) -> Finding:
    per_request = access.sectors / access.requests
    ideal = access.ideal / access.requests
    where = of_name(access.line, subject.lines.array(access.line, access.access, "global"))
    stem = f"pipe_lsu_mem_global_op_{_SHORT[access.access]}"
    sectors = f"l1tex__t_sectors_{stem}.sum"
    factor = (1.01, access.sectors / access.ideal)
    return Finding(
        tool=SectorEfficiency.name,
        severity="note",
        cause=f"The {access.access} on {where} touches {per_request:.2f} sectors a request where "
        f"{ideal:.2f} would do: its requests begin between two 32-byte sectors.",
        evidence=(
            Evidence(
                f"l1tex__average_t_sectors_per_request_{stem}.ratio",
                per_request,
                _RATIO * ideal,
                "sector/request",
                subject.counted_by,
                access.line,
            ),
        ),
        actions=(
            Action(
                "Give each row a pitch that is a multiple of 32 bytes.",
                metric=sectors,
                factor=factor,
            ),
            Action(
                "Shift the work so that lane 0 starts at an aligned element.",
                metric=sectors,
                factor=factor,
            ),
        ),
        gain=(1.0, saved(excess)),
        reason="the L1 serves the extra sector from what a neighbouring warp fetched, most times",
    )
