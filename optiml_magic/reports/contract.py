"""The JSON that the command line writes; its shape is a promise to scripts."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

from optiml_magic.model.codec import to_json
from optiml_magic.model.evaluation import Step
from optiml_magic.model.finding import Finding, RooflineClass
from optiml_magic.model.hypothesis import HypothesisTest
from optiml_magic.model.measurement import Measurement
from optiml_magic.model.objective import joules_of
from optiml_magic.model.thought import Author
from optiml_magic.model.verdict import Verdict
from optiml_magic.reports import thoughts
from optiml_magic.reports.annotation import Annotation
from optiml_magic.reports.summary import Summary

Json = dict[str, Any]


def optimized(summary: Summary) -> Json:
    """The outcome of ``optimize``."""
    root, winner, worst = summary.root, summary.winner, summary.worst_output
    author, written = summary.author, dict[str, Any]()
    if author is not None:
        written = {
            "origin": author,
            "candidates": _candidates(summary, author),
            "thoughts": [thoughts.plain(fate) for fate in summary.thoughts],
        }
    return {
        "task": summary.task,
        **written,
        "device": summary.device,
        "model": summary.model,
        "source": summary.source,
        "objective": summary.trajectory.objective,
        "launch": summary.launch,
        "baseline": {
            "what": summary.peer.name if summary.peer else summary.baseline,
            "seconds": summary.peer.seconds if summary.peer else _seconds(root),
            "joules": joules_of(root.evaluation.measurement),
            "verdict": str(root.evaluation.verdict.outcome),
        },
        "best": {
            "seconds": _seconds(winner),
            "joules": joules_of(winner.evaluation.measurement),
            "speedup": summary.speedup,
            "interval": list(summary.interval),
            "title": winner.candidate.proposal.title,
            "only_where": list(summary.only_where),
            "program": winner.candidate.text,
            "arithmetic": list(summary.arithmetic),
            "largest_error": {"output": worst.name, "error": worst.error, "allowed": worst.rtol}
            if worst
            else None,
        },
        "exact": summary.exact,
        "evaluations": len(summary.trajectory.steps),
        "verdicts": summary.verdicts,
        "wall_seconds": summary.wall_seconds,
        "timings": _rounded(summary.timings),
        "stopped": summary.trajectory.stopped,
        "journal": str(summary.journal) if summary.journal else None,
        "notes": list(summary.notes),
        "steps": [_step(step) for step in summary.trajectory.steps],
    }


def _candidates(summary: Summary, author: Author) -> list[Json]:
    """The programs that the search began from, the baseline first."""
    return [
        {
            "origin": author if step is summary.root else "model",
            "title": step.candidate.proposal.title,
            "verdict": str(step.evaluation.verdict.outcome),
            "summary": step.evaluation.verdict.summary,
            "seconds": _seconds(step),
            "program": step.candidate.text,
        }
        for step in summary.trajectory.roots
    ]


def checked(task: str, device: str, verdict: Verdict, timings: Mapping[str, float]) -> Json:
    """The outcome of ``check``: the verdict with its evidence."""
    return {
        "task": task,
        "device": device,
        "verdict": _plain(Verdict, verdict),
        "timings": _rounded(timings),
    }


def profiled(
    task: str,
    device: str,
    measured: Measurement,
    roofline: RooflineClass | None,
    found: tuple[Finding, ...],
    timings: Mapping[str, float],
) -> Json:
    """The outcome of ``profile``: the measurement and the findings."""
    return {
        "task": task,
        "device": device,
        "roofline": roofline,
        "measurement": _plain(Measurement, measured),
        "findings": [_plain(Finding, finding) for finding in found],
        "timings": _rounded(timings),
    }


def annotated(annotation: Annotation) -> Json:
    """The outcome of ``annotate``: every line with its code and its counts."""
    return {
        "task": annotation.name,
        "facts": [list(fact) for fact in annotation.facts],
        "lines": [asdict(line) for line in annotation.lines],
    }


def _step(step: Step) -> Json:
    proposal, evaluation = step.candidate.proposal, step.evaluation
    hypothesis = proposal.hypothesis
    return {
        "id": step.candidate.number,
        "parent": step.candidate.parent,
        "title": proposal.title,
        "proposer": proposal.proposer,
        "verdict": str(evaluation.verdict.outcome),
        "summary": evaluation.verdict.summary,
        "duplicate_of": evaluation.duplicate_of,
        "seconds": _seconds(step),
        "reward": evaluation.reward,
        "findings": [_plain(Finding, finding) for finding in evaluation.findings],
        "hypothesis": {
            "metric": hypothesis.metric,
            "direction": hypothesis.direction,
            "because": hypothesis.because,
            "factor": list(hypothesis.factor),
        }
        if hypothesis
        else None,
        "answers": proposal.answers,
        "answered": asdict(evaluation.answered) if evaluation.answered else None,
        "arithmetic": list(proposal.arithmetic),
        "refused": [asdict(refusal) for refusal in step.refused],
        "test": _plain(HypothesisTest, evaluation.test) if evaluation.test else None,
    }


def _rounded(timings: Mapping[str, float]) -> dict[str, float]:
    return {stage: round(seconds, 3) for stage, seconds in timings.items()}


def _seconds(step: Step) -> float | None:
    return step.evaluation.measurement.seconds if step.evaluation.measurement else None


def _plain(kind: type, value: object) -> Any:
    import json

    return json.loads(to_json(kind, value))
