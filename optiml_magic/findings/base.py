"""The seam of the micro-profiling tools: a measurement in, at most a few findings out.

Two stages, as in KernelPro (arXiv 2606.26453): the roofline class says which tools matter, then
every one of those runs, deterministically. A tool whose metrics are absent stays silent.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Protocol

from optiml_magic.model.finding import Finding, RooflineClass
from optiml_magic.model.measurement import Measurement


class Tool(Protocol):
    """One micro-profiling tool."""

    @property
    def name(self) -> str:
        """Short and lasting: it is counted in the experience of later runs."""

    @property
    def classes(self) -> frozenset[RooflineClass]:
        """The roofline classes for which the tool runs."""

    def diagnose(self, measured: Measurement) -> Iterator[Finding]:
        """The findings that the evidence supports."""


_ORDER = {"critical": 0, "warning": 1, "note": 2}


def diagnose(
    tools: Sequence[Tool], found: RooflineClass, measured: Measurement
) -> tuple[Finding, ...]:
    """All findings of the tools that fit the class, the most severe and promising first."""
    findings = [f for tool in tools if found in tool.classes for f in tool.diagnose(measured)]
    return tuple(sorted(findings, key=lambda f: (_ORDER[f.severity], -f.gain[1])))
