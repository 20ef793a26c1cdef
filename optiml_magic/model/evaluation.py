"""One candidate evaluated, and the whole run as a trajectory."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from optiml_magic.model.build import Resources
from optiml_magic.model.candidate import Candidate
from optiml_magic.model.finding import Answered, Finding, RooflineClass
from optiml_magic.model.hypothesis import HypothesisTest, untested
from optiml_magic.model.measurement import Measurement, speedup_interval
from optiml_magic.model.objective import SLOWER, Objective, better, joules_of
from optiml_magic.model.refusal import Refusal, Refused
from optiml_magic.model.roofline import Standing
from optiml_magic.model.verdict import Outcome, Verdict


@dataclass(frozen=True, slots=True)
class Evaluation:
    """The evidence on one candidate.

    ``identity`` hashes machine code and launch plan ("" if it never compiled); ``duplicate_of`` is
    the number of an earlier candidate with the same identity, whose evidence this repeats.
    ``reward`` lies in [-1, 1]. ``test`` is what became of the proposal's hypothesis, measured
    against the parent; None where it had none. ``answered`` is the finding about the parent that
    the edit was made for, where it changed what that is about. ``seconds_spent`` is the wall time
    of the evaluation. ``only_where`` are the conditions on sizes that it requires and the input
    kernel does not: it can do less.
    """

    candidate: int
    identity: str
    verdict: Verdict
    measurement: Measurement | None = None
    resources: tuple[Resources, ...] = ()
    roofline: RooflineClass | None = None
    standing: Standing | None = None  # under the roofs, with the floor of the task
    findings: tuple[Finding, ...] = ()
    reward: float = -1.0
    seconds_spent: float = 0.0
    duplicate_of: int | None = None
    test: HypothesisTest | None = None
    only_where: tuple[str, ...] = ()
    answered: Answered | None = None

    def __repr__(self) -> str:
        time = f", {self.measurement!r}" if self.measurement else ""
        return f"<evaluation of #{self.candidate}: {self.verdict.outcome}{time}>"


@dataclass(frozen=True, slots=True)
class Step:
    """A candidate with its evaluation, and what the proposers would not do with it so far."""

    candidate: Candidate
    evaluation: Evaluation
    refused: tuple[Refusal, ...] = ()

    @property
    def general(self) -> bool:
        """Whether it takes every size that the input kernel takes."""
        return not self.evaluation.only_where

    def __repr__(self) -> str:
        return f"<step: {self.candidate!r}, {self.evaluation!r}>"


#: Why a search ended that had no more ideas.
EXHAUSTED = "nothing left to try"


@dataclass(frozen=True)
class Trajectory:
    """Every step of a run in order of evaluation; step 0 is the input kernel, the baseline.

    Other steps without a parent are programs that the search began from as well.

    ``finalists`` are the numbers of the steps that were timed once more at the end; where there are
    any, only they and the input kernel may win. ``objective`` says by what one does.
    """

    steps: tuple[Step, ...]
    stopped: str  # why the search ended
    finalists: tuple[int, ...] = ()
    objective: Objective = "speed"

    def __repr__(self) -> str:
        best = f"fastest #{self.best.candidate.number}, " if self.steps else ""
        return f"<trajectory of {len(self.steps)} steps: {best}{self.stopped}>"

    @property
    def root(self) -> Step:
        """The input kernel."""
        return self.steps[0]

    @property
    def best(self) -> Step:
        """The fastest verified step; the input kernel wins ties.

        Of energy the one of the fewest joules among those about as fast as the fastest. One that
        takes fewer sizes than the input kernel wins only where it is significantly better than the
        best that takes them all: one that is significantly better than the input kernel, or this.
        """
        verified = [
            step
            for step in self.steps
            if step.evaluation.verdict.outcome is Outcome.PASSED
            and step.evaluation.measurement
            and (not self.finalists or step.candidate.number in (0, *self.finalists))
        ]
        best = next(iter(self._ranked(verified)), self.root)
        general = next(iter(self._ranked([s for s in verified if s.general])), self.root)
        rival = general if self.better(self.root, general) else self.root
        return best if best.general or self.better(rival, best) else general

    def better(self, before: Step, after: Step) -> bool:
        """Whether a step is significantly better than another, by the objective."""
        old, new = before.evaluation.measurement, after.evaluation.measurement
        return old is not None and new is not None and better(self.objective, old, new)

    def may_win(self, step: Step) -> bool:
        """Whether a step is not surely too slow to win over the input kernel."""
        old, new = self.root.evaluation.measurement, step.evaluation.measurement
        if old is None or new is None:
            return False
        return SLOWER * speedup_interval(old, new)[2] >= 1.0

    def leading(self, count: int) -> list[Step]:
        """The best verified steps beside the input kernel, each program once.

        The best that takes all sizes of the input kernel is among them, as one more if need be.
        """
        distinct = [
            step
            for step in self.steps[1:]
            if step.evaluation.verdict.passed
            and step.evaluation.measurement
            and step.evaluation.duplicate_of is None
        ]
        ranked = self._ranked(distinct)
        first = ranked[:count]
        if not any(step.general for step in first):
            first += [step for step in ranked if step.general][:1]
        return first

    def _ranked(self, steps: Sequence[Step]) -> list[Step]:
        """The best first: by seconds; of energy those about as fast as the fastest by joules."""
        ranked = sorted(steps, key=_seconds)
        if self.objective == "speed" or not ranked:
            return ranked
        most = SLOWER * _seconds(ranked[0])

        def rank(step: Step) -> tuple[bool, float]:
            seconds, joules = _seconds(step), joules_of(step.evaluation.measurement)
            near = joules is not None and seconds <= most
            return not near, joules if near and joules is not None else seconds

        return sorted(ranked, key=rank)

    def settled(self, found: Mapping[int, Measurement | Verdict]) -> Trajectory:
        """With what the finalists came to in the end, by number; 0 is the input kernel."""
        steps = tuple(_settled(step, found.get(step.candidate.number)) for step in self.steps)
        finalists = tuple(number for number in found if number)
        return replace(self, steps=steps, finalists=finalists)

    def rejected(self, step: Step, verdict: Verdict) -> Trajectory:
        """With a verdict in place of a step's; the other finalists, or else all, may win."""
        number = step.candidate.number
        passed = (s.candidate.number for s in self.steps[1:] if s.evaluation.verdict.passed)
        steps = tuple(_settled(s, verdict) if s is step else s for s in self.steps)
        return replace(self, steps=steps, finalists=self.finalists or (number, *passed))

    def told(self, refused: Refused) -> Trajectory:
        """With what was refused on each step so far."""
        steps = (
            replace(step, refused=refused[step.candidate.number])
            if step.candidate.number in refused
            else step
            for step in self.steps
        )
        return replace(self, steps=tuple(steps))

    @property
    def roots(self) -> tuple[Step, ...]:
        """The programs that the search began from, the input kernel first."""
        return tuple(step for step in self.steps if step.candidate.parent is None)

    def lineage(self, step: Step) -> tuple[Step, ...]:
        """The path to ``step`` from the root that it comes from, both included."""
        by_number = {s.candidate.number: s for s in self.steps}
        path = [step]
        while path[-1].candidate.parent is not None:
            path.append(by_number[path[-1].candidate.parent])
        return tuple(reversed(path))


def _settled(step: Step, found: Measurement | Verdict | None) -> Step:
    before = step.evaluation.measurement
    if found is None or before is None:
        return step
    if isinstance(found, Verdict):
        test = step.evaluation.test and untested(found.outcome)
        return replace(step, evaluation=replace(step.evaluation, verdict=found, test=test))
    again = replace(
        before,
        seconds=found.seconds,
        ratio_error=found.ratio_error,
        conditions=found.conditions,
    )
    return replace(step, evaluation=replace(step.evaluation, measurement=again))


def _seconds(step: Step) -> float:
    measurement = step.evaluation.measurement
    return measurement.seconds if measurement else float("inf")
