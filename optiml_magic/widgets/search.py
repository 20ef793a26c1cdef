"""The live view of a search.

Its state goes out through traits. What a person does comes in as messages, ``{"kind": ...}``: stop,
pause, resume and edit act on the search; node, roofline and report are answered with a message of
the same kind, since each of these is large and few of them are looked at.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import fields
from pathlib import Path
from typing import Any, Literal

import anywidget
import traitlets as t

from optiml_magic.llms.spending import Spent
from optiml_magic.model.evaluation import Step
from optiml_magic.model.refusal import NOTHING, Refused
from optiml_magic.reports import html
from optiml_magic.reports.figure import Picture
from optiml_magic.reports.markup import element
from optiml_magic.reports.roofline import roofline
from optiml_magic.reports.summary import Summary
from optiml_magic.search.controls import Controls
from optiml_magic.timings import DOING, Stage
from optiml_magic.widgets.frame import Board, Frame
from optiml_magic.widgets.node import Json
from optiml_magic.widgets.pace import Pace
from optiml_magic.widgets.subject import Subject

Ending = Literal["stopped", "done", "failed"]
_REST = 0.25  # seconds between two frames
_ROWS_PER_SECOND = 400  # rows of the tree that may go over the comm: longer runs send less often


class SearchView(anywidget.AnyWidget):
    """What a running search has found so far.

    ``update`` may be called from any thread; frames go out from one of our own. ``controls`` hear
    the buttons: with ipykernel 7 on a subshell's thread, while a cell runs.
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
    paused = t.Bool(False).tag(sync=True)
    reported = t.Bool(False).tag(sync=True)  # there is a report to ask for
    ended = t.Unicode().tag(sync=True)
    elapsed = t.Float(0.0).tag(sync=True)
    doing = t.Unicode().tag(sync=True)  # the stage that runs now
    spent = t.Unicode().tag(sync=True)  # what the model cost so far
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
        self._summary: Summary | None = None
        self._lock = threading.RLock()  # one writer of traits at a time: hold_sync is not atomic
        self._board = Board(subject)
        self._drawn = 0
        self._began = self._seen = time.monotonic()
        self._doing = DOING["prepare"]
        self._spent = ""
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
        """What the buttons do from now on; a search is stopped at once if Stop was pressed."""
        pressed, self.controls = self.controls.stopped, controls
        if pressed:
            controls.stop()

    def start(self) -> None:
        """Begin to draw, and to count the seconds."""
        self._began = self._seen = time.monotonic()
        self._pace.start()

    def update(self, step: Step, refused: Refused = NOTHING) -> None:
        """One more step, and all that was refused so far; it is drawn soon."""
        with self._lock:
            self._board.add(step, refused)
        self._pace.ask()

    def enter(self, stage: Stage) -> None:
        """A stage begins; it is drawn with the next frame."""
        self._doing = DOING[stage]

    def spend(self, told: Spent) -> None:
        """What the model cost so far; it is drawn with the next frame."""
        self._spent = str(told)

    def finish(self, state: Ending, ended: str, summary: Summary | None = None) -> None:
        """The last frame: how the search ended and why. The view then stays as it is.

        With a ``summary`` a page may ask for the report of it.
        """
        self._pace.close()
        with self._lock, self.hold_sync():
            self._show(self._board.frame())
            self._summary = summary
            self.spent = self._spent
            self.state, self.ended, self.doing, self.paused = state, ended, "", False
            self.reported = summary is not None

    def _heard(self, _: Any, content: Any, __: Any) -> None:
        acts: dict[object, Callable[[Json], None]] = {
            "stop": self._stop,
            "pause": self._pause,
            "resume": self._resume,
            "edit": self._edit,
            "node": self._node,
            "roofline": self._roofline,
            "report": self._report,
        }
        if isinstance(content, dict) and isinstance(content.get("kind"), str):
            act = acts.get(content["kind"])
            if act is not None:
                act(content)

    def _stop(self, _: Json) -> None:
        self.controls.stop()
        self._tell_controls()

    def _pause(self, _: Json) -> None:
        self.controls.pause()
        self._tell_controls()

    def _resume(self, _: Json) -> None:
        self.controls.resume()
        self._tell_controls()

    def _tell_controls(self) -> None:
        with self._lock, self.hold_sync():
            self.stopping, self.paused = self.controls.stopped, self.controls.paused

    def _edit(self, content: Json) -> None:
        parent, program = content.get("parent"), content.get("program")
        if isinstance(parent, int) and isinstance(program, str):
            refused = self.controls.suggest(parent, program)
            place = f" (line {refused.line})" if refused and refused.line else ""
            why = f"{refused.reason}{place}" if refused else ""
            self.send({"kind": "edit", "parent": parent, "refused": why})

    def _node(self, content: Json) -> None:
        with self._lock:
            found = self._board.node(content.get("id"))
        if found is not None:
            self.send({"kind": "node", **found})

    def _roofline(self, _: Json) -> None:
        with self._lock:
            summary = self._board.summary() if self._board.count else None
        if summary is not None:
            _beside(lambda: self.send({"kind": "roofline", **_drawn(summary)}))

    def _report(self, _: Json) -> None:
        summary = self._summary
        if summary is not None:
            _beside(lambda: self.send({"kind": "report", "html": html.fragment(summary)}))

    def _draw(self) -> float:
        with self._lock, self.hold_sync():
            count = self._board.count
            if count != self._drawn:
                self._show(self._board.frame())
            self._count()
            self.doing, self.spent = self._doing, self._spent
            self.stopping, self.paused = self.controls.stopped, self.controls.paused
        return _REST + count / _ROWS_PER_SECOND

    def _show(self, frame: Frame) -> None:
        self._drawn = len(frame.steps)
        self._count()
        for field in fields(Frame):
            setattr(self, field.name, getattr(frame, field.name))

    def _count(self) -> None:
        """The seconds so far; those of the budget do not run on in a pause either."""
        now = time.monotonic()
        if self.controls.paused:
            self._began += now - self._seen
        self._seen = now
        self.elapsed = round(now - self._began, 1)

    def __repr__(self) -> str:
        if self.state == "running":  # seen where no widget can show, and never drawn anew
            return (
                f"{self.task}: a search of at most {self.budget} evaluations began here; "
                f"run {self.task} in a cell to see what it came to"
            )
        return f"{self.task}: {self.state}, {self.evaluations} of {self.budget} evaluations"

    def _repr_mimebundle_(self, **kwargs: Any) -> Any:
        shown = super()._repr_mimebundle_(**kwargs)
        if shown is not None:  # None where a front end of its own kind asked for no view
            shown[0]["text/html"] = element("pre", repr(self))
        return shown


def _drawn(summary: Summary) -> Json:
    """The roofline with the path so far; or why there is none."""
    found, best = roofline(summary), summary.winner.candidate.number
    if isinstance(found, Picture):
        return {"best": best, "svg": str(found.svg), "told": found.description}
    return {"best": best, "svg": "", "told": found.reason}


def _beside(act: Callable[[], None]) -> None:
    """A picture takes a second: meanwhile the thread that hears the buttons has to be free."""
    threading.Thread(target=act, name="optiml-picture", daemon=True).start()


def _hear_on_the_front_ends_shell(comm: Any) -> None:
    """Let the button be heard while a cell runs.

    JupyterLab sends comm messages on a subshell of their own; ipykernel 7.4 hands them to the shell
    that last *sent* on the comm instead, which is the busy one. A kernel without that routing has
    no such method, and nothing happens.
    """
    if hasattr(comm, "_reply_subshell_for"):
        comm._reply_subshell_for = lambda _data, default: default  # noqa: SLF001
