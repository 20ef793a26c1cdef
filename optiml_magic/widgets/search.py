"""The live view of a search. State goes out through traits; one message, stop, comes in."""

from __future__ import annotations

import threading
import time
from dataclasses import fields
from pathlib import Path
from typing import Any, Literal

import anywidget
import traitlets as t

from optiml_magic.model.evaluation import Step
from optiml_magic.model.refusal import NOTHING, Refused
from optiml_magic.reports.markup import element
from optiml_magic.search.controls import Controls
from optiml_magic.timings import DOING, Stage
from optiml_magic.widgets.frame import Board, Frame
from optiml_magic.widgets.pace import Pace
from optiml_magic.widgets.subject import Subject

Ending = Literal["stopped", "done", "failed"]
_REST = 0.25  # seconds between two frames
_ROWS_PER_SECOND = 400  # rows of the tree that may go over the comm: longer runs send less often


class SearchView(anywidget.AnyWidget):
    """What a running search has found so far.

    ``update`` may be called from any thread; frames go out from one of our own. The button stops
    its ``controls``: with ipykernel 7 on a subshell's thread, while a cell runs.
    """

    _esm = Path(__file__).with_name("search.js")
    _css = Path(__file__).with_name("search.css")

    task = t.Unicode().tag(sync=True)
    device = t.Unicode().tag(sync=True)
    reason = t.Unicode().tag(sync=True)
    baseline = t.Unicode().tag(sync=True)  # what the input kernel is called
    budget = t.Int().tag(sync=True)
    seconds = t.Float(0.0).tag(sync=True)
    hint = t.Unicode().tag(sync=True)  # how to stop where the button cannot be heard
    state = t.Enum(["running", "stopped", "done", "failed"], "running").tag(sync=True)
    stopping = t.Bool(False).tag(sync=True)  # the button was heard
    ended = t.Unicode().tag(sync=True)
    elapsed = t.Float(0.0).tag(sync=True)
    doing = t.Unicode().tag(sync=True)  # the stage that runs now
    evaluations = t.Int(0).tag(sync=True)
    best = t.Dict().tag(sync=True)
    program = t.Unicode().tag(sync=True)
    diff = t.Unicode().tag(sync=True)
    findings: t.List[dict[str, Any]] = t.List().tag(sync=True)
    refused: t.List[dict[str, Any]] = t.List().tag(sync=True)
    verdicts = t.Dict().tag(sync=True)
    steps: t.List[dict[str, Any]] = t.List().tag(sync=True)

    def __init__(self, subject: Subject, *, hint: str = "") -> None:
        self.controls = Controls()
        self._lock = threading.RLock()  # one writer of traits at a time: hold_sync is not atomic
        self._board = Board(subject)
        self._drawn = 0
        self._began = time.monotonic()
        self._doing = DOING["prepare"]
        self._pace = Pace(self._draw)
        super().__init__(
            task=subject.task,
            device=subject.device,
            reason=subject.reason,
            baseline=subject.baseline,
            budget=subject.budget,
            seconds=subject.seconds,
            hint=hint,
        )
        _hear_on_the_front_ends_shell(self.comm)
        self.on_msg(self._heard)

    def steer(self, controls: Controls) -> None:
        """What the button stops from now on; a search at once, where it was pressed already."""
        pressed, self.controls = self.controls.stopped, controls
        if pressed:
            controls.stop()

    def start(self) -> None:
        """Begin to draw, and to count the seconds."""
        self._began = time.monotonic()
        self._pace.start()

    def update(self, step: Step, refused: Refused = NOTHING) -> None:
        """One more step, and all that was refused so far; it is drawn soon."""
        with self._lock:
            self._board.add(step, refused)
        self._pace.ask()

    def enter(self, stage: Stage) -> None:
        """A stage begins; it is drawn with the next frame."""
        self._doing = DOING[stage]

    def finish(self, state: Ending, ended: str) -> None:
        """The last frame: how the search ended and why. The view then stays as it is."""
        self._pace.close()
        with self._lock, self.hold_sync():
            self._show(self._board.frame())
            self.state, self.ended, self.doing = state, ended, ""

    def _heard(self, _: Any, content: Any, __: Any) -> None:
        if isinstance(content, dict) and content.get("kind") == "stop":
            self.controls.stop()
            with self._lock:
                self.stopping = True

    def _draw(self) -> float:
        with self._lock, self.hold_sync():
            count = self._board.count
            if count != self._drawn:
                self._show(self._board.frame())
            self.elapsed = round(time.monotonic() - self._began, 1)
            self.doing = self._doing
        return _REST + count / _ROWS_PER_SECOND

    def _show(self, frame: Frame) -> None:
        self._drawn = len(frame.steps)
        self.elapsed = round(time.monotonic() - self._began, 1)
        for field in fields(Frame):
            setattr(self, field.name, getattr(frame, field.name))

    def __repr__(self) -> str:
        if self.state == "running":  # seen where no widget can show, and never drawn anew
            return (
                f"{self.task}: searching, at most {self.budget} evaluations; the view is a widget"
            )
        return f"{self.task}: {self.state}, {self.evaluations} of {self.budget} evaluations"

    def _repr_mimebundle_(self, **kwargs: Any) -> Any:
        shown = super()._repr_mimebundle_(**kwargs)
        if shown is not None:  # None where a front end of its own kind asked for no view
            shown[0]["text/html"] = element("pre", repr(self))
        return shown


def _hear_on_the_front_ends_shell(comm: Any) -> None:
    """Let the button be heard while a cell runs.

    JupyterLab sends comm messages on a subshell of their own; ipykernel 7.4 hands them to the shell
    that last *sent* on the comm instead, which is the busy one. A kernel without that routing has
    no such method, and nothing happens.
    """
    if hasattr(comm, "_reply_subshell_for"):
        comm._reply_subshell_for = lambda _data, default: default  # noqa: SLF001
