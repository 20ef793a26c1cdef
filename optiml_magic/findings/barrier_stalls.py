"""Barrier stalls: warps wait for the rest of their block too often.

On a card ncu says how long. Counted without one, the instructions between two barriers say how
little there is to do in between. Source: CUDA C++ Programming Guide, "Synchronization Functions";
the 30 % are KernelPro's (arXiv 2606.26453, second-hand).
"""

from __future__ import annotations

from collections.abc import Iterator

from optiml_magic.findings.base import saved, severity
from optiml_magic.findings.dominant_stall import stall_metric, stalls
from optiml_magic.findings.followed import exchanges
from optiml_magic.findings.subject import Subject, counted
from optiml_magic.model.finding import Action, Evidence, Finding, RooflineClass

_STALLED = 0.30  # of the warps' time
_BETWEEN = 14.0  # instructions of a warp from one barrier to the next
_OFTEN = 6  # barriers of a warp
_WAITING = 0.5  # of the latency that so many barriers are taken to cause
_BARRIERS = "smsp__barriers.sum"
_ACTIONS = (
    ("Reduce within a warp by shuffles, and use the barrier only between warps.", ""),
    ("Let each thread do more between two barriers, or use smaller blocks.", "fewer_threads"),
)


class BarrierStalls:
    """Fires once for a kernel, on its busiest barrier."""

    name = "barrier_stalls"
    classes: frozenset[RooflineClass] = frozenset({"memory", "latency", "mixed", "compute"})
    metrics: tuple[str, ...] = (stall_metric("barrier"),)

    def diagnose(self, subject: Subject) -> Iterator[Finding]:
        share = stalls(subject).get("barrier")
        if share is not None:
            if share >= _STALLED:
                yield _finding(
                    subject,
                    f"Warps spend {100 * share:.0f} % of their time at barriers",
                    Evidence(stall_metric("barrier"), 100 * share, 100 * _STALLED, "%", "ncu"),
                    share,
                )
            return
        for run, counts in counted(subject):
            warps = run.launch.blocks * -(-run.launch.block_threads // 32)
            between = counts.warp_instructions / max(counts.barriers, 1)
            often = run.launch.block_threads > 32 and counts.barriers > _OFTEN * warps
            if often and between < _BETWEEN:
                yield _finding(
                    subject,
                    f"Warps meet at a barrier every {between:.0f} instructions",
                    Evidence("inst_per_barrier", between, _BETWEEN, "inst/barrier", "emulated"),
                    _WAITING * subject.part("latency"),
                )


def _busiest(subject: Subject) -> int:
    """The line whose barriers were executed most; the first barrier where nobody counted.

    Samples would not do: ncu puts them on the instruction behind a barrier.
    """
    found: dict[int, int] = {}
    for _, counts in counted(subject):
        for line in counts.lines:
            found[line.line] = found.get(line.line, 0) + line.by_class.get("barrier", 0)
    most = max(found, key=lambda line: found[line], default=0)
    return most if found.get(most) else subject.lines.first_barrier


def _finding(subject: Subject, cause: str, evidence: Evidence, share: float) -> Finding:
    line = _busiest(subject)
    advice = _ACTIONS[1:] if exchanges(subject) else _ACTIONS
    where = f" (line {line})" if line else ""
    metric = _BARRIERS if evidence.source == "emulated" else evidence.metric
    placed = Evidence(
        evidence.metric, evidence.value, evidence.threshold, evidence.unit, evidence.source, line
    )
    return Finding(
        tool=BarrierStalls.name,
        severity=severity(saved(share)),
        cause=f"{cause}{where}: there is little to do in between.",
        evidence=(placed,),
        actions=tuple(
            Action(one, rewrite=rule, metric=metric, factor=(1.2, 8.0)) for one, rule in advice
        ),
        gain=(1.0, saved(share)),
        reason="at a barrier the whole block waits for its slowest warp",
    )
