"""One run's way into the experience."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from optiml_magic.experience.entries import entry_of
from optiml_magic.experience.store import Experience, Setting
from optiml_magic.model.candidate import Candidate
from optiml_magic.model.evaluation import Evaluation, Trajectory
from optiml_magic.model.experience import Known, Origin
from optiml_magic.model.idea import Ideas
from optiml_magic.model.view import View


class Recorder:
    """Wraps what proposes and what evaluates."""

    def __init__(self, experience: Experience, run: str, setting: Setting) -> None:
        self._experience = experience
        self._run = run
        self._setting = setting
        self._evaluations: dict[int, Evaluation] = {}

    def expand(self, expand: Callable[[View, int], Ideas]) -> Callable[[View, int], Ideas]:
        """``expand`` whose ideas are remembered."""

        def recorded(view: View, count: int) -> Ideas:
            found = expand(view, count)
            self._experience.propose(self._run, self._setting, view, found.ideas)
            return found

        return recorded

    def evaluate(
        self, begin: Callable[[Sequence[Candidate]], Callable[[], Sequence[Evaluation]]]
    ) -> Callable[[Sequence[Candidate]], Callable[[], Sequence[Evaluation]]]:
        """``begin`` whose outcomes are remembered."""

        def recorded(candidates: Sequence[Candidate]) -> Callable[[], Sequence[Evaluation]]:
            begun = begin(candidates)

            def collected() -> Sequence[Evaluation]:
                evaluations = begun()
                for candidate, evaluation in zip(candidates, evaluations, strict=False):
                    self._evaluations[candidate.number] = evaluation
                    if candidate.parent is not None:
                        self._applied(candidate, evaluation)
                return evaluations

            return collected

        return recorded

    def _applied(self, candidate: Candidate, evaluation: Evaluation) -> None:
        assert candidate.parent is not None
        parent = self._evaluations[candidate.parent]
        self._experience.apply(self._run, self._setting, candidate, parent, evaluation)

    def won(self, trajectory: Trajectory, known: Known, origin: Origin | None) -> None:
        """Remember the path that won, where it is known what kind of kernel this is."""
        if known.kind is None or origin is None:
            return
        entry = entry_of(trajectory, known.kind, replace(origin, run=self._run))
        if entry is not None:
            self._experience.won(entry)

    def settle(self, trajectory: Trajectory) -> Trajectory:
        """The trajectory; finalists that failed in the end are no longer hits."""
        for step in trajectory.steps:
            number = step.candidate.number
            if number in trajectory.finalists and not step.evaluation.verdict.passed:
                self._experience.fail(self._run, number)
        return trajectory
