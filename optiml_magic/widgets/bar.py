"""The line on a terminal, drawn by rich: a bar, the figures, what goes on. Gone at the end."""

from __future__ import annotations

from rich.console import Console
from rich.progress import (
    BarColumn,
    Progress,
    ProgressColumn,
    SpinnerColumn,
    Task,
    TimeElapsedColumn,
)
from rich.text import Text

from optiml_magic.printable import printable
from optiml_magic.widgets.line import Now, clear

_WIDTHS = (8, 24)  # of the bar, in characters: on a terminal below _WIDE columns, and on others
_WIDE = 100
_DRAWN = 4  # times a second


class Bar:
    """Drawn by a thread of rich's, so that the clock goes on while an evaluation takes long.

    Colours are up to rich: none with NO_COLOR or where the terminal has none.
    """

    def __init__(self) -> None:
        self._progress: Progress | None = None

    def write(self, now: Now) -> None:
        """See Line."""
        if self._progress is None:
            self._progress = _progress(counted=now.budget > 0)
            self._progress.add_task("", total=now.budget or None, now=now)
            clear()
            self._progress.start()
        shown = self._progress.task_ids[0]
        self._progress.update(shown, completed=now.done, now=now, refresh=True)

    def end(self, text: str, instead: object | None) -> None:  # noqa: ARG002  # the result follows
        """See Line."""
        if self._progress is not None:
            self._progress.stop()


class _Figures(ProgressColumn):
    """What goes on, in one line: whatever is too long for it ends in an ellipsis."""

    def render(self, task: Task) -> Text:
        """See ProgressColumn."""
        now: Now = task.fields["now"]
        line = Text(no_wrap=True, overflow="ellipsis")
        line.append(f"{now.done} of {now.budget}" if now.done else now.what)
        if now.best:
            line.append("  best ").append(now.best, style="bold green")
        if now.pace:
            line.append(f"  {now.pace}", style="cyan")
        if now.cost:
            line.append(f"  {now.cost}", style="magenta")
        return line.append(f"  {printable(now.doing)}", style="dim")


def _progress(*, counted: bool) -> Progress:
    console = Console(stderr=True)
    bar = [BarColumn(_WIDTHS[console.width >= _WIDE])] if counted else []
    return Progress(
        SpinnerColumn(),
        *bar,
        TimeElapsedColumn(),
        _Figures(),
        console=console,
        refresh_per_second=_DRAWN,
        transient=True,
        redirect_stdout=False,  # it may be a pipe, which gets nothing of this
    )
