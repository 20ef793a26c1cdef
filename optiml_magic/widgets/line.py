"""A place for one line of text, in a cell or on a terminal; light, so that it can come first."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from types import TracebackType
from typing import Any, Protocol, Self

from optiml_magic.printable import printable
from optiml_magic.timings import DOING, Stage


@dataclass(frozen=True)
class Now:
    """What goes on: of ``what``, a stage or the ``title`` of an edit, and the figures so far.

    ``budget`` is 0 where nothing is counted, ``best`` empty before anything faster is found,
    ``pace`` the rate and the time that is left in words, ``cost`` what a language model took,
    ``note`` why it is shown like this.
    """

    what: str
    stage: Stage | None = None
    title: str = ""
    task: str = ""
    done: int = 0
    budget: int = 0
    best: str = ""
    pace: str = ""
    cost: str = ""
    note: str = ""

    @property
    def doing(self) -> str:
        """The stage, or the edit that was evaluated last."""
        return DOING[self.stage] if self.stage else self.title

    def __str__(self) -> str:
        count = f"{self.done} of {self.budget}" if self.done else self.what
        best = f", best {self.best}" if self.best else ""
        pace = f", {self.pace}" if self.pace else ""
        cost = f", {self.cost}" if self.cost else ""
        note = f" ({self.note})" if self.note else ""
        return f"{count}{best}{pace}{cost}: {self.doing}{note}"


class Line(Protocol):
    """A place for one line that is written again and again."""

    def write(self, now: Now) -> None:
        """Show ``now`` instead of what was shown before."""

    def end(self, text: str, instead: object | None) -> None:
        """The last text, or an object to show in its place."""


class StageLine:
    """The stage that one evaluation is in, and how long all of it took."""

    def __init__(self, verb: str, line: Line) -> None:
        self._verb = verb
        self._line = line
        self._began = time.monotonic()

    def enter(self, stage: Stage) -> None:
        """A stage begins."""
        self._line.write(Now(self._verb, stage))

    def __enter__(self) -> Self:
        self.enter("prepare")
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        failed = "" if kind is None else ", failed"
        self._line.end(f"{self._verb}: {time.monotonic() - self._began:.1f} s{failed}", None)


class DisplayLine:
    """The line as an output of a cell; ``display`` is IPython's."""

    def __init__(self, display: Callable[..., Any]) -> None:
        self._display = display
        self._handle: Any = None

    def write(self, now: Now) -> None:
        """See Line."""
        if self._handle is None:
            self._handle = self._display(Text(str(now)), display_id=True)
        else:
            self._handle.update(Text(str(now)))

    def end(self, text: str, instead: object | None) -> None:
        """See Line."""
        if self._handle is not None:
            self._handle.update(Text(text) if instead is None else instead)


class TerminalLine:
    """The line on stderr: drawn by rich on a terminal, a log of lines anywhere else.

    Nothing at all where it is ``quiet``: beside a search in the background somebody types.
    """

    def __init__(self, *, quiet: bool = False) -> None:
        self._quiet = quiet
        self._place: Line | None = None

    def write(self, now: Now) -> None:
        """See Line."""
        if self._quiet:
            return
        if self._place is None:
            self._place = _place()
        self._place.write(now)

    def end(self, text: str, instead: object | None) -> None:
        """See Line."""
        if self._place is not None:
            self._place.end(text, instead)


class LogLine:
    """Lines that stay, for a file or a pipe: one at each new stage and at each new best kernel."""

    def __init__(self) -> None:
        self._seen: set[str] = set()

    def write(self, now: Now) -> None:
        """See Line."""
        news = {now.stage or "", now.best} - {""} - self._seen
        if news:
            self._seen |= news
            task = f"{now.task}: " if now.task else ""
            self._print(f"{task}{replace(now, note='')}")

    def end(self, text: str, instead: object | None) -> None:  # noqa: ARG002  # the result follows
        """See Line."""
        self._print(text)

    def _print(self, text: str) -> None:
        sys.stderr.write(f"{printable(text)}\n")
        sys.stderr.flush()


def _place() -> Line:
    if not drawable():
        return LogLine()
    from optiml_magic.widgets.bar import Bar  # rich takes a tenth of a second to load

    return Bar()


def drawable() -> bool:
    """Whether stderr is a terminal on which a line can be written again."""
    return sys.stderr.isatty() and os.environ.get("TERM") != "dumb"


def first(now: Now) -> None:
    """The very first line of a command on a terminal, before anything is loaded."""
    if drawable():
        sys.stderr.write(f"\r\033[K  {now}")
        sys.stderr.flush()


def clear() -> None:
    """Remove the first line."""
    if drawable():
        sys.stderr.write("\r\033[K")
        sys.stderr.flush()


class Text:
    """Text that shows itself without quotes."""

    def __init__(self, text: str) -> None:
        self._text = printable(text)

    def __repr__(self) -> str:
        return self._text
