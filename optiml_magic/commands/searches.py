"""The searches that a notebook has in the background, by name."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from optiml_magic.background import Handle
from optiml_magic.errors import UsageError, nearest
from optiml_magic.reports import columns
from optiml_magic.reports.markup import element
from optiml_magic.runs.history import Run

_HERE = ("search", "state", "evaluations", "seconds")
_RUNS = ("run", "kernel", "evaluations", "best so far")
_ALL = "journals that are being written, also by other processes:"


@dataclass(frozen=True)
class Status:
    """What runs now."""

    here: tuple[tuple[str, ...], ...]
    runs: tuple[Run, ...]

    @property
    def _written(self) -> list[tuple[str, ...]]:
        return [(run.run, run.task, run.cells[-1], run.cells[4]) for run in self.runs]

    def __repr__(self) -> str:
        lines = columns.text(_HERE, self.here) if self.here else ["no search in the background"]
        if self.runs:
            lines += ["", _ALL, *columns.text(_RUNS, self._written)]
        return "\n".join(lines)

    def _repr_mimebundle_(self, **_: Any) -> dict[str, str]:
        none = element("p", "no search in the background")
        parts = [columns.fragment(_HERE, self.here) if self.here else none]
        if self.runs:
            parts += [element("p", _ALL), columns.fragment(_RUNS, self._written)]
        return {"text/plain": repr(self), "text/html": element("div", *parts)}


class Searches:
    """Those of one session, the newest last; of one that ended its result is enough."""

    def __init__(self) -> None:
        self._handles: list[Handle[Any]] = []

    def add(self, handle: Handle[Any]) -> None:
        """Another one begins; those that ended are forgotten."""
        self._handles = [*self.going, handle]

    @property
    def going(self) -> list[Handle[Any]]:
        """Those that did not end."""
        return [handle for handle in self._handles if not handle.done]

    def status(self, runs: tuple[Run, ...]) -> Status:
        """All of them, and the ``runs`` whose journals are being written."""
        rows = [
            (h.name, h.state, str(h.evaluations), f"{h.seconds:.1f}")
            for h in self._handles
        ]  # fmt: skip
        return Status(tuple(rows), runs)

    def stop(self, name: str | None) -> str:
        """End one after the evaluation in flight; what to say of it."""
        handle = self._one(name)
        handle.stop()
        return (
            f"{handle.name}: stopping after the evaluation in flight; the best so far is then in "
            f"`{handle.name}`"
        )

    def pause(self, name: str | None) -> str:
        """Let one wait after the evaluation in flight; what to say of it."""
        handle = self._one(name)
        if handle.state == "stopping":
            raise UsageError(
                f"the search `{handle.name}` is stopping",
                fix=f"when it has ended, %optiml resume {handle.name} goes on with its run",
            )
        handle.pause()
        return f"{handle.name}: paused after the evaluation in flight; %optiml resume goes on"

    def paused(self, name: str | None) -> Handle[Any] | None:
        """The one that is paused and has this name; the only one where none is given."""
        found = [h for h in self.going if h.state == "paused" and name in (None, h.name)]
        return found[-1] if found else None

    def _one(self, name: str | None) -> Handle[Any]:
        going = self.going
        names = [handle.name for handle in going]
        if not going:
            raise UsageError(
                "no search runs in the background",
                fix="one in a cell ends with the notebook's interrupt, or its Stop button",
            )
        if name is None and len(going) > 1:
            raise UsageError(f"{len(going)} searches run", fix=f"name one: {', '.join(names)}")
        found = [handle for handle in going if name in (None, handle.name)]
        if not found:
            fix = nearest(name or "", names) or f"those that run: {', '.join(names)}"
            raise UsageError(f"no search `{name}` runs", fix=fix)
        return found[-1]
