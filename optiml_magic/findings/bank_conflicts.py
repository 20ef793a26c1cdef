"""Shared-memory bank conflicts: lanes of one request ask the same bank for different words.

Source: CUDA C++ Best Practices Guide, "Shared Memory and Memory Banks".
"""

from __future__ import annotations

from collections.abc import Iterator

from optiml_magic.findings.base import WORTH, by_line, saved, severity
from optiml_magic.findings.followed import padded, without_rows
from optiml_magic.findings.subject import Subject, counted, of_name
from optiml_magic.model.counters import MemoryCounters
from optiml_magic.model.finding import Action, Evidence, Finding, RooflineClass

_RATIO = 1.25
_SHARE = 0.10
_METRIC = "l1tex__data_bank_conflicts_pipe_lsu_mem_shared.sum"


class BankConflicts:
    """Fires per shared-memory instruction, on its line; once where only the sum is known."""

    name = "bank_conflicts"
    classes: frozenset[RooflineClass] = frozenset({"memory", "compute", "latency", "mixed"})
    metrics: tuple[str, ...] = (_METRIC, "l1tex__data_pipe_lsu_wavefronts_mem_shared.sum")

    def diagnose(self, subject: Subject) -> Iterator[Finding]:
        if not subject.measured.kernels:
            yield from _from_sums(subject)
        for _, counts in counted(subject):
            accesses = by_line(counts.memory, "shared")
            total = sum(m.wavefronts for m in accesses)
            for access in accesses:
                conflicting = access.wavefronts > _RATIO * access.ideal
                more = (access.wavefronts - access.ideal) / total
                gain = saved(more * subject.part("lsu", "latency"))
                if conflicting and access.wavefronts > _SHARE * total and gain >= WORTH:
                    yield _finding(subject, access, gain)


def _from_sums(subject: Subject) -> Iterator[Finding]:
    conflicts, total = (subject.measured.get(name) for name in BankConflicts.metrics)
    if conflicts is None or not total or conflicts <= (1 - 1 / _RATIO) * total:
        return
    excess = conflicts / total
    yield Finding(
        tool=BankConflicts.name,
        severity="critical" if excess > 0.5 else "warning",
        cause=f"{100 * excess:.0f} % of the passes over shared memory are bank conflicts.",
        evidence=(Evidence(_METRIC, conflicts, (1 - 1 / _RATIO) * total, "wavefront", "ncu"),),
        actions=_actions(1 / max(1 - excess, 0.03)),
        gain=(1.0, saved(excess)),
        reason="each conflict is one more pass of the load-store unit",
    )


def _finding(subject: Subject, access: MemoryCounters, gain: float) -> Finding:
    per_request = access.wavefronts / access.requests
    cause = "lanes add to the same words" if access.access == "atomic" else "lanes share a bank"
    where = of_name(access.line, subject.lines.array(access.line, access.access, "shared"))
    return Finding(
        tool=BankConflicts.name,
        severity=severity(gain),
        cause=f"The shared {access.access} on {where} needs {per_request:.1f} "
        f"wavefronts a request where {access.ideal / access.requests:.1f} would do: {cause}.",
        evidence=(
            Evidence(
                _METRIC,
                access.wavefronts - access.ideal,
                (_RATIO - 1) * access.ideal,
                "wavefront",
                subject.counted_by,
                access.line,
            ),
        ),
        actions=_actions(
            access.wavefronts / access.ideal,
            padded=padded(access.line, access.access, subject),
            flat=without_rows(access.line, access.access, subject),
        ),
        gain=(1.0, gain),
        reason="each conflict is one more pass of the load-store unit",
    )


def _actions(most: float, *, padded: bool = False, flat: bool = False) -> tuple[Action, ...]:
    pad = Action(
        "Pad the inner dimension of the array by one element.",
        "pad_shared",
        _METRIC,
        factor=(2.0, most * 10),
    )
    swap = Action(
        "Swap the thread indices so that lanes run along the inner dimension.",
        metric=_METRIC,
        factor=(2.0, most * 10),
    )
    spread = Action(
        "Lay what the lanes of a warp ask for at a time in different banks: rotate the index of "
        "each by its lane, or keep a copy for every few lanes.",
        metric=_METRIC,
        factor=(2.0, most * 10),
    )
    if flat:
        return (spread,)
    return (swap,) if padded else (pad, swap)
