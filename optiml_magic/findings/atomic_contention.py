"""Contended atomics: lanes and warps add to the same few addresses, one after the other.

Source: CUDA C++ Programming Guide, "Atomic Functions"; NVIDIA's technical blog, "GPU Pro Tip: Fast
Histograms Using Shared Atomics on Maxwell".
"""

from __future__ import annotations

from collections.abc import Iterator

from optiml_magic.findings.base import by_line, saved, severity
from optiml_magic.findings.subject import Subject, counted, of_name
from optiml_magic.model.counters import MemoryCounters, Space
from optiml_magic.model.finding import Action, Evidence, Finding, RooflineClass

_TURNS = 4.0  # turns of one request, where lanes meet at an address
_BUSY = 40.0  # percent of the busiest of the L2's atomic units
_PART = 0.02  # of the executed instructions
_UNIT = "lts__d_atomic_input_cycles_active.max.pct_of_peak_sustained_elapsed"
_REQUESTS = "l1tex__t_requests_pipe_lsu_mem_global_op_red.sum"
_SPACES: tuple[Space, ...] = ("global", "shared")


class AtomicContention:
    """Fires per line with atomics."""

    name = "atomic_contention"
    classes: frozenset[RooflineClass] = frozenset(
        {"memory", "compute", "latency", "mixed", "launch"}
    )
    metrics: tuple[str, ...] = (_UNIT, _REQUESTS)

    def diagnose(self, subject: Subject) -> Iterator[Finding]:
        busy = subject.measured.get(_UNIT)
        if busy is not None and busy >= _BUSY:
            line = subject.lines.first("atomic", "global")
            evidence = Evidence(_UNIT, busy, _BUSY, "%", "ncu", line)
            cause = f"The busiest of the L2's atomic units works {busy:.0f} % of the time"
            yield _finding(subject, (line, "global"), cause, evidence, busy / 100)
            return
        for _, counts in counted(subject):
            for space in _SPACES:
                for site in by_line(counts.memory, space):
                    often = site.requests > _PART * counts.warp_instructions
                    if site.access == "atomic" and often and _turns(site) >= _TURNS:
                        taken = _turns(site) * site.requests
                        share = taken / (taken + counts.warp_instructions)
                        yield _contended(subject, site, share)


def _turns(site: MemoryCounters) -> float:
    return 1 + site.contention / site.requests


def _contended(subject: Subject, site: MemoryCounters, share: float) -> Finding:
    turns = _turns(site)
    evidence = Evidence(
        "turns_per_request", turns, _TURNS, "turn/request", subject.counted_by, site.line
    )
    cause = f"{turns:.0f} of 32 lanes meet at one address in each {site.space} atomic"
    return _finding(subject, (site.line, site.space), cause, evidence, share)


def _finding(
    subject: Subject, at: tuple[int, Space], cause: str, evidence: Evidence, share: float
) -> Finding:
    line, space = at
    where = f" on {of_name(line, subject.lines.array(line, 'atomic', space))}" if line else ""
    return Finding(
        tool=AtomicContention.name,
        severity=severity(saved(share)),
        cause=f"{cause}{where}: they are done one after the other.",
        evidence=(evidence,),
        actions=(
            Action(
                "Combine within a warp first (shuffles, __reduce_add_sync), then one atomic each.",
                rewrite="block_sum" if space == "global" else "",
                metric="l1tex__t_sectors_pipe_lsu_mem_global_op_red.sum",
                factor=(2.0, 32.0),
            ),
            Action(
                "Collect in shared memory, a copy for each warp, and add once a block.",
                rewrite="private_counters" if space == "global" else "",
                metric="l1tex__t_sectors_pipe_lsu_mem_global_op_red.sum",
                factor=(2.0, 1024.0),
            ),
            Action(
                "Where items are sorted by it, let a thread add up those of one address.",
                rewrite="merge_runs" if space == "global" else "",
                metric="l1tex__t_sectors_pipe_lsu_mem_global_op_red.sum",
                factor=(1.1, 32.0),
            ),
        ),
        gain=(1.0, min(8.0, saved(share))),
        reason="one addition for many in place of many in turn",
    )
