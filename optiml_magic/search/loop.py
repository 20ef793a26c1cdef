"""Ask, evaluate, tell, until a budget or a person ends it."""

from __future__ import annotations

import contextlib
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

from optiml_magic.model.candidate import Candidate
from optiml_magic.model.evaluation import Evaluation, Step, Trajectory
from optiml_magic.model.refusal import Refused
from optiml_magic.timings import Timings

_RECENT = 8  # evaluations that say what the next one takes; ours

Collect = Callable[[], Sequence[Evaluation]]
Begin = Callable[[Sequence[Candidate]], Collect]
"""Begins to evaluate candidates; the result waits for what became of them, in their order."""
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
        recent = [
            step.evaluation.seconds_spent for step in steps[max(1, len(steps) - _RECENT) :]
        ] or [0.0]
        seconds = self.seconds - self.kept - elapsed
        if seconds <= 0 or max(recent) > seconds + self.seconds / 12:
            return 0
        each = sum(recent) / len(recent)
        return min(left, max(1, int(seconds / each))) if each else left


@dataclass(frozen=True)
class Batches:
    """How many candidates are begun together, and batches begun before an earlier one is told."""

    size: int = 1
    ahead: int = 0


ONE = Batches()


def run(
    search: Search,
    begin: Begin,
    budget: Budget,
    *,
    batches: Batches = ONE,
    progress: Progress = lambda *_: None,
    stop: Callable[[], bool] = lambda: False,
    timings: Timings | None = None,
) -> Trajectory:
    """The trajectory of one search. Ctrl-C ends it like a stop: what was evaluated is kept.

    The order of asking and telling does not depend on how long anything takes. The budget's seconds
    are those of ``timings``, which may have begun before.

    The first step is the input kernel; if it fails, the search ends there, since there is nothing
    to compare with.
    """
    timings = timings or Timings()
    steps: list[Step] = []
    flying: deque[tuple[list[Candidate], Collect]] = deque()

    def told() -> None:
        candidates, collect = flying.popleft()
        evaluations = collect()
        search.tell(evaluations)
        for step in map(Step, candidates, evaluations):
            steps.append(step)
            progress(step, search.refused)

    why = ""
    try:
        while not why or flying:
            while not why and len(flying) <= batches.ahead:
                asked = sum(len(candidates) for candidates, _ in flying)
                room = budget.room(steps, timings.elapsed) - asked
                if room < 1:
                    break
                with timings.stage("propose"):
                    candidates = search.ask(min(batches.size, room))
                if not candidates:
                    break
                flying.append((candidates, begin(candidates)))
            if flying:
                told()
                why = why or _ended(steps, budget, timings, stop)
            elif not why:
                why = "nothing left to try"
    except KeyboardInterrupt:
        with contextlib.suppress(KeyboardInterrupt):
            while flying:
                told()  # what was begun is nearly done
        if not steps:
            raise
        why = "interrupted"
    return Trajectory(tuple(steps), why).told(search.refused)


def at_once(evaluate: Callable[[Sequence[Candidate]], Sequence[Evaluation]]) -> Begin:
    """What evaluates in one go, as what begins and has the result."""

    def begin(candidates: Sequence[Candidate]) -> Collect:
        evaluations = evaluate(candidates)
        return lambda: evaluations

    return begin


def _ended(steps: list[Step], budget: Budget, timings: Timings, stop: Callable[[], bool]) -> str:
    if not steps[0].evaluation.verdict.passed:
        return "the input kernel failed"
    if stop():
        return "stopped"
    if len(steps) >= budget.evaluations:
        return f"budget of {budget.evaluations} evaluations spent"
    if budget.room(steps, timings.elapsed) < 1:
        return f"{budget.seconds:g} s spent"
    return ""
