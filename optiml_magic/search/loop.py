"""Ask, evaluate, tell, until a budget or a person ends it."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

from optiml_magic.model.candidate import Candidate
from optiml_magic.model.evaluation import Evaluation, Step, Trajectory
from optiml_magic.model.refusal import Refused

Evaluate = Callable[[Sequence[Candidate]], Sequence[Evaluation]]
Progress = Callable[[Step, Refused], None]
"""Called with each step, and with what the proposers would not do so far."""


class Search(Protocol):
    """What the loop needs of a search."""

    @property
    def exhausted(self) -> bool:
        """Nothing is left to try."""

    @property
    def refused(self) -> Refused:
        """What the proposers would not do, by candidate."""

    def ask(self, count: int) -> list[Candidate]:
        """Up to ``count`` candidates to evaluate now."""

    def tell(self, evaluations: Sequence[Evaluation]) -> None:
        """Report evaluated candidates."""


@dataclass(frozen=True)
class Budget:
    """When to stop: so many evaluations, the input kernel's included, or so many seconds."""

    evaluations: int = 40
    seconds: float = float("inf")


def run(
    search: Search,
    evaluate: Evaluate,
    budget: Budget,
    *,
    batch: int = 1,
    progress: Progress = lambda *_: None,
    stop: Callable[[], bool] = lambda: False,
) -> Trajectory:
    """The trajectory of one search. Ctrl-C ends it like a stop: what was evaluated is kept.

    The first step is the input kernel; if it fails, the search ends there, since there is nothing
    to compare with.
    """
    began = time.monotonic()
    steps: list[Step] = []
    why = ""
    try:
        while not why:
            room = budget.evaluations - len(steps)
            candidates = search.ask(min(batch, room))
            if not candidates:
                why = "nothing left to try"
                break
            evaluations = evaluate(candidates)
            search.tell(evaluations)
            told = list(map(Step, candidates, evaluations))
            steps += told
            for step in told:
                progress(step, search.refused)
            why = _ended(steps, budget, time.monotonic() - began, stop)
    except KeyboardInterrupt:
        if not steps:
            raise
        why = "interrupted"
    return Trajectory(tuple(steps), why).told(search.refused)


def _ended(steps: list[Step], budget: Budget, elapsed: float, stop: Callable[[], bool]) -> str:
    if not steps[0].evaluation.verdict.passed:
        return "the input kernel failed"
    if stop():
        return "stopped"
    if len(steps) >= budget.evaluations:
        return f"budget of {budget.evaluations} evaluations spent"
    if elapsed >= budget.seconds:
        return f"{budget.seconds:g} s spent"
    return ""
