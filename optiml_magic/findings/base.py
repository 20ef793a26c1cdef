"""The seam of the micro-profiling tools: a subject in, at most a few findings out.

Two stages, as in KernelPro (arXiv 2606.26453): the roofline class says which tools matter, then
every one of those runs, deterministically. A tool whose metrics are absent stays silent.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Protocol

from optiml_magic.findings.followed import fitting
from optiml_magic.findings.subject import Subject
from optiml_magic.model.counters import Access, MemoryCounters, Space
from optiml_magic.model.finding import Finding, RooflineClass, Severity


class Tool(Protocol):
    """One micro-profiling tool."""

    @property
    def name(self) -> str:
        """Short and lasting: it is counted in the experience of later runs."""

    @property
    def classes(self) -> frozenset[RooflineClass]:
        """The roofline classes for which the tool runs."""

    @property
    def metrics(self) -> tuple[str, ...]:
        """Hardware counters that it reads, by ncu's names; none where static facts will do."""

    def diagnose(self, subject: Subject) -> Iterator[Finding]:
        """The findings that the evidence supports."""


def wanted(tools: Iterable[Tool]) -> tuple[str, ...]:
    """The hardware counters that the tools read, each once: what a profiler is to collect."""
    return tuple(dict.fromkeys(metric for tool in tools for metric in tool.metrics))


def by_line(memory: Iterable[MemoryCounters], space: Space) -> tuple[MemoryCounters, ...]:
    """The accesses of one space, copies that the compiler made of one line added up."""
    groups: dict[tuple[int, Access, int], list[MemoryCounters]] = {}
    for site in memory:
        if site.space == space and site.requests:
            groups.setdefault((site.line, site.access, site.width), []).append(site)
    return tuple(
        MemoryCounters(
            line=line,
            space=space,
            access=access,
            width=width,
            requests=sum(s.requests for s in sites),
            sectors=sum(s.sectors for s in sites),
            wavefronts=sum(s.wavefronts for s in sites),
            ideal=sum(s.ideal for s in sites),
            lanes=sum(s.lanes for s in sites),
            lines=sum(s.lines for s in sites),
            contention=sum(s.contention for s in sites),
            swaps=any(s.swaps for s in sites),
        )
        for (line, access, width), sites in groups.items()
    )


def saved(share: float, factor: float = float("inf")) -> float:
    """The speed-up where a ``share`` of the time becomes ``factor`` times shorter (Amdahl)."""
    return 1.0 / max(1.0 - share * (1.0 - 1.0 / factor), 0.05)


WORTH = 1.05
"""The least gain that a tool about traffic or passes speaks of."""


def severity(gain: float) -> Severity:
    """How serious a fault is that costs so much."""
    return "critical" if gain >= 2.0 else "warning" if gain >= 1.15 else "note"


_ORDER = {"critical": 0, "warning": 1, "note": 2}


def diagnose(tools: Sequence[Tool], found: RooflineClass, subject: Subject) -> tuple[Finding, ...]:
    """All findings of the tools that fit the class, the most severe and promising first.

    What several launches say of one line is said once, and so is one advice for several lines;
    what the program does already is not advised.
    """
    findings = [f for tool in tools if found in tool.classes for f in tool.diagnose(subject)]
    findings.sort(key=lambda f: (_ORDER[f.severity], -f.gain[1]))
    once: dict[tuple[str, int, str], Finding] = {}
    for finding in findings:
        once.setdefault((finding.tool, finding.line, finding.evidence[0].metric), finding)
    return tuple(fitting(once.values(), subject))
