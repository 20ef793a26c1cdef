"""Arrays in local memory: what a thread indexes at run time cannot lie in registers.

Source: CUDA C++ Programming Guide, "Local Memory".
"""

from __future__ import annotations

from collections.abc import Iterator

from optiml_magic.findings.base import by_line, saved
from optiml_magic.findings.subject import Subject, counted, of_name
from optiml_magic.model.finding import Action, Evidence, Finding, RooflineClass

_PART = 0.05  # of all executed instructions that local accesses must be
_BYTES = "launch__local_bytes_per_thread"


class LocalArrays:
    """Fires once for a kernel, on the line with most local accesses."""

    name = "local_arrays"
    classes: frozenset[RooflineClass] = frozenset({"memory", "latency", "mixed", "compute"})
    metrics: tuple[str, ...] = ()

    def diagnose(self, subject: Subject) -> Iterator[Finding]:
        for run, counts in counted(subject):
            resources = subject.build.resources[run.launch.kernel]
            # What was in local memory of the PTX may be in registers of the machine code.
            if resources.local_bytes <= resources.spill_store_bytes:
                continue
            sites = by_line(counts.memory, "local")
            requests = sum(m.requests for m in sites)
            if not sites or requests < _PART * counts.warp_instructions:
                continue
            most = max(sites, key=lambda m: (m.requests, m.access == "load"))
            if not subject.lines.arrays(most.line, most.access, "local"):
                continue  # an object whose address is taken, or the arguments of printf
            where = of_name(most.line, subject.lines.array(most.line, most.access, "local"))
            yield Finding(
                tool=self.name,
                severity="warning",
                cause=f"The array on {where} is indexed at run time, so its "
                f"{resources.local_bytes} bytes a thread lie in local memory.",
                evidence=(
                    Evidence(_BYTES, resources.local_bytes, 0.0, "byte/thread", "compiler",
                             most.line),
                ),
                actions=(
                    Action("Unroll the loops around it, so that every index is a constant.",
                           "scalarise_array", _BYTES, factor=(1.5, 1e6)),
                    Action("Keep it in shared memory, a column for each thread.",
                           metric=_BYTES, factor=(1.5, 1e6)),
                ),
                gain=(1.0, saved(min(0.75, 8 * requests / counts.warp_instructions))),
                reason="a register answers at once, local memory after the L1's wait",
            )  # fmt: skip
