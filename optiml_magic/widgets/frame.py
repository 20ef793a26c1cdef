"""The steps of a search so far as plain JSON data: all that a view shows, and nothing else."""

from __future__ import annotations

from dataclasses import dataclass, field

from optiml_magic.model.evaluation import Step, Trajectory
from optiml_magic.model.measurement import speedup_interval
from optiml_magic.model.refusal import NOTHING, Refused
from optiml_magic.reports.summary import Summary, step_speedup
from optiml_magic.widgets.node import Json, findings_of, node, verdict_of
from optiml_magic.widgets.subject import Subject

_DETAIL = 240  # characters of a verdict's sentence that go over the comm


@dataclass(frozen=True)
class Frame:
    """One state of the view. The fields are traits of ``SearchView`` by the same names.

    ``best`` is the fastest verified step with its speed-up over the input kernel, where the figure
    comes from, and whether it is ``significant``; ``program`` and ``diff`` are of the input kernel
    until something significant was found. ``findings`` are of the best, or of the nearest program
    that it was made from and that was looked at. ``refused`` has reasons by the program that they
    are of.
    """

    evaluations: int = 0
    best: Json = field(default_factory=dict)
    program: str = ""
    diff: str = ""
    findings: list[Json] = field(default_factory=list)
    refused: list[Json] = field(default_factory=list)
    verdicts: dict[str, int] = field(default_factory=dict)
    steps: list[Json] = field(default_factory=list)


class Board:
    """Collects steps and draws frames of them. One thread at a time; its owner holds the lock."""

    def __init__(self, subject: Subject) -> None:
        self._subject = subject
        self._steps: list[Step] = []
        self._rows: list[Json] = []
        self._refused = NOTHING
        self._diff: tuple[int, str] = (0, "")  # the winner's number, and its diff

    @property
    def count(self) -> int:
        """How many steps there are."""
        return len(self._steps)

    def add(self, step: Step, refused: Refused = NOTHING) -> None:
        """One more step, the input kernel first, and all that was refused so far."""
        self._refused = refused
        self._steps.append(step)
        self._rows.append(_row(self.summary(), step))

    def frame(self) -> Frame:
        """What there is to show now."""
        if not self._steps:
            return Frame()
        summary = self.summary()
        number = summary.winner.candidate.number
        if self._diff[0] != number:
            self._diff = (number, summary.diff())
        return Frame(
            evaluations=sum(s.evaluation.duplicate_of is None for s in self._steps),
            best=_best(summary),
            program=summary.winner.candidate.text,
            diff=self._diff[1],
            findings=_findings(summary),
            refused=[
                {"program": program, "reasons": [str(refusal)[:_DETAIL] for refusal in refusals]}
                for program, refusals in summary.not_tried
            ],
            verdicts=summary.verdicts,
            steps=list(self._rows),
        )

    def node(self, number: object) -> Json | None:
        """All there is to know of a step; None where there is no such step."""
        found = next((s for s in self._steps if s.candidate.number == number), None)
        return node(self.summary(), found) if found else None

    def summary(self) -> Summary:
        """What the steps so far come to."""
        subject = self._subject
        found = Trajectory(tuple(self._steps), "", objective=subject.objective)
        trajectory = found.told(self._refused)
        return Summary(
            *(subject.task, subject.device, subject.reason, "", "", (), trajectory, 0.0, None),
            author=subject.author,
        )


def _row(summary: Summary, step: Step) -> Json:
    verdict, why = verdict_of(step)
    return {
        "id": step.candidate.number,
        "parent": step.candidate.parent,
        "title": step.candidate.proposal.title,
        "verdict": verdict,
        "detail": why[:_DETAIL],
        "speedup": step_speedup(summary, step),
    }


def _findings(summary: Summary) -> list[Json]:
    lineage = summary.trajectory.lineage(summary.winner)
    return next((found for step in reversed(lineage) if (found := findings_of(step))), [])


def _best(summary: Summary) -> Json:
    root, best = summary.root, summary.trajectory.best
    before, after = root.evaluation.measurement, best.evaluation.measurement
    gain = (1.0, 1.0, 1.0)
    if before is not None and after is not None and best is not root:
        gain = speedup_interval(before, after)
    return {
        "id": best.candidate.number,
        "title": best.candidate.proposal.title,
        "speedup": gain[0],
        "low": gain[1],
        "high": gain[2],
        "source": summary.source,
        "significant": summary.winner is not root,
    }
