"""How far a search is, in one line of text: where no widget can show, or none is wanted."""

from __future__ import annotations

import threading
import time
from dataclasses import replace
from types import TracebackType
from typing import Self

from optiml_magic.llms.spending import Spent
from optiml_magic.model.evaluation import Step
from optiml_magic.model.refusal import Refused
from optiml_magic.reports.quantities import number_of, ratio
from optiml_magic.reports.summary import Summary
from optiml_magic.search.controls import Controls
from optiml_magic.timings import Stage
from optiml_magic.widgets.frame import Board
from optiml_magic.widgets.line import Line, Now
from optiml_magic.widgets.node import Json
from optiml_magic.widgets.pace import Pace
from optiml_magic.widgets.subject import Subject

_REST = 0.5  # seconds between two times that the stage is written: it changes many times a second


def paced(evaluations: int, budget: int, elapsed: float, limit: float) -> str:
    """Evaluations a minute and the time that is left, as far as either is known.

    Until there is a rate only the limit says what is left; 0 is no limit.
    """
    most = max(0.0, limit - elapsed) if limit else float("inf")
    if evaluations < 2:
        return f"at most {most:.0f} s left" if limit else ""
    left = min(most, (budget - evaluations) * elapsed / evaluations)
    return f"about {max(0.0, left):.0f} s left, {60 * evaluations / elapsed:.0f} a minute"


class PlainView:
    """A view of one line. It has no button: Ctrl-C ends the search and keeps what was found.

    Steps are written as they come; the stage by a thread of our own, so that what is shown is never
    older than half a second.
    """

    def __init__(self, subject: Subject, line: Line, why: str) -> None:
        self.why = why
        self._subject = subject
        self._line = line
        self._board = Board(subject)
        self._began = time.monotonic()
        self._now = Now(subject.baseline, "prepare", task=subject.task, budget=subject.budget)
        self._stage: Stage = "prepare"
        self._lock = threading.Lock()  # of the line and of what it is made from
        self._pace = Pace(self._draw)
        self._shown = False
        self._last: tuple[str, object | None] | None = None

    def show(self) -> None:
        """Write the first line; once."""
        if not self._shown:
            self._shown = True
            self._began = time.monotonic()
            self._line.write(replace(self._now, note=self.why))
            self._pace.start()

    def enter(self, stage: Stage) -> None:
        """A stage begins; it is written soon."""
        self._stage = stage
        self._pace.ask()

    def __enter__(self) -> Self:
        self.show()
        return self

    def __call__(self, step: Step, refused: Refused) -> None:
        with self._lock:
            self._board.add(step, refused)
            frame = self._board.frame()
            title = step.candidate.proposal.title
            self._now = replace(
                self._now, stage=None, title=title, done=frame.evaluations, best=_best(frame.best)
            )
            self._line.write(self._now)

    def spend(self, told: Spent) -> None:
        """What the model cost so far; it is written with the stage."""
        with self._lock:
            self._now = replace(self._now, cost=told.brief)

    def steer(self, controls: Controls) -> None:
        """Nothing can be pressed here."""

    def finish(self, summary: Summary, instead: object | None = None) -> None:
        """Say how it ended; ``instead`` is shown in place of the line."""
        self._last = (summary.trajectory.stopped, instead)

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._pace.close()
        ended, instead = self._last or ("failed", None)
        spent = number_of(self._board.count, "evaluation")
        spent = f"{spent} in {time.monotonic() - self._began:.1f} s"
        self._line.end(f"{spent}; {ended}", instead)

    def _draw(self) -> float:
        """The stage, the figures so far, the rate and the time that is left."""
        with self._lock:
            elapsed = time.monotonic() - self._began
            subject = self._subject
            pace = paced(self._now.done, subject.budget, elapsed, subject.seconds)
            self._now = replace(self._now, stage=self._stage, pace=pace)
            self._line.write(self._now)
        return _REST


def _best(best: Json) -> str:
    if not best or not best["significant"]:
        return ""
    return f"{ratio(best['speedup'])} {best['source']}"
