"""Divergence: lanes of one warp go different ways, and the ways are executed in turn.

Source: CUDA C++ Best Practices Guide, "Branching and Divergence".
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from optiml_magic.findings.base import saved, severity
from optiml_magic.findings.subject import Subject, counted
from optiml_magic.model.finding import Action, Evidence, Finding, RooflineClass

_LANES = 20.0  # active lanes of 32, mean of the whole kernel
_LOST = 0.15  # of all lane slots that one line must lose
_METRIC = "smsp__thread_inst_executed_per_inst_executed.ratio"
_ALONE = 1.5  # active lanes below which one of them works alone
_ACTIONS = (
    ("Let all lanes of a warp share the rounds of those that have many.", "lend_lanes"),
    ("Let whole warps take the same way: sort the work, or decide by warps.", ""),
    ("Compute both sides and select, where they are short.", ""),
)
_TOGETHER = (
    "Let the whole block do what one of its threads does while the others wait.",
    "share_sections",
)


class Divergence:
    """Fires once for a kernel, on the line that loses most lanes."""

    name = "divergence"
    classes: frozenset[RooflineClass] = frozenset({"compute", "latency", "mixed", "memory"})
    metrics: tuple[str, ...] = (_METRIC,)

    def diagnose(self, subject: Subject) -> Iterator[Finding]:
        if not subject.measured.kernels:
            lanes = subject.measured.get(_METRIC)
            if lanes is not None and lanes < _LANES:
                yield _finding(subject, 0, lanes, lanes, _ACTIONS)
        for run, counts in counted(subject):
            if counts.active_lanes >= _LANES * _fullness(run.launch.block_threads):
                continue
            lost = {x.line: 32 * x.warp_instructions - x.thread_instructions for x in counts.lines}
            line = max(lost, key=lambda at: lost[at], default=0)
            if lost.get(line, 0) >= _LOST * 32 * counts.warp_instructions:
                active = next(x.active_lanes for x in counts.lines if x.line == line)
                alone = counts.barriers and active < _ALONE
                actions = (_TOGETHER, *_ACTIONS) if alone else _ACTIONS
                yield _finding(subject, line, counts.active_lanes, active, actions)


def _fullness(threads: int) -> float:
    """The part of the lanes that a block of so many threads has at all."""
    return threads / (32 * -(-threads // 32))


def _finding(
    subject: Subject, line: int, lanes: float, own: float, actions: Iterable[tuple[str, str]]
) -> Finding:
    where = f" (line {line} runs with {own:.0f})" if line else ""
    idle = 1 - lanes / 32
    gain = saved(idle * subject.part("issue", "latency"))
    return Finding(
        tool=Divergence.name,
        severity=severity(gain),
        cause=f"Only {lanes:.1f} of 32 lanes are active in the mean{where}: lanes of one warp go "
        "different ways, and wait for each other.",
        evidence=(Evidence(_METRIC, lanes, _LANES, "thread/inst", subject.counted_by, line),),
        actions=tuple(
            Action(advice, rewrite, _METRIC, "higher", (1.1, 32 / lanes))
            for advice, rewrite in actions
        ),
        gain=(1.0, gain),
        reason="a warp's instruction costs the same for one lane as for 32",
    )
