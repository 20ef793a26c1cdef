"""Ask, evaluate, tell, until a budget or a person ends it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

from optiml_magic.model.candidate import Candidate
from optiml_magic.model.evaluation import Evaluation, Step, Trajectory
from optiml_magic.model.refusal import Refused
from optiml_magic.timings import Timings

_RECENT = 8  # evaluations that say what the next one takes; ours

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
    """When to stop: so many evaluations, the input kernel's included, or so many seconds.

    ``kept`` of the seconds are for what comes after the search.
    """

    evaluations: int = 40
    seconds: float = float("inf")
    kept: float = 0.0

    def room(self, steps: Sequence[Step], elapsed: float) -> int:
        """How many more there is time for: the next take as long as the last few did.

        Where one as slow as the slowest of these would overrun the seconds by a twelfth, none.
        """
        left = self.evaluations - len(steps)
        if not steps or self.seconds == float("inf"):
            return left
        recent = [step.evaluation.seconds_spent for step in steps[1:][-_RECENT:]] or [0.0]
        seconds = self.seconds - self.kept - elapsed
        if seconds <= 0 or max(recent) > seconds + self.seconds / 12:
            return 0
        each = sum(recent) / len(recent)
        return min(left, max(1, int(seconds / each))) if each else left


def run(
    search: Search,
    evaluate: Evaluate,
    budget: Budget,
    *,
    batch: int = 1,
    progress: Progress = lambda *_: None,
    stop: Callable[[], bool] = lambda: False,
    timings: Timings | None = None,
) -> Trajectory:
    """The trajectory of one search. Ctrl-C ends it like a stop: what was evaluated is kept.

    The budget's seconds are those of ``timings``, which may have begun before.

    The first step is the input kernel; if it fails, the search ends there, since there is nothing
    to compare with.
    """
    timings = timings or Timings()
    steps: list[Step] = []
    why = ""
    try:
        while not why:
            room = budget.room(steps, timings.elapsed)
            if room < 1:
                why = f"{budget.seconds:g} s spent"
                break
            with timings.stage("propose"):
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
            why = _ended(steps, budget, stop)
    except KeyboardInterrupt:
        if not steps:
            raise
        why = "interrupted"
    return Trajectory(tuple(steps), why).told(search.refused)


def _ended(steps: list[Step], budget: Budget, stop: Callable[[], bool]) -> str:
    if not steps[0].evaluation.verdict.passed:
        return "the input kernel failed"
    if stop():
        return "stopped"
    if len(steps) >= budget.evaluations:
        return f"budget of {budget.evaluations} evaluations spent"
    return ""
