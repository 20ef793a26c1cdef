"""High register use: so many per thread that few warps fit on a multiprocessor.

Source: CUDA C++ Best Practices Guide, "Register Pressure"; the 96 are KernelPro's (arXiv
2606.26453, second-hand).
"""

from __future__ import annotations

from collections.abc import Iterator

from optiml_magic.findings.subject import Subject
from optiml_magic.model.finding import Action, Evidence, Finding, RooflineClass

_MANY = 96.0  # registers of a thread
_LOW = 50.0  # percent of the warps that the chip holds
_BUSY = 0.8  # of the issue slots: from there on more warps would find none
_REGISTERS = "launch__registers_per_thread"
_OCCUPANCY = "sm__maximum_warps_per_active_cycle_pct"


class HighRegisters:
    """Fires once, on the line where most values are alive."""

    name = "high_registers"
    classes: frozenset[RooflineClass] = frozenset({"memory", "latency", "mixed", "compute"})
    metrics: tuple[str, ...] = ("smsp__issue_active.avg.pct_of_peak_sustained_active",)

    def diagnose(self, subject: Subject) -> Iterator[Finding]:
        measured = subject.measured
        used, percent = measured.get(_REGISTERS), measured.get(_OCCUPANCY)
        waves = measured.get("launch__waves_per_multiprocessor")
        if used is None or percent is None or waves is None or waves < 1.0:
            return
        limits = {
            n: measured.get(f"launch__occupancy_limit_{n}")
            for n in ("registers", "shared", "warps", "blocks")
        }
        known = {n: v for n, v in limits.items() if v is not None}
        by_registers = known and min(known, key=lambda n: known[n]) == "registers"
        busy = subject.share("issue")
        if used <= _MANY or percent >= _LOW or not by_registers or (busy and busy > _BUSY):
            return
        line, alive = max((r.code.pressure for r in subject.runs if r.code), default=(0, 0))
        where = f" Line {line} keeps about {alive} values alive at once." if line else ""
        yield Finding(
            tool=self.name,
            severity="warning" if percent < _LOW / 2 else "note",
            cause=f"{used:.0f} registers a thread leave room for {percent:.0f} % of the warps."
            + where,
            evidence=(Evidence(_REGISTERS, used, _MANY, "register/thread", "compiler", line),),
            actions=(
                Action(
                    "Keep fewer values per thread: smaller tiles, less unrolling, or a part of "
                    "them in shared memory.",
                    metric=_REGISTERS,
                    factor=(1.1, used / 64),
                ),
                Action(
                    "Bound the registers with __launch_bounds__(threads, blocks), as far as "
                    "nothing spills.",
                    metric=_REGISTERS,
                    factor=(1.1, used / 64),
                ),
            ),
            gain=(1.0, min(2.0, _LOW / max(percent, 1.0))),
            reason="more warps hide more latency, where there is latency to hide",
        )
