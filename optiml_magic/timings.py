"""Where the seconds of a command go: one ledger, each moment in the innermost stage alone."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from typing import Literal, get_args

Stage = Literal[
    "prepare", "compile", "verify", "measure", "count", "inspect", "settle", "propose", "paused",
    "idle",
]  # fmt: skip
DOING: dict[Stage, str] = {
    "prepare": "preparing",
    "compile": "compiling",
    "verify": "verifying",
    "measure": "measuring",
    "count": "counting",
    "inspect": "looking for hazards",
    "settle": "timing the finalists",
    "propose": "looking for edits",
    "paused": "paused",
    "idle": "waiting",
}
STAGES: tuple[Stage, ...] = get_args(Stage)


class Timings:
    """Seconds by stage since it was made; whatever is in none of them is ``idle``.

    Only the thread that made it is timed: what others do meanwhile costs no wall time of its own.
    ``entered`` is called with each stage as it begins or is come back to. ``before`` are seconds
    that a command took already, to load what it needs: they are part of its preparing.
    """

    def __init__(
        self,
        entered: Callable[[Stage], None] = lambda _: None,
        *,
        before: float = 0.0,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._entered = entered
        self._clock = clock
        self._since = clock()
        self._began = self._since - before
        self._stack: list[Stage] = ["idle"]
        self._spent: dict[Stage, float] = {**dict.fromkeys(STAGES, 0.0), "prepare": before}
        self._owner = threading.get_ident()

    def stage(self, name: Stage) -> AbstractContextManager[None]:
        """The time inside is that of ``name``, less what an inner stage takes."""
        if threading.get_ident() != self._owner:
            return nullcontext()
        return _Inside(self, name)

    def enter(self, name: Stage) -> None:
        """A stage begins; whoever enters it leaves it (``stage``)."""
        self._switch()
        self._stack.append(name)
        self._entered(name)

    def leave(self) -> None:
        """The innermost stage ends."""
        self._switch()
        self._stack.pop()
        if self._stack[-1] != "idle":
            self._entered(self._stack[-1])

    @property
    def elapsed(self) -> float:
        """Seconds since the beginning, without those that it was paused."""
        now = self._clock()
        return now - self._began - self._until(now)["paused"]

    def seconds(self) -> dict[str, float]:
        """Seconds of every stage so far; all but ``paused`` together are ``elapsed``."""
        return {str(name): spent for name, spent in self._until(self._clock()).items()}

    def _until(self, now: float) -> dict[Stage, float]:
        found = dict(self._spent)
        found[self._stack[-1]] += now - self._since
        return found

    def _switch(self) -> None:
        now = self._clock()
        self._spent[self._stack[-1]] += now - self._since
        self._since = now


class _Inside:
    """A stage for the length of a ``with``; a generator would cost a search more than its tree."""

    __slots__ = "_name", "_timings"

    def __init__(self, timings: Timings, name: Stage) -> None:
        self._timings, self._name = timings, name

    def __enter__(self) -> None:
        self._timings.enter(self._name)

    def __exit__(self, *_: object) -> None:
        self._timings.leave()
