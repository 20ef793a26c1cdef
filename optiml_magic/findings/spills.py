"""Register spills: values that found no register go to local memory and back.

Source: CUDA C++ Best Practices Guide, "Local Memory". Spills are KernelPro's tool with the best hit
rate (arXiv 2606.26453, second-hand).
"""

from __future__ import annotations

from collections.abc import Iterator

from optiml_magic.findings.subject import Subject
from optiml_magic.model.finding import Action, Evidence, Finding, RooflineClass

_SPILLS = "launch__spill_bytes"
_MANY = 64  # spilled bytes of a thread from which it is serious


class Spills:
    """Fires once for the kernel that spills most, on the line where most values are alive."""

    name = "spills"
    classes: frozenset[RooflineClass] = frozenset({"memory", "latency", "mixed", "compute"})
    metrics: tuple[str, ...] = ()

    def diagnose(self, subject: Subject) -> Iterator[Finding]:
        resources = [(subject.build.resources[r.launch.kernel], r) for r in subject.runs]
        spilled, run = max(
            ((r.spill_store_bytes + r.spill_load_bytes, run) for r, run in resources),
            key=lambda pair: pair[0],
        )
        if not spilled:
            return
        line, alive = run.code.pressure if run.code else (0, 0)
        where = f"; line {line} keeps about {alive} values alive at once" if line else ""
        found = subject.build.resources[run.launch.kernel]
        yield Finding(
            tool=self.name,
            severity="critical" if spilled >= _MANY else "warning",
            cause=f"{found.registers} registers a thread are too few: the compiler stores "
            f"{found.spill_store_bytes} bytes and loads {found.spill_load_bytes} through local "
            f"memory{where}.",
            evidence=(Evidence(_SPILLS, spilled, 0.0, "byte/thread", "compiler", line),),
            actions=(
                Action(
                    "Use smaller blocks, or drop the second number of __launch_bounds__.",
                    "block_size",
                    _SPILLS,
                    factor=(1.5, 1e6),
                ),
                Action(
                    "Keep fewer values alive: smaller tiles per thread, less unrolling.",
                    metric=_SPILLS,
                    factor=(1.5, 1e6),
                ),
            ),
            gain=(1.0, 2.0 if spilled >= _MANY else 1.2),
            reason="each spilled value is a store and a load in the inner work",
        )
