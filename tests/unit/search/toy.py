"""A toy problem for the search: texts are bit strings, the reward counts the ones."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from optiml_magic.model.candidate import Candidate, Proposal
from optiml_magic.model.evaluation import Evaluation, Trajectory
from optiml_magic.model.idea import Idea, Ideas
from optiml_magic.model.measurement import Measurement
from optiml_magic.model.verdict import Outcome, Verdict
from optiml_magic.model.view import View
from optiml_magic.search import loop

BITS = 6


def proposal(text: str, prior: float = 0.5) -> Proposal:
    return Proposal(text, f"to {text}", "toy", prior=prior)


def idea(text: str, at: int) -> Idea:
    """One whose text is not made before it is tried."""
    return Idea(f"to {text}", "toy", lambda: text, f"flip {at}")


def expand(view: View, count: int) -> Ideas:
    text = view.step.candidate.text
    flipped = (text[:at] + ("0" if c == "1" else "1") + text[at + 1 :] for at, c in enumerate(text))
    return Ideas(tuple(idea(other, at) for at, other in enumerate(flipped))[:count])


def value(text: str) -> float:
    return text.count("1") / len(text)


def measured(seconds: float) -> Measurement:
    return Measurement("toy", "estimated", seconds, 1.1, (), (), ())


def evaluation(candidate: Candidate) -> Evaluation:
    text = candidate.text
    if text.startswith("11") and text.endswith("0"):
        return Evaluation(candidate.number, text, Verdict(Outcome.WRONG, "a trap"))
    verdict = Verdict(Outcome.PASSED, "")
    reward = 2 * value(text) - 1
    return Evaluation(
        candidate.number, text, verdict, measurement=measured(2 - value(text)), reward=reward
    )


def evaluate(candidates: Sequence[Candidate]) -> list[Evaluation]:
    return [evaluation(candidate) for candidate in candidates]


def run(
    search: loop.Search,
    evaluate: Callable[[Sequence[Candidate]], Sequence[Evaluation]],
    budget: loop.Budget,
    *,
    batch: int = 1,
    ahead: int = 0,
    **options: Any,
) -> Trajectory:
    """A search whose candidates are evaluated when they are begun."""
    batches = loop.Batches(batch, ahead)
    return loop.run(search, loop.at_once(evaluate), budget, batches=batches, **options)
