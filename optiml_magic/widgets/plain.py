"""How far a search is, in one line of text: where no widget can show, or none is wanted."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from types import TracebackType
from typing import Any, Protocol, Self

from optiml_magic.model.evaluation import Step
from optiml_magic.model.refusal import Refused
from optiml_magic.printable import printable
from optiml_magic.reports.quantities import number_of, ratio
from optiml_magic.reports.summary import Summary
from optiml_magic.timings import DOING, Stage
from optiml_magic.widgets.frame import Board, Json
from optiml_magic.widgets.subject import Subject

_REST = 0.5  # seconds between two stages that are written: they change many times a second


def paced(evaluations: int, elapsed: float, limit: float) -> str:
    """Evaluations a minute and what is left of the seconds, as far as either is known."""
    rate = f", {60 * evaluations / elapsed:.0f} a minute" if evaluations > 1 else ""
    return rate + (f", {max(0.0, limit - elapsed):.0f} s left" if limit else "")


class Line(Protocol):
    """A place for one line that is written again and again."""

    def write(self, text: str) -> None:
        """Put ``text`` in the place of what stood there."""

    def end(self, text: str, instead: object | None) -> None:
        """The last text, or an object to show in its place."""


class PlainView:
    """A view of one line. It has no button: Ctrl-C ends the search and keeps what was found."""

    def __init__(self, subject: Subject, line: Line, why: str) -> None:
        self.why = why
        self._subject = subject
        self._line = line
        self._board = Board(subject)
        self._began = time.monotonic()
        self._written = 0.0  # when a stage was last written
        self._text = "the input kernel"
        self._shown = False
        self._last: tuple[str, object | None] | None = None

    def show(self) -> None:
        """Write the first line; once."""
        if not self._shown:
            self._shown = True
            self._began = time.monotonic()
            self._line.write(f"evaluating the input kernel ({self.why})")

    def enter(self, stage: Stage) -> None:
        """Name the stage beside what stands there, with the rate and the time that is left."""
        now = time.monotonic()
        if now - self._written < _REST:
            return
        self._written = now
        pace = paced(self._board.count, now - self._began, self._subject.seconds)
        self._line.write(f"{self._text}: {DOING[stage]}{pace}")

    def __enter__(self) -> Self:
        self.show()
        return self

    def __call__(self, step: Step, refused: Refused) -> None:
        self._board.add(step, refused)
        frame = self._board.frame()
        best, title = _best(frame.best), step.candidate.proposal.title
        self._text = f"{frame.evaluations} of {self._subject.budget}{best}"
        self._line.write(f"{self._text}: {title}")

    def stopped(self) -> bool:
        """Never: nobody can press anything here."""
        return False

    def finish(self, summary: Summary, instead: object | None = None) -> None:
        """Say how it ended; ``instead`` is shown in place of the line."""
        self._last = (summary.trajectory.stopped, instead)

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        ended, instead = self._last or ("failed", None)
        spent = number_of(self._board.count, "evaluation")
        spent = f"{spent} in {time.monotonic() - self._began:.1f} s"
        self._line.end(f"{spent}; {ended}", instead)


class DisplayLine:
    """The line as an output of a cell; ``display`` is IPython's."""

    def __init__(self, display: Callable[..., Any]) -> None:
        self._display = display
        self._handle: Any = None

    def write(self, text: str) -> None:
        """See Line."""
        if self._handle is None:
            self._handle = self._display(Text(text), display_id=True)
        else:
            self._handle.update(Text(text))

    def end(self, text: str, instead: object | None) -> None:
        """See Line."""
        if self._handle is not None:
            self._handle.update(Text(text) if instead is None else instead)


class TerminalLine:
    """The line on a terminal, gone at the end; nothing at all where stderr is none.

    Nothing either where it is ``quiet``: beside a search in the background somebody types.
    """

    def __init__(self, *, quiet: bool = False) -> None:
        self._quiet = quiet

    def write(self, text: str) -> None:
        """See Line."""
        if self._seen():
            sys.stderr.write(f"\r\033[K  {printable(text)[:100]}")
            sys.stderr.flush()

    def end(self, text: str, instead: object | None) -> None:  # noqa: ARG002  # the result follows
        """See Line."""
        if self._seen():
            sys.stderr.write("\r\033[K")
            sys.stderr.flush()

    def _seen(self) -> bool:
        return not self._quiet and sys.stderr.isatty()


class Text:
    """Text that shows itself without quotes."""

    def __init__(self, text: str) -> None:
        self._text = printable(text)

    def __repr__(self) -> str:
        return self._text


def _best(best: Json) -> str:
    if not best or not best["significant"]:
        return ""
    return f", best {ratio(best['speedup'])} {best['source']}"
