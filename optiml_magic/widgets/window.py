"""The widget as an output of a cell: shown at the start, and put away at the end."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from types import TracebackType
from typing import Any, Self

from optiml_magic.llms.spending import Spent
from optiml_magic.model.evaluation import Step
from optiml_magic.model.refusal import Refused
from optiml_magic.reports.quantities import number_of
from optiml_magic.reports.summary import Summary
from optiml_magic.search.controls import Controls
from optiml_magic.timings import Stage
from optiml_magic.widgets.answering import Answering
from optiml_magic.widgets.line import Text
from optiml_magic.widgets.search import Ending, SearchView
from optiml_magic.widgets.subject import Subject

_STOPPED = ("stopped", "interrupted")
_MOST = 8  # views of searches that are over; a page that still shows an older one loses it
_ENDED: deque[SearchView] = deque()


class Window:
    """A ``SearchView`` in its place. ``display`` is IPython's.

    At the end text takes its place, since a stored widget without its kernel is an error message in
    the notebook. A page that was loaded in mid-search does not know that place any more, and shows
    the report in the widget instead, which therefore stays in the kernel: the last few do. With
    ``keep`` the widget keeps its place, as it ended. ``kernel`` is the one whose cell the search
    runs in; None where it runs beside the cells.
    """

    def __init__(
        self,
        subject: Subject,
        display: Callable[..., Any],
        *,
        hint: str,
        why: str,
        keep: bool = False,
        kernel: Any = None,
    ) -> None:
        self.why = why
        self.view = SearchView(subject, hint=hint)
        self._display = display
        self._keep = keep
        self._answering = Answering(kernel)
        self._handle: Any = None
        self._instead: object | None = None
        self._summary: Summary | None = None

    def show(self) -> None:
        """Display the widget; once, and from the thread of the cell that it belongs to."""
        if self._handle is None:
            self._handle = self._display(self.view, display_id=True)
            self.view.start()
            self._answering.start()

    def __enter__(self) -> Self:
        self.show()
        return self

    def __call__(self, step: Step, refused: Refused) -> None:
        self.view.update(step, refused)

    def enter(self, stage: Stage) -> None:
        """A stage begins."""
        self.view.enter(stage)

    def spend(self, told: Spent) -> None:
        """What the model cost so far."""
        self.view.spend(told)

    def steer(self, controls: Controls) -> None:
        """What its buttons do from now on."""
        self.view.steer(controls)

    def finish(self, summary: Summary, instead: object | None = None) -> None:
        """Say how it ended; ``instead`` is shown in the widget's place."""
        self._summary = summary
        self._instead = instead

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._answering.stop()
        stays = self._keep and self._instead is None
        ended = self._summary.trajectory.stopped if self._summary else kind.__name__ if kind else ""
        self.view.finish(self._state(kind), ended, None if stays else self._summary)
        if self._handle is None or stays:
            return
        self._handle.update(self._last_words() if self._instead is None else self._instead)
        _ENDED.append(self.view)
        if len(_ENDED) > _MOST:
            _ENDED.popleft().close()

    def _state(self, kind: type[BaseException] | None) -> Ending:
        stopped = self._summary is not None and self._summary.trajectory.stopped in _STOPPED
        if stopped or (kind and issubclass(kind, KeyboardInterrupt)):
            return "stopped"
        return "failed" if kind else "done"

    def _last_words(self) -> Text:
        view = self.view
        spent = number_of(view.evaluations, "evaluation")
        return Text(f"{spent} in {view.elapsed:.1f} s; {view.ended}")
