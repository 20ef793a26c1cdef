"""What one task of the suite came to: a line of ``suite.jsonl``."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from optiml_magic.bench.entry import Part, Size
from optiml_magic.errors import UsageError
from optiml_magic.model.codec import from_json, to_json

INPUT, BEST = "input", "best"
_ENOUGH = 0.95
_GAIN = 1.05  # below, nothing is there of which a share could be reached


Written = Literal["kernel", "reference"]


@dataclass(frozen=True)
class Setup:
    """How a row was made; rows of one folder agree in the first five and the last two."""

    device: str
    chip: str
    size: Size
    budget: int  # evaluations, the input kernel's included
    limit: float  # seconds of the search
    hardware: str
    versions: dict[str, str]
    command: str
    date: str
    origin: Written = "kernel"  # what the input kernel is: the naive one, or made of the reference
    policy: str = "mcts"

    @property
    def key(self) -> tuple[str, str, str, int, float, Written, str]:
        """What the rows of one table have in common: the chip, but not which card of a machine."""
        measured = self.device.partition(":")[0], self.chip, self.size, self.budget, self.limit
        return *measured, self.origin, self.policy

    @property
    def again(self) -> tuple[str, str, str]:
        """What two timings of a program agree in that need not be made twice."""
        return self.hardware, self.command, self.date


@dataclass(frozen=True)
class Row:
    """One task; ``error`` says why there are no figures, ``part`` where it was when it was run.

    ``seconds`` are medians by name: ``input``, ``best`` and the peers; ``samples`` those that they
    are the medians of, where all were timed beside each other. ``source`` is that of the seconds.
    ``progress`` is the best speed-up after each evaluation, from the first after the input on.
    ``timed`` is how the seconds were made where that was after the search.
    """

    task: str
    family: str
    part: Part
    setup: Setup
    sizes: dict[str, int]
    error: str = ""
    source: str = ""
    seconds: dict[str, float] = field(default_factory=dict)
    samples: dict[str, tuple[float, ...]] = field(default_factory=dict)
    how: dict[str, str] = field(default_factory=dict)
    errors: dict[str, float] = field(default_factory=dict)
    failed: dict[str, str] = field(default_factory=dict)
    against: str = ""
    floor: float = 0.0  # seconds
    floor_terms: dict[str, float] = field(default_factory=dict)
    claimed: float = 1.0  # the speed-up that the search claims, 1.0 where none is significant
    interval: tuple[float, float] = (1.0, 1.0)
    progress: tuple[float, ...] = ()
    recipe: str = ""
    program: str = ""
    refused: tuple[str, ...] = ()
    outcomes: dict[str, int] = field(default_factory=dict)
    stopped: str = ""
    wall: float = 0.0  # seconds of the search
    stages: dict[str, float] = field(default_factory=dict)  # those seconds by stage
    notes: tuple[str, ...] = ()
    timed: Setup | None = None

    @property
    def speedup(self) -> float:
        """Of the best over the input kernel."""
        return self.seconds[INPUT] / self.seconds[BEST]

    @property
    def over_floor(self) -> float:
        """The best's time over the floor."""
        return self.seconds[BEST] / self.floor

    @property
    def best_peer(self) -> str:
        """The fastest of the peers, empty without any."""
        names = [name for name in self.seconds if name not in (INPUT, BEST)]
        return min(names, key=lambda name: self.seconds[name], default="")

    @property
    def ahead(self) -> float | None:
        """How many times as long the best peer takes; None without one."""
        return self.seconds[self.best_peer] / self.seconds[BEST] if self.best_peer else None

    @property
    def evaluations(self) -> int | None:
        """After how many, the input kernel's not counted, 95 % of the gain was there."""
        last = self.progress[-1] if self.progress else 1.0
        if self.claimed < _GAIN or last < _GAIN:
            return None
        enough = 1.0 + _ENOUGH * (last - 1.0)
        return next(at for at, gain in enumerate(self.progress, 1) if gain >= enough)


def read(path: Path) -> list[Row]:
    """The rows of a file, of each task the last one; none where there is no file.

    A line that a stopped run left unfinished at the end is passed over. Raises UsageError for any
    other that is not a row.
    """
    found: dict[str, Row] = {}
    for line in _lines(path):
        try:
            row = from_json(Row, line)
        except ValueError as cause:
            raise UsageError(
                f"{path} has a line that is not a row of this version", fix="name another folder"
            ) from cause
        found[row.task] = row
    return list(found.values())


def append(path: Path, row: Row) -> None:
    """One more line; what a stopped run left unfinished goes."""
    whole = sum(map(len, _lines(path)))
    with path.open("ab") as file:
        file.truncate(whole)
        file.write(to_json(Row, row).encode() + b"\n")


def _lines(path: Path) -> list[bytes]:
    """The lines that are finished."""
    found = path.read_bytes().splitlines(keepends=True) if path.exists() else []
    return [line for line in found if line.endswith(b"\n")]
