"""Low instruction-level parallelism: a loop's turns wait for one another, and few warps fill in.

Little's law for arithmetic: latency times issue rate is the number of independent instructions that
a scheduler needs, from its warps or from within one. Source: Volkov, "Better Performance at Lower
Occupancy" (2010); CUDA C++ Best Practices Guide, "Instruction-level parallelism".
"""

from __future__ import annotations

from collections.abc import Iterator

from optiml_magic.findings.base import saved
from optiml_magic.findings.code import Chain, Loop
from optiml_magic.findings.subject import Run, Subject, of_name
from optiml_magic.model.finding import Action, Evidence, Finding, RooflineClass
from optiml_magic.ptx.traits import is_exchange

_RATIO = 1.5  # cycles of the chain over the cycles that all warps of a scheduler can fill
_PART = 0.5  # of the executed instructions that the loop must be
_BUSY = 0.6  # of the issue slots or the memory: from there on the chain is not what it waits for
_STALL = "smsp__average_warps_issue_stalled_wait_per_issue_active.ratio"
_METRIC = "smsp__issue_active.avg.pct_of_peak_sustained_active"


class LowIlp:
    """Fires once for a kernel, on the slowest instruction of the chain."""

    name = "low_ilp"
    classes: frozenset[RooflineClass] = frozenset({"latency", "mixed", "compute", "memory"})
    metrics: tuple[str, ...] = (_METRIC, _STALL)

    def diagnose(self, subject: Subject) -> Iterator[Finding]:
        warps, busy = subject.warps_per_scheduler, subject.share("issue")
        if not warps or max(busy or 0.0, subject.share("dram") or 0.0) > _BUSY:
            return
        for run in subject.runs:
            loop = _hottest(run)
            chain = loop.chain if loop else None
            if loop is None or chain is None:
                continue
            filled = loop.issued * max(warps, 1.0)
            # A shuffle or an atomic in the chain is what the loop is about.
            inherent = is_exchange(chain.slowest) or chain.slowest.base == "atom"
            if chain.cycles > _RATIO * filled and not inherent:
                yield _finding(subject, loop, filled)


def _hottest(run: Run) -> Loop | None:
    """The innermost loop that most of the executed instructions belong to, if one is."""
    if run.code is None or not run.code.loops:
        return None
    if run.counts is None or not run.counts.blocks:
        return run.code.loops[0] if len(run.code.loops) == 1 else None
    executed = {p: b.warp_executions for b in run.counts.blocks for p in b.ptx_lines}
    share = {
        at: sum(executed.get(i.ptx_line, 0) for i in loop.instructions)
        for at, loop in enumerate(run.code.loops)
    }
    most = max(share, key=lambda at: share[at])
    whole = share[most] >= _PART * run.counts.warp_instructions
    return run.code.loops[most] if whole else None


def _finding(subject: Subject, loop: Loop, filled: float) -> Finding:
    chain = loop.chain
    assert chain is not None
    line = chain.slowest.line
    ratio = chain.cycles / filled
    where = of_name(line, subject.lines.assigned(line))
    return Finding(
        tool=LowIlp.name,
        severity="warning" if ratio > 2 * _RATIO else "note",
        cause=f"Each turn of the loop waits {chain.cycles} cycles for the value on {where}, and "
        f"its {loop.issued} instructions in all resident warps fill {filled:.0f} of them.",
        evidence=(
            Evidence("dependent_cycles", chain.cycles, _RATIO * filled, "cycle", "modelled", line),
        ),
        actions=(
            Action(*_split(chain), _METRIC, "higher", (1.2, ratio)),
            Action(*_warps(subject), _METRIC, "higher", (1.1, ratio)),
        ),
        gain=(1.0, min(4.0, saved(1 - 1 / ratio))),
        reason="independent instructions use the cycles in which the chain waits",
    )


def _split(chain: Chain) -> tuple[str, str]:
    """How to have several chains, and the rule."""
    if chain.slowest.base == "ld":  # of an address that the one before has fetched
        return "Follow several chains at once: two to four independent items for each thread.", ""
    return "Split the chain: several accumulators, combined after the loop.", "unroll_static"


def _warps(subject: Subject) -> tuple[str, str]:
    """How to have more warps, and the rule; a grid that all fits at once has no more in store."""
    if (subject.measured.get("launch__waves_per_multiprocessor") or 0.0) <= 1.0:
        return "Have more warps: spread the work over more threads.", "row_to_lanes"
    return "Have more warps resident: larger blocks, fewer registers.", "block_size"
