"""What Nsight Compute's own rules say, where they give an estimate of the speed-up.

Source: Nsight Compute documentation, "Customization Guide: Rule System". Their estimates are of the
kernel's time where the scope is global; a local one is of a part of it, promises nothing, and comes
with kernels in good order as well.
"""

from __future__ import annotations

from collections.abc import Iterator

from optiml_magic.findings.subject import Subject
from optiml_magic.model.finding import Action, Evidence, Finding, RooflineClass
from optiml_magic.model.measurement import RuleResult

_LEAST = 1.1  # below that a rule is not worth a word
_CRITICAL = 1.5
_MOST = 3  # of one launch, the most promising
_ABOUT_ALLOCATIONS = frozenset({"MemoryL2Compression"})  # no edit of a kernel can follow it


class NcuRules:
    """Fires for the most promising rules of each kernel."""

    name = "ncu_rules"
    classes: frozenset[RooflineClass] = frozenset(
        {"memory", "compute", "latency", "launch", "mixed"}
    )
    metrics: tuple[str, ...] = ()

    def diagnose(self, subject: Subject) -> Iterator[Finding]:
        by_kernel: dict[str, list[RuleResult]] = {}
        for rule in subject.measured.rules:
            if _promising(rule):
                by_kernel.setdefault(rule.kernel, []).append(rule)
        for rules in by_kernel.values():
            best = sorted(rules, key=lambda r: -(r.speedup or 1.0))
            yield from (_finding(rule) for rule in best[:_MOST])


def _promising(rule: RuleResult) -> bool:
    return (
        rule.kind in ("optimization", "warning")
        and rule.scope == "global"
        and (rule.speedup or 1.0) >= _LEAST
        and rule.rule not in _ABOUT_ALLOCATIONS
    )


def _finding(rule: RuleResult) -> Finding:
    speedup = rule.speedup or 1.0
    first, _, rest = rule.message.partition(". ")
    moved = rule.metrics[0] if rule.metrics else ("", 0.0)
    return Finding(
        tool=NcuRules.name,
        severity="critical" if speedup >= _CRITICAL else "warning",
        cause=f"{rule.title}: {first.rstrip('.')}." if rule.title else f"{first.rstrip('.')}.",
        evidence=(Evidence(f"{rule.rule} speedup", speedup, _LEAST, "x", "ncu", rule.line),),
        actions=(Action(rest or first, metric=moved[0]),),
        gain=(1.0, speedup),
        reason=f"the estimate of NVIDIA's rule {rule.rule}",
    )
