"""The runs of a home, newest first, as their journals tell them."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal

from optiml_magic.errors import UsageError
from optiml_magic.journal import in_use, read_lines
from optiml_magic.replay.recording import Recording
from optiml_magic.reports import columns
from optiml_magic.reports.markup import element
from optiml_magic.reports.quantities import number_of, ratio

State = Literal["running", "done", "stopped", "cut short", "failed", "unreadable"]
_BY_THE_USER = ("stopped", "interrupted")
_FAILED = "the input kernel failed"
_HEAD = ("run", "kernel", "last written", "device", "speed-up", "state", "evaluations")


@dataclass(frozen=True)
class Run:
    """One run. ``written`` is when its journal was last written to, in seconds since the epoch.

    ``state``: ``stopped`` is what the user ended, and ``cut short`` what was killed: both can be
    resumed. ``failed`` is a run whose input kernel did not pass.
    """

    run: str
    task: str
    written: float
    device: str
    speedup: float | None
    source: str
    state: State
    evaluations: int

    @property
    def cells(self) -> tuple[str, ...]:
        """As a row of a table."""
        gain = "-"
        if self.speedup is not None:
            gain = "no gain" if self.speedup == 1 else f"{ratio(self.speedup)} {self.source}"
        when = time.strftime("%Y-%m-%d %H:%M", time.localtime(self.written))
        return (self.run, self.task, when, self.device, gain, self.state, str(self.evaluations))


@dataclass(frozen=True)
class History:
    """The newest runs of a home; ``total`` counts all that there are."""

    runs: tuple[Run, ...]
    total: int
    folder: Path

    def rows(self) -> list[dict[str, Any]]:
        """The runs as flat rows, newest first."""
        return [asdict(run) for run in self.runs]

    @property
    def _said(self) -> str:
        if not self.total:
            return f"no run in {self.folder} yet: optimize writes one"
        if len(self.runs) < self.total:
            return f"the newest {len(self.runs)} of {self.total} runs; --last N shows more"
        return number_of(self.total, "run")

    def __repr__(self) -> str:
        table = columns.text(_HEAD, [run.cells for run in self.runs]) if self.runs else []
        return "\n".join([*table, self._said])

    def _repr_mimebundle_(self, **_: Any) -> dict[str, str]:
        table = [columns.fragment(_HEAD, [run.cells for run in self.runs])] if self.runs else []
        page = element("div", *table, element("p", self._said))
        return {"text/plain": repr(self), "text/html": page}


def history(folder: Path, last: int) -> History:
    """The ``last`` runs whose journals are in ``folder``."""
    found = journals(folder)
    return History(tuple(map(run_of, found[:last])), len(found), folder)


def running(folder: Path) -> tuple[Run, ...]:
    """The runs whose journals are being written now, in this process or another."""
    return tuple(run_of(path) for path in journals(folder) if in_use(path))


def journals(folder: Path) -> Sequence[Path]:
    """Those of a folder, the one that was written to last first."""
    return sorted(folder.glob("*.jsonl"), key=lambda path: -path.stat().st_mtime)


def run_of(path: Path) -> Run:
    """What a journal says of its run, also while that goes on."""
    written, running = path.stat().st_mtime, in_use(path)
    try:
        header, lines = read_lines(path)
    except UsageError:
        return Run(path.stem, "-", written, "-", None, "", "unreadable", 0)
    begun: State = "running" if running else "cut short"
    if not any(line.evaluated for line in lines):
        return Run(path.stem, header.task, written, header.device, None, "", begun, 0)
    recording = Recording.read(path)
    summary = recording.summary
    return Run(
        path.stem,
        header.task,
        written,
        header.device,
        summary.speedup if summary.root.evaluation.measurement else None,
        summary.source,
        begun if running or recording.ended is None else _ending(recording.ended.stopped),
        len(summary.trajectory.steps),
    )


def _ending(stopped: str) -> State:
    if stopped in _BY_THE_USER:
        return "stopped"
    return "failed" if stopped == _FAILED else "done"
