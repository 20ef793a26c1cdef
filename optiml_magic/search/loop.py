"""Ask, evaluate, tell, until a budget or a person ends it."""

from __future__ import annotations

import contextlib
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

from optiml_magic.model.candidate import Candidate
from optiml_magic.model.evaluation import EXHAUSTED, Evaluation, Step, Trajectory
from optiml_magic.model.refusal import Refused
from optiml_magic.search.controls import Controls
from optiml_magic.timings import Timings

_RECENT = 8  # evaluations that say what the next one takes; ours

Collect = Callable[[], Sequence[Evaluation]]
Begin = Callable[[Sequence[Candidate]], Collect]
"""Begins to evaluate candidates; the result waits for what became of them, in their order.

Of a search that is stopped in between it has the first of them."""
Progress = Callable[[Step, Refused], None]
"""Called with each step, and with what the proposers would not do so far."""


def _nothing(tried: int) -> float:  # noqa: ARG001
    return 0.0


def _same(spent: float) -> float:
    return spent


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

    def tell(self, evaluations: Sequence[Evaluation]) -> Sequence[Step]:
        """Report evaluated candidates; the steps that they became, in the same order."""


@dataclass(frozen=True)
class Budget:
    """When to stop: so many evaluations, the input kernel's included, or so many seconds.

    A program that another way led to before costs a compilation at most, and is not one of the
    evaluations; so that a search ends that finds nothing else, there may be as many of these again.
    ``kept`` of the seconds are for what comes after the search, by how many candidates were tried.
    ``first`` are those of a first candidate, by what the input kernel took.
    """

    evaluations: int = 40
    seconds: float = float("inf")
    kept: Callable[[int], float] = _nothing
    first: Callable[[float], float] = _same

    def room(
        self, steps: Sequence[Step], elapsed: float, *, repeated: int = 0, begun: int = 0
    ) -> int:
        """How many more there is time for after ``steps``: the next take as long as the last few.

        The first take as long as the input kernel, or one of them ``first``. Where one as slow as
        the slowest of these would overrun the seconds by a twelfth, none.
        ``repeated`` counts the programs that had come before, which are not among the steps, and
        ``begun`` those that are not told yet, whose seconds are nearly spent.
        """
        left = self.evaluations - max(len(steps), repeated) - begun
        if not steps or self.seconds == float("inf"):
            return left
        latest = steps[max(1, len(steps) - _RECENT) :]
        recent = [step.evaluation.seconds_spent for step in latest or steps]
        longest = max(recent) if latest else self.first(*recent)
        seconds = self.seconds - elapsed
        one = seconds - self.kept(len(steps) - 1)
        if one <= 0 or longest > one + self.seconds / 12:
            return 0
        each = sum(recent) / len(recent)
        least = 1 if latest or not begun else 0
        return min(left, max(least, int((seconds - self.kept(1)) / each))) if each else left


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
    controls: Controls | None = None,
    timings: Timings | None = None,
) -> Trajectory:
    """The trajectory of one search. Ctrl-C ends it like a stop: what was evaluated is kept.

    The order of asking and telling does not depend on how long anything takes, nor on when it is
    paused. The budget's seconds are those of ``timings``, which may have begun before; they do not
    run on while it is paused.

    The first step is the input kernel; if it fails, the search ends there, since there is nothing
    to compare with.
    """
    timings, controls = timings or Timings(), controls or Controls()
    steps: list[Step] = []
    evaluated: list[Step] = []  # without those that had come before
    flying: deque[tuple[list[Candidate], Collect]] = deque()

    def told() -> None:
        _, collect = flying.popleft()
        for step in search.tell(collect()):
            steps.append(step)
            if step.evaluation.duplicate_of is None:
                evaluated.append(step)
            progress(step, search.refused)

    def room(begun: int = 0) -> int:
        repeated = len(steps) - len(evaluated)
        return budget.room(evaluated, timings.elapsed, repeated=repeated, begun=begun)

    def halted() -> str:
        """Waits while it is paused; without the input kernel's step a stop has to wait too."""
        return "" if controls.goes_on(timings) or not steps else "stopped"

    why = ""
    try:
        while not why or flying:
            while not why and len(flying) <= batches.ahead and not (why := halted()):
                begun = sum(len(candidates) for candidates, _ in flying)
                wanted = min(batches.size, room(begun))
                if wanted < 1:
                    break
                with timings.stage("propose"):
                    candidates = search.ask(wanted)
                if not candidates or (why := halted()):
                    break
                flying.append((candidates, begin(candidates)))
            if flying:
                told()
                why = why or halted() or _ended(steps, evaluated, budget, room)
            elif not why:
                why = EXHAUSTED
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


def _ended(
    steps: list[Step], evaluated: list[Step], budget: Budget, room: Callable[[], int]
) -> str:
    if not steps[0].evaluation.verdict.passed:
        return "the input kernel failed"
    if len(evaluated) >= budget.evaluations:
        return f"budget of {budget.evaluations} evaluations spent"
    if len(steps) - len(evaluated) >= budget.evaluations:
        return f"{budget.evaluations} programs were duplicates"
    return "" if budget.seconds == float("inf") or room() else f"{budget.seconds:g} s spent"
