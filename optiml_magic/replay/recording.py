"""A search as its journal tells it: no device, no compiler, no model, no task."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from optiml_magic.errors import UsageError
from optiml_magic.journal import (
    NOT_TOLD,
    About,
    Ended,
    Line,
    RunHeader,
    left_by_hand,
    read_lines,
    said_of_left,
)
from optiml_magic.model.evaluation import Step, Trajectory
from optiml_magic.model.refusal import Refusal, Refused
from optiml_magic.model.thought import fates
from optiml_magic.reports.summary import Summary

_CUT = "the journal has no end: the run was killed, or it is not over"


@dataclass(frozen=True)
class Recording:
    """What a journal holds. ``lines`` are in the order in which they were written."""

    path: Path
    header: RunHeader
    about: About
    lines: Sequence[Line]

    @classmethod
    def read(cls, path: Path) -> Recording:
        """The recording at ``path``; UsageError where it is none, or has no evaluation yet."""
        header, lines = read_lines(path)
        if not any(line.evaluated for line in lines):
            raise UsageError(
                f"nothing was evaluated yet in {path.name}", fix="resume the run, or wait for it"
            )
        return cls(path, header, lines[0].about or NOT_TOLD, lines)

    def steps(self) -> Iterator[tuple[Step, Refused]]:
        """Every step in the order of evaluation, with all that had been refused by then."""
        refused: dict[int, dict[Refusal, None]] = {}
        for line in self.lines:
            if line.expansion is not None:
                known = refused.setdefault(line.expansion.candidate, {})
                known |= dict.fromkeys(line.expansion.refused)
            elif line.made is not None and isinstance(line.made.made, Refusal):
                refused.setdefault(line.made.candidate, {})[line.made.made] = None
            elif line.evaluated is not None:
                told = {number: tuple(known) for number, known in refused.items() if known}
                yield Step(line.evaluated.candidate, line.evaluated.evaluation), told

    @property
    def trajectory(self) -> Trajectory:
        """The run as its result had it, finalists settled."""
        told = list(self.steps())
        ended = self.ended
        found = Trajectory(
            tuple(step for step, _ in told),
            ended.stopped if ended else "no end in the journal",
            objective=self.header.objective,
        )
        return found.told(told[-1][1]).settled(ended.settled if ended else {})

    @property
    def summary(self) -> Summary:
        """What the reports draw from. Without an end, the seconds are those of the evaluations."""
        ended, trajectory = self.ended, self.trajectory
        spent = sum(step.evaluation.seconds_spent for step in trajectory.steps)
        left = said_of_left(left_by_hand(self.lines))
        return Summary(
            task=self.header.task,
            device=self.header.device,
            device_reason=self.about.device_reason,
            oracle=self.about.oracle,
            launch=self.about.launch,
            notes=ended.notes if ended else (*self.about.notes, _CUT, *left),
            trajectory=trajectory,
            wall_seconds=sum(ended.timings.values()) if ended else spent,
            timings=ended.timings if ended else {},
            journal=self.path,
            model=self.about.model,
            exact=self.header.exact,
            author=self.about.author,
            peer=self.about.peer,
            thoughts=fates([x.wave for x in self.lines if x.wave], trajectory.steps),
        )

    @property
    def ended(self) -> Ended | None:
        """The last word, unless the run went on after it."""
        for line in reversed(self.lines):
            if line.ended is not None:
                return line.ended
            if line.evaluated is not None:
                return None
        return None
