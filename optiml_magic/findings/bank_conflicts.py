"""Shared-memory bank conflicts: lanes of one request ask the same bank for different words.

Source: CUDA C++ Best Practices Guide, "Shared Memory and Memory Banks".
"""

from __future__ import annotations

from collections.abc import Iterator

from optiml_magic.findings.base import by_line
from optiml_magic.findings.subject import Subject
from optiml_magic.model.counters import MemoryCounters
from optiml_magic.model.finding import Action, Evidence, Finding, RooflineClass

_RATIO = 1.25
_SHARE = 0.10


class BankConflicts:
    """Fires per shared-memory instruction, on its line."""

    name = "bank_conflicts"
    classes: frozenset[RooflineClass] = frozenset({"memory", "compute", "latency", "mixed"})
    metrics: tuple[str, ...] = ("l1tex__data_bank_conflicts_pipe_lsu_mem_shared.sum",)

    def diagnose(self, subject: Subject) -> Iterator[Finding]:
        measured = subject.measured
        for kernel in measured.kernels:
            accesses = by_line(kernel.memory, "shared")
            total = sum(m.wavefronts for m in accesses)
            for access in accesses:
                conflicting = access.wavefronts > _RATIO * access.ideal
                if conflicting and access.wavefronts > _SHARE * total:
                    yield _finding(access, total)


def _finding(access: MemoryCounters, total: int) -> Finding:
    per_request = access.wavefronts / access.requests
    excess = (access.wavefronts - access.ideal) / total
    cause = "lanes add to the same words" if access.access == "atomic" else "lanes share a bank"
    return Finding(
        tool=BankConflicts.name,
        severity="critical" if excess > 0.5 else "warning",
        cause=f"The shared {access.access} on line {access.line} needs {per_request:.1f} "
        f"wavefronts a request where {access.ideal / access.requests:.1f} would do: {cause}.",
        evidence=(
            Evidence(
                "l1tex__data_bank_conflicts_pipe_lsu_mem_shared.sum",
                access.wavefronts - access.ideal,
                (_RATIO - 1) * access.ideal,
                "wavefront",
                "emulated",
                access.line,
            ),
        ),
        actions=(
            Action("Pad the inner dimension of the array by one element.", "shared_tile"),
            Action("Swap the thread indices so that lanes run along the inner dimension."),
        ),
        gain=(1.0, 1.0 / max(1.0 - excess, 0.1)),
    )
