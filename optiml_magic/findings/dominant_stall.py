"""The dominant stall: why warps that could run do not, by ncu's own reasons.

Source: Nsight Compute documentation, "Warp State Statistics"; 40 and 60 % are KernelPro's (arXiv
2606.26453, second-hand).
"""

from __future__ import annotations

from collections.abc import Iterator

from optiml_magic.findings.base import saved
from optiml_magic.findings.subject import Subject
from optiml_magic.model.finding import Action, Evidence, Finding, RooflineClass

_DOMINANT, _CRITICAL = 0.40, 0.60
_BUSY = 0.80  # of the issue slots: stalls hurt only while schedulers have nothing to issue
# The reason, what it means, and what helps. Barriers have a tool of their own.
_REASONS: dict[str, tuple[str, str]] = {
    "long_scoreboard": (
        "wait for data from global or local memory",
        "Have more loads on their way: unroll, load ahead of use, or keep data in shared memory.",
    ),
    "short_scoreboard": (
        "wait for shared memory or a special function",
        "Do more between such an instruction and the use of its result; avoid bank conflicts.",
    ),
    "lg_throttle": (
        "find the queue of global and local accesses full",
        "Use fewer and wider accesses.",
    ),
    "mio_throttle": (
        "find the queue of shared accesses and special functions full",
        "Use fewer and wider shared accesses, and fewer special functions.",
    ),
    "math_pipe_throttle": (
        "find the arithmetic pipe that they need taken",
        "Spread the work over other pipes, or do less of it.",
    ),
    "wait": (
        "wait for the fixed latency of their own last instruction",
        "Give each thread independent work: several accumulators, more elements.",
    ),
    "imc_miss": (
        "wait for constants that are not in the constant cache",
        "Read constants that differ between lanes through global or shared memory.",
    ),
    "no_instruction": (
        "wait for instructions that are not in the cache",
        "Make the code smaller: less unrolling, fewer branches.",
    ),
    "branch_resolving": (
        "wait for the target of a branch",
        "Use fewer branches: unroll, or compute both sides.",
    ),
    "membar": ("wait at a memory fence", "Use a narrower fence, or fewer of them."),
    "drain": ("wait at their end for stores", "Let each thread store less, and coalesced."),
}
# What helps besides and a rule can do, by reason.
_RULES = {
    "long_scoreboard": (
        ("Let a warp share the loop over a row: more loads on their way.", "row_to_lanes"),
        ("Load what several rounds need before the first of them stores.", "load_ahead"),
        ("Keep what is read again in shared memory.", "stage_tile"),
    ),
    "lg_throttle": (
        ("Let a thread take several items, which use what a round loads.", "reuse_broadcast"),
        ("Let the lanes of a warp read neighbours: fewer sectors per access.", "coalesce_mapping"),
        ("Keep what is read again in shared memory.", "stage_tile"),
    ),
    "imc_miss": (("Copy a table in constant memory to shared memory.", "share_table"),),
}
_OTHERS = ("barrier", "dispatch_stall", "not_selected", "selected", "tex_throttle", "sleeping")
_STEM = "smsp__average_warps_issue_stalled_{}_per_issue_active.ratio"


def stalls(subject: Subject) -> dict[str, float]:
    """The share of each reason in the warps' time; empty where ncu did not tell."""
    names = (*_REASONS, *_OTHERS)
    found = {n: subject.measured.get(_STEM.format(n)) for n in names}
    known = {n: v for n, v in found.items() if v is not None}
    total = sum(known.values())
    return {n: v / total for n, v in known.items()} if total else {}


def stall_metric(reason: str) -> str:
    """Ncu's name of the metric."""
    return _STEM.format(reason)


_SAMPLED = {"no_instruction": "no_instructions"}  # ncu's samples have a name of their own


def stalled_line(subject: Subject, reason: str) -> int:
    """The line with most samples of that reason; 0 where nobody sampled."""
    samples: dict[int, int] = {}
    for run in subject.runs:
        for line in run.counts.lines if run.counts else ():
            samples[line.line] = samples.get(line.line, 0) + line.stalls.get(
                _SAMPLED.get(reason, reason), 0
            )
    most = max(samples, key=lambda at: samples[at], default=0)
    return most if samples.get(most) else 0


class DominantStall:
    """Fires once, on the line where most warps waited."""

    name = "dominant_stall"
    classes: frozenset[RooflineClass] = frozenset({"memory", "latency", "mixed", "compute"})
    metrics: tuple[str, ...] = (
        "smsp__issue_active.avg.pct_of_peak_sustained_active",
        *(stall_metric(reason) for reason in (*_REASONS, *_OTHERS)),
    )

    def diagnose(self, subject: Subject) -> Iterator[Finding]:
        found = stalls(subject)
        reason = max(_REASONS, key=lambda n: found.get(n, 0.0))
        share, busy = found.get(reason, 0.0), subject.share("issue")
        full = (subject.share("dram") or 0.0) >= 0.7
        if share < _DOMINANT or busy is None or busy > _BUSY or full:
            return
        meaning, advice = _REASONS[reason]
        line = stalled_line(subject, reason)
        where = f", most on line {line}" if line else ""
        yield Finding(
            tool=self.name,
            severity="critical" if share >= _CRITICAL and busy < 0.4 else "warning",
            cause=f"Warps spend {100 * share:.0f} % of their time where they {meaning}{where}.",
            evidence=(Evidence(stall_metric(reason), 100 * share, 100 * _DOMINANT, "%", "ncu",
                               line),),
            actions=tuple(
                Action(text, rule, stall_metric(reason), factor=(1.1, 1 / (1.01 - share)))
                for text, rule in ((advice, ""), *_RULES.get(reason, ()))
            ),
            gain=(1.0, min(saved(share), _BUSY / max(busy, 0.1))),
            reason="schedulers stand idle while their warps wait",
        )  # fmt: skip
