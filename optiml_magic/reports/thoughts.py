"""What the gate said of each thought, and what became of it: as lines, rows and JSON."""

from __future__ import annotations

from typing import Any

from optiml_magic.model.evaluation import Step
from optiml_magic.model.thought import Attempt, Fate
from optiml_magic.reports.quantities import ratio, seconds
from optiml_magic.reports.summary import Summary, step_speedup

HEAD = ("weight", "thought", "fate", "what speaks for it", "attempts")


def lines(summary: Summary) -> list[str]:
    """Each thought that was developed, with what spoke for it and its attempts; then the others."""
    told = []
    for fate in summary.thoughts:
        if fate.attempts:
            told.append(f"{_weight(fate)}: {_fate(summary, fate)}")
            told += [f"      {', '.join(fate.thought.because)}"] * bool(fate.thought.because)
            told += [f"      {_attempt(*one)}" for one in fate.attempts]
    others = [_weight(fate) for fate in summary.thoughts if not fate.attempts]
    return [*told, *([f"not asked for: {', '.join(others)}"] if others else [])]


def rows(summary: Summary) -> list[tuple[str, ...]]:
    """The cells below ``HEAD``."""
    return [
        (
            f"{fate.thought.weight:.2f}",
            fate.thought.title,
            _fate(summary, fate),
            ", ".join(fate.thought.because),
            "; ".join(_attempt(*one) for one in fate.attempts),
        )
        for fate in summary.thoughts
    ]


def plain(fate: Fate) -> dict[str, Any]:
    """One thought for JSON."""
    thought, best = fate.thought, fate.best
    return {
        "name": thought.name,
        "title": thought.title,
        "weight": thought.weight,
        "because": list(thought.because),
        "fate": fate.outcome,
        "best": best.candidate.number if best else None,
        "attempts": [
            {
                "temperature": attempt.temperature,
                "repairs": attempt.repairs,
                "id": step.candidate.number if step else None,
                "outcome": _outcome(attempt, step),
                "said": step.evaluation.verdict.summary if step else attempt.said,
                "seconds": _seconds(step),
            }
            for attempt, step in fate.attempts
        ],
    }


def _weight(fate: Fate) -> str:
    return f"{fate.thought.weight:.2f} {fate.thought.title}"


def _fate(summary: Summary, fate: Fate) -> str:
    if fate.best is None:
        return fate.outcome
    gain = step_speedup(summary, fate.best)
    told = f", {ratio(gain)} {summary.source}" if gain else ""
    return f"{fate.outcome}, #{fate.best.candidate.number}{told}"


def _attempt(attempt: Attempt, step: Step | None) -> str:
    again = ("", ", repaired", ", repaired again")[min(attempt.repairs, 2)]
    number = f"#{step.candidate.number} " if step else ""
    time = _seconds(step)
    told = f", {seconds(time)}" if time is not None else ""
    why = step.evaluation.verdict.summary if step else attempt.said
    right = step is not None and step.evaluation.verdict.passed
    return (
        f"{number}at temperature {attempt.temperature:g}{again}: {_outcome(attempt, step)}{told}"
        + (f": {why}" if why and not right else "")
    )


def _outcome(attempt: Attempt, step: Step | None) -> str:
    if step is None:
        return "not tried" if attempt.proposal is not None else "no program"
    same = step.evaluation.duplicate_of
    return f"same as #{same}" if same is not None else str(step.evaluation.verdict.outcome)


def _seconds(step: Step | None) -> float | None:
    measured = step.evaluation.measurement if step else None
    return measured.seconds if measured else None
