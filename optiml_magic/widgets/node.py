"""One step in full, as plain JSON data: sent when somebody asks for it, and not before."""

from __future__ import annotations

from typing import Any

from optiml_magic.model.evaluation import Step
from optiml_magic.model.finding import Finding
from optiml_magic.reports.diff import unified
from optiml_magic.reports.summary import Summary, promise, step_speedup

Json = dict[str, Any]
_HEADER = 2  # lines of a unified diff that name the files


def verdict_of(step: Step) -> tuple[str, str]:
    """How a step ended, in a word, and the sentence that says why."""
    repeated = step.evaluation.duplicate_of
    if repeated is not None:
        return "duplicate", f"same as #{repeated}"
    return str(step.evaluation.verdict.outcome), step.evaluation.verdict.summary


def findings_of(step: Step) -> list[Json]:
    """What was found on a step."""
    return [_finding(step.candidate.number, found) for found in step.evaluation.findings]


def node(summary: Summary, step: Step) -> Json:
    """A step with its program, the diff against its parent, its verdict and its findings."""
    candidate, verdict = step.candidate, step.evaluation.verdict
    parent = next(
        (s for s in summary.trajectory.steps if s.candidate.number == candidate.parent), None
    )
    word, why = verdict_of(step)
    expected, came = promise(step) or ("", "")
    return {
        "id": candidate.number,
        "parent": candidate.parent,
        "title": candidate.proposal.title,
        "proposer": candidate.proposal.proposer,
        "rationale": candidate.proposal.rationale,
        "expected": expected,
        "came": came,
        "verdict": word,
        "why": why,
        "line": verdict.line,
        "fix": verdict.fix,
        "speedup": step_speedup(summary, step),
        "source": summary.source,
        "program": candidate.text,
        "diff": _diff(parent.candidate.text, candidate.text) if parent else "",
        "findings": findings_of(step),
    }


def _diff(before: str, after: str) -> str:
    return "\n".join(unified(before, after).split("\n")[_HEADER:])


def _finding(number: int, finding: Finding) -> Json:
    return {
        "step": number,
        "tool": finding.tool,
        "severity": finding.severity,
        "cause": finding.cause,
        "advice": finding.actions[0].told if finding.actions else "",
        "gain": list(finding.gain),
    }
