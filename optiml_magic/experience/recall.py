"""What a run begins with: its kind of kernel, and what is known of such; and what is told of it."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

from optiml_magic.experience import shipped
from optiml_magic.experience.entries import path_of
from optiml_magic.experience.store import Experience
from optiml_magic.model.evaluation import Trajectory
from optiml_magic.model.experience import Kind, Known, known
from optiml_magic.settings import Settings


class Past:
    """All that the settings let a run look at: the user's own file, and what others measured."""

    def __init__(self, experience: Experience, settings: Settings, source: str) -> None:
        self._experience = experience
        self._source = source
        self._shipped: Path | None = settings.shipped if settings.experience != "none" else None
        self.notes: tuple[str, ...] = ()

    def known(self, kind: Kind | None) -> Known:
        """What is known of kernels of a kind; a file that cannot be read is noted."""
        others, unread = shipped.read(self._shipped) if self._shipped is not None else ((), "")
        self.notes = (unread,) if unread else ()
        return known(kind, self._source, self._experience.entries(), others)


def told(of: Known, trajectory: Trajectory) -> tuple[str, ...]:
    """What the experience said of a kernel, in a sentence, and whether the winner came of it."""
    won = Counter(one.entry.path for one in of.entries if one.entry.moves)
    if not won:
        return ()
    roofline = trajectory.root.evaluation.roofline or ""
    first = next(entry for _, entry in of.weighed(roofline) if entry.moves)
    path, count = first.path, won[first.path]
    rules = ", then ".join(move.split()[0] for move in path)
    kernels = "a kernel" if count == 1 else f"{count} kernels"
    own = any(one.own and one.entry.path == path for one in of.entries)
    whose = "runs here" if own else "what comes with the package"
    evidence = first.evidence
    mine = path_of(trajectory, trajectory.best)
    if mine == path:
        end = "it won here too"
    elif any(path_of(trajectory, step) == path for step in trajectory.steps):
        end = "it was tried, and another was better"
    else:
        end = "it was not tried here"
    best = f"{first.gain:.3g}x on {evidence.chip}, {evidence.source}, {evidence.origin.date}"
    return (f"experience: {rules} won on {kernels} like this one ({whose}: {best}); {end}",)
