"""A place for one line of text, in a cell or on a terminal; light, so that it can come first."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from types import TracebackType
from typing import Any, Protocol, Self

from optiml_magic.printable import printable
from optiml_magic.timings import DOING, Stage


class Line(Protocol):
    """A place for one line that is written again and again."""

    def write(self, text: str) -> None:
        """Put ``text`` in the place of what stood there."""

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
        self._line.write(f"{self._verb}: {DOING[stage]}")

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
